#!/usr/bin/env python3
"""Runs the scenarios of scenarios/rfc7928 and writes the table of docs/suite.md.

suite.py --shortlane target/release/shortlane --into docs/suite.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios" / "rfc7928"
#: In the order of the RFC's sections.
ORDER = (
    "ecn", "fairness", "unresponsive", "round-trips", "bursts", "mild", "heavy", "varying", "mix"
)  # fmt: skip
BEGIN = "<!-- table: bench/rfc7928/suite.py -->\n"
END = "<!-- end of table -->\n"


@dataclass
class Row:
    """A quantity of a scenario under every discipline."""

    what: str
    cells: list[str]


def main() -> None:
    """Simulates every scenario and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, help="the program")
    parser.add_argument("--into", type=Path, required=True, help="the page")
    parser.add_argument("--out", type=Path, help="a folder that keeps the results as JSON")
    arguments = parser.parse_args()
    page = arguments.into.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    lines: list[str] = []
    for name in ORDER:
        print(name, flush=True)
        document = simulate(arguments.shortlane, name)
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{name}.json").write_text(json.dumps(document))
        lines += table_of(name, document)
    arguments.into.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


def simulate(program: Path, name: str) -> dict[str, Any]:
    """What `sim --json` prints."""
    command = [program, "sim", SCENARIOS / f"{name}.toml", "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table_of(name: str, document: dict[str, Any]) -> list[str]:
    """The heading of a scenario, and its quantities under every discipline."""
    schedulers = document["summary"]["schedulers"]
    names = [one["scheduler"] for one in schedulers]
    by_scheduler = [quantities(one) for one in schedulers]
    rows = [
        Row(what, [of_one.get(what, "-") for of_one in by_scheduler])
        for what in dict.fromkeys(what for of_one in by_scheduler for what in of_one)
    ]
    title = document["scenario"]["title"].removeprefix("RFC 7928, ")
    return [
        f"### {title}: `{name}`",
        "",
        "| | " + " | ".join(names) + " |",
        "|---|" + "---:|" * len(names),
        *(f"| {row.what} | " + " | ".join(row.cells) + " |" for row in rows),
        "",
    ]


def quantities(scheduler: dict[str, Any]) -> dict[str, str]:
    """What one discipline did, by name of the quantity."""
    found = {}
    for traffic in scheduler["traffic"]:
        name = traffic["name"]
        match traffic["kind"]:
            case "transfers":
                pages = traffic.get("pages")
                if pages:
                    found[f"{name}: pages, mean s"] = plain(pages["times_ms"]["mean"], 1000)
                for one in traffic["classes"]:
                    what = f"{name}: {one['packets']} packets, mean ms"
                    found[what] = estimate(one["completion_ms"])
            case "requests":
                found[f"{name}: response, mean ms"] = estimate(traffic["times_ms"]["mean"])
            case "stream":
                found[f"{name}: delay, p95 ms"] = estimate(traffic["delay_ms"]["p95"])
                found[f"{name}: lost, %"] = estimate(traffic["loss_percent"])
            case "persistent":
                found[f"{name}: Mbit/s"] = estimate(traffic["mbit"])
    link = scheduler["links"][0]
    found["link used, %"] = estimate(link["utilisation"], 0.01)
    found["queue, mean packets"] = estimate(link["backlog_mean"])
    return found


def estimate(found: dict[str, Any] | None, unit: float = 1) -> str:
    """A mean over seeds with half of its 95 % interval."""
    if found is None or found["value"] is None:
        return "-"
    text = plain(found["value"], unit)
    if not found["interval"]:
        return text
    low, high = found["interval"]
    return f"{text} ±{plain((high - low) / 2, unit)}"


def plain(value: Any, unit: float = 1) -> str:
    """Three digits that matter."""
    if isinstance(value, dict):
        return estimate(value, unit)
    if value is None:
        return "-"
    value /= unit
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()
