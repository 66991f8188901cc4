#!/usr/bin/env python3
"""Real TCP through fq-codel, cake and fq-lanes on many links: writes one table.

Each cell is a run of `shortlane lab`, the same traffic through each discipline in turn, in private
namespaces. Ratios are to fq-codel, with the interval that the lab gives.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CELLS = {
    "10 Mbit/s, 2 downloads": (),
    "1 download": ("--downloads", "1"),
    "4 downloads": ("--downloads", "4"),
    "16 downloads": ("--downloads", "16"),
    "Reno": ("--tcp", "reno"),
    "BBR": ("--tcp", "bbr"),
    "BBR beside CUBIC": ("--tcp", "bbr,cubic"),
    "RTT 5 ms": ("--delay", "5ms"),
    "RTT 80 ms": ("--delay", "80ms"),
    "an upload": ("--uploads", "1"),
    "ECN": ("--ecn",),
    "2 Mbit/s": ("--rate", "2mbit"),
    "50 Mbit/s": ("--rate", "50mbit", "--limit", "1000packets"),
    "100 Mbit/s": ("--rate", "100mbit", "--limit", "1000packets"),
}
REFERENCE = "fq-codel"
SCHEDULERS = (REFERENCE, "cake", "fq-lanes")
CLASSES = ("<=20", "20-100", "100-1000")
STREAMS = ("voice", "video", "ping")
HEAD = (
    "link",
    "scheduler",
    *(f"{size} packets" for size in CLASSES),
    "incomplete",
    "downloads",
    "voice p95, ms",
    "video p95",
    "ping p95",
    "requests p95",
    "timeouts",
)
BEGIN, END = "<!-- cells: begin -->", "<!-- cells: end -->"


def measure(binary: Path, options: tuple[str, ...], duration: str) -> dict[str, Any]:
    named = [part for spec in SCHEDULERS for part in ("--scheduler", spec)]
    command = [binary, "lab", "--json", "--duration", duration, *named, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cells: {' '.join(options)}: {done.stderr.strip().splitlines()[-1]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document["summary"]


def number(of: Any, digits: int) -> str:
    """A figure of the lab, which may be missing."""
    return "-" if of is None else f"{of['value']:.{digits}f}"


def interval(ratio: dict[str, Any] | None) -> str:
    if ratio is None:
        return "-"
    low, high = ratio["interval"] or (None, None)
    between = "" if low is None else f" [{low:.2f}, {high:.2f}]"
    return f"{ratio['value']:.2f}{between}"


def p95(stream: dict[str, Any]) -> str:
    delay = number(stream["delay_ms"] and stream["delay_ms"]["p95"], 1)
    lost = 100 * stream["lost"] / max(1, stream["sent"])
    return delay if lost < 0.05 else f"{delay} ({lost:.1f} % lost)"


def rows(name: str, summary: dict[str, Any]) -> list[str]:
    schedulers = {row["scheduler"]: row for row in summary["schedulers"]}
    bulk = schedulers[REFERENCE]["downloads_mbit"]["value"]
    lines = []
    for scheduler, row in schedulers.items():
        is_reference = scheduler == REFERENCE
        # At 100 Mbit/s there are longer ones, but a few.
        classes = [of for of in row["classes"] if of["packets"] in CLASSES]
        completion = [
            number(of["completion_ms"]["mean"], 0) + " ms"
            if is_reference
            else interval(of["vs_fq_codel"])
            for of in classes
        ]
        downloads = row["downloads_mbit"]["value"]
        share = f"{downloads:.2f} Mbit/s" if is_reference else f"{downloads / bulk:.2f}"
        requests = row["requests_ms"] and row["requests_ms"]["p95"]
        cells = [
            name if is_reference else "",
            f"`{scheduler}`",
            *completion,
            str(sum(of["incomplete"] for of in classes)),
            share,
            *(p95(row[stream]) for stream in STREAMS),
            number(requests, 1),
            str(row["timeouts"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, help="the program")
    parser.add_argument("--duration", default="2min", help="of each cell; default: %(default)s")
    parser.add_argument("--only", action="append", metavar="CELL", help="one of the cells")
    parser.add_argument("--into", type=Path, help="the page to write the table into")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(CELLS)
    if unknown:
        parser.error(f"no cell is named {', '.join(unknown)}; there are {', '.join(CELLS)}")
    lines = [f"| {' | '.join(HEAD)} |", f"|---|---|{'---:|' * (len(HEAD) - 2)}"]
    print("\n".join(lines), flush=True)
    for name in options.only or CELLS:
        new = rows(name, measure(options.shortlane, CELLS[name], options.duration))
        print("\n".join(new), flush=True)
        lines += new
    if options.into:
        page = options.into.read_text()
        before, rest = page.split(BEGIN, 1)
        _, after = rest.split(END, 1)
        table = "\n".join(lines)
        options.into.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


if __name__ == "__main__":
    main()
