#!/usr/bin/env python3
"""Runs the scenarios of scenarios/rfc7928 and writes the tables of docs/suite.md.

suite.py --shortlane target/release/shortlane --into docs/suite.md
suite.py --shortlane target/release/shortlane --into docs/suite.md --lab

With `--lab` it writes the other table: what the simulator predicts and the lab measures, one seed
each. It needs the Python package (`make python`, PYTHONPATH=python).
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios" / "rfc7928"
#: In the order of the RFC's sections.
ORDER = (
    "ecn", "fairness", "unresponsive", "round-trips", "bursts", "mild", "heavy", "varying", "mix"
)  # fmt: skip
BEGIN = "<!-- table: bench/rfc7928/suite.py -->\n"
BEGIN_LAB = "<!-- table: bench/rfc7928/suite.py --lab -->\n"
END = "<!-- end of table -->\n"
#: The lab has one setting of ECN for all traffic.
NOT_IN_LAB = ("ecn",)
#: Of the lab: the extremes, and what lies between.
LAB_SCHEDULERS = ("fifo", "fq-codel", "efd", "fq-lanes")
#: What is listed: further apart than this part of the prediction.
APART = 0.1
#: Of a direction that carries acknowledgments only, whose frames the two count differently.
NOT_HELD = "way back"
SEEDS = "chance: predictions of three seeds are as far apart"
#: Why, where it is known: scenario, quantity, discipline.
CAUSES = {
    ("fairness", "call", "efd"): "chance: whether the call gets old, which it then stays",
    ("fairness", "one", "fifo"): SEEDS,
    ("round-trips", "far", "fifo"): SEEDS,
    ("bursts", "bulk", "fq-codel"): SEEDS,
    ("mix", "web, 20–100 packets", "efd"): SEEDS,
}


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
    parser.add_argument("--out", type=Path, help="a folder that keeps the results")
    parser.add_argument("--lab", action="store_true", help="measure, and hold against predictions")
    parser.add_argument("--late-limit", default="5%", help="of the lab")
    arguments = parser.parse_args()
    if arguments.lab:
        with TemporaryDirectory() as folder:
            out = arguments.out or Path(folder)
            lines = held_against(arguments.shortlane, out, arguments.late_limit)
        return replace(arguments.into, BEGIN_LAB, lines)
    lines = []
    for name in ORDER:
        print(name, flush=True)
        document = simulate(arguments.shortlane, name)
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{name}.json").write_text(json.dumps(document))
        lines += table_of(name, document)
    return replace(arguments.into, BEGIN, lines)


def replace(page: Path, begin: str, lines: list[str]) -> None:
    """Writes a table of the page anew."""
    before, rest = page.read_text().split(begin)
    _, after = rest.split(END, 1)
    page.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + END + after)


def held_against(program: Path, out: Path, late_limit: str) -> list[str]:
    """What the simulator predicts and the lab measures, where they are far apart."""
    from shortlane.report.engines import COMPLETION, DELAY, RATE, USE, cells_of, runs_of

    lines = [
        "| | cells | within 10 % |",
        "|---|---:|---:|",
    ]
    apart = []
    for name in (name for name in ORDER if name not in NOT_IN_LAB):
        print(name, flush=True)
        folders = [out / name / engine for engine in ("sim", "lab")]
        for folder in folders:
            if (folder / "run.json").exists():
                continue
            command = [program, folder.name, SCENARIOS / f"{name}.toml", "--seeds", "1"]
            command += [word for one in LAB_SCHEDULERS for word in ("--scheduler", one)]
            command += ["--late-limit", late_limit] if folder.name == "lab" else []
            subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        found = [
            cell
            for cell in cells_of(runs_of(folders))
            if all(cell.values)
            and cell.what != NOT_HELD
            and cell.quantity in (COMPLETION, RATE, DELAY, USE)
        ]
        cells = [(cell, *(value.value for value in cell.values)) for cell in found]
        far = [(cell, a, b) for cell, a, b in cells if abs(b - a) > APART * max(abs(a), 1e-9)]
        lines.append(f"| `{name}` | {len(cells)} | {len(cells) - len(far)} |")
        apart += [
            f"| `{name}` | {cell.quantity.title}: {cell.what} | {cell.scheduler} | {plain(a)} | "
            f"{plain(b)} | {cell.quantity.unit} | "
            f"{CAUSES.get((name, cell.what, cell.scheduler), 'open')} |"
            for cell, a, b in far
        ]
    heading = "| | quantity | discipline | predicted | measured | unit | cause |"
    return [*lines, "", heading, "|---|---|---|---:|---:|---|---|", *apart, ""]


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
