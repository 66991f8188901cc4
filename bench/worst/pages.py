#!/usr/bin/env python3
"""Searches the worst case of every discipline, and writes it into the discipline's page.

What has been found is kept, so that a stopped run continues: a folder of documents as
`shortlane worst --json` prints them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HARMS = ("wait", "starvation", "unfairness", "memory")
RUNS, SEED = 400, 1
BEGIN = "<!-- worst case: make worst-pages -->"
END = "<!-- end of worst case -->"
#: The section stands before this one.
NEXT = "## Validation"


@dataclass(frozen=True)
class Found:
    """What a search found, or why there is none."""

    harm: str
    document: dict[str, Any] | None
    refusal: str = ""

    def row(self) -> str:
        if self.document is None:
            return f"| {self.harm} | {self.refusal} | | | |"
        bound, fifo = self.document["bound"], self.document["fifo"]
        cells = [
            self.harm,
            shown(self.harm, self.document["harm"]),
            "too many flows pile up" if fifo is None else shown(self.harm, fifo),
            "" if bound is None else f"{shown(self.harm, bound['value'])}: {bound['source']}",
            "; ".join(self.document["traffic"]),
        ]
        return f"| {' | '.join(cells)} |"


def shown(harm: str, value: float) -> str:
    """A value of a harm, as a reader wants it."""
    match harm:
        case "unfairness":
            return f"{value:.0%} missing".replace("%", " %")
        case "memory":
            return f"{value:.0f} entries"
        case _:
            return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def search(binary: Path, discipline: str, harm: str, kept: Path) -> Found:
    """Searches, or reads what was found before."""
    file = kept / f"{discipline}.{harm}.json"
    if not file.exists():
        command: list[str | Path] = [binary, "worst", discipline, "--of", harm, "--json"]
        command += ["--runs", str(RUNS), "--seed", str(SEED)]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        if ran.returncode == 2:
            return Found(harm, None, ran.stderr.strip().splitlines()[-1])
        if ran.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: {ran.stderr.strip()}")
        file.with_suffix(".part").write_text(ran.stdout)
        file.with_suffix(".part").rename(file)
    return Found(harm, json.loads(file.read_text()))


def section(found: list[Found]) -> str:
    lines = [
        BEGIN,
        "## Worst case",
        "",
        f"The worst of {RUNS} mixes of traffic at 10 Mbit/s that a [search](../worst.md) tried for "
        "each harm:",
        "",
        "| harm | worst | under `fifo` | bound | traffic beside the victim |",
        "|---|---|---|---|---|",
        *(one.row() for one in found),
        END,
    ]
    return "\n".join(lines)


def with_section(page: str, made: str) -> str | None:
    """The page with the section in its place, or None if it has no place for one."""
    if BEGIN in page and END in page:
        head, _, rest = page.partition(BEGIN)
        return head + made + rest.partition(END)[2]
    head, found, tail = page.partition(f"\n{NEXT}\n")
    return f"{head}\n{made}\n\n{NEXT}\n{tail}" if found else None


def main() -> int:
    """Search, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, metavar="FILE", help="the command")
    parser.add_argument("--kept", type=Path, required=True, metavar="DIR", help="what was found")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="pages, one each")
    arguments = parser.parse_args()
    arguments.kept.mkdir(parents=True, exist_ok=True)
    for page in sorted(arguments.into.glob("*.md")):
        found = [search(arguments.shortlane, page.stem, harm, arguments.kept) for harm in HARMS]
        made = with_section(page.read_text(), section(found))
        if made is None:
            print(f"{page}: no section '{NEXT}'", file=sys.stderr)
            return 1
        page.write_text(made)
        print(page.stem, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
