#!/usr/bin/env python3
"""Runs the scenarios of scenarios/rfc7928 and writes the tables of docs/suite.md.

suite.py --shortlane target/release/shortlane --into docs/suite.md
suite.py --shortlane target/release/shortlane --into docs/suite.md --measured userspace kernel

The first writes the map and the tables of the simulator. The second holds results of the lab,
folders with a folder of each scenario, against predictions; it needs the Python package (`make
python`, PYTHONPATH=python).
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
    "ecn", "fairness", "different-windows", "aggressive", "aggressive-bbr", "unresponsive",
    "round-trips", "bursts", "mild", "medium", "heavy", "waves", "varying", "mix", "both-ways",
    "two-queues",
)  # fmt: skip
#: Short transfers: those of up to 20 packets.
SHORT = "<=20 packets, mean ms"
UNFINISHED = "packets, not complete, %"
#: What counts as a win in the map: no worse than the best by this part of it, ...
WITHIN = 0.05
#: ... in a call by this many ms and points of loss.
WITHIN_DELAY, WITHIN_LOSS = 2.0, 0.1


@dataclass
class Row:
    """A quantity of a scenario under every discipline."""

    what: str
    #: As they stand in the table, and as numbers.
    cells: list[str]
    values: list[float | None]


def main() -> None:
    """Simulates every scenario, or reads what was measured, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, help="the program")
    parser.add_argument("--into", type=Path, required=True, help="the page")
    parser.add_argument("--out", type=Path, help="a folder that keeps predictions")
    parser.add_argument("--measured", type=Path, nargs="+", help="folders of results of the lab")
    arguments = parser.parse_args()
    if arguments.measured:
        import held

        with TemporaryDirectory() as folder:
            out = arguments.out or Path(folder)
            simulator = held.Simulator(arguments.shortlane, SCENARIOS, out)
            lines = held.against(simulator, ORDER, arguments.measured)
        return replace(arguments.into, "bench/rfc7928/suite.py --measured", lines)
    lines, won = [], []
    for name in ORDER:
        print(name, flush=True)
        document = simulate(arguments.shortlane, name)
        if arguments.out:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{name}.json").write_text(json.dumps(document))
        rows = rows_of(document)
        names = [one["scheduler"] for one in document["summary"]["schedulers"]]
        title = document["scenario"]["title"].removeprefix("RFC 7928, ")
        lines += [f"### {title}: `{name}`", "", *table(names, rows), ""]
        won.append(Row(f"`{name}`", wins(rows, len(names)), []))
    last = [f"**{counts([row.cells[at] for row in won])}**" for at in range(len(names))]
    replace(arguments.into, "bench/rfc7928/suite.py", lines)
    replace(
        arguments.into,
        "bench/rfc7928/suite.py, map",
        [*table(names, [*won, Row("**all**", last, [])], ":---:")],
    )
    return None


def replace(page: Path, by: str, lines: list[str]) -> None:
    """Writes a table of the page anew."""
    before, rest = page.read_text().split(f"<!-- table: {by} -->\n")
    _, after = rest.split("<!-- end of table -->\n", 1)
    text = "\n".join(["", *lines, ""]).rstrip("\n") + "\n\n"
    page.write_text(f"{before}<!-- table: {by} -->\n{text}<!-- end of table -->\n{after}")


def simulate(program: Path, name: str) -> dict[str, Any]:
    """What `sim --json` prints."""
    command: list[str | Path] = [program, "sim", SCENARIOS / f"{name}.toml", "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(names: list[str], rows: list[Row], align: str = "---:") -> list[str]:
    """A table with a column for each discipline."""
    return [
        "| | " + " | ".join(names) + " |",
        "|---|" + f"{align}|" * len(names),
        *(f"| {row.what} | " + " | ".join(row.cells) + " |" for row in rows),
    ]


def rows_of(document: dict[str, Any]) -> list[Row]:
    """The quantities of a scenario under every discipline."""
    of_each = [quantities(one) for one in document["summary"]["schedulers"]]
    rows = []
    for what in dict.fromkeys(what for of_one in of_each for what in of_one):
        found = [of_one.get(what, ("-", None)) for of_one in of_each]
        rows.append(Row(what, [text for text, _ in found], [value for _, value in found]))
    # What is left at the end in any case needs no line.
    return [row for row in rows if not row.what.endswith(UNFINISHED) or spread(row.values) > 5]


def spread(values: list[float | None]) -> float:
    """From the least to the most."""
    known = [value for value in values if value is not None]
    return max(known) - min(known)


def quantities(scheduler: dict[str, Any]) -> dict[str, tuple[str, float | None]]:
    """What one discipline did, by name of the quantity: as text, and its mean over seeds."""
    found = {}

    def put(what: str, of: dict[str, Any] | None, unit: float = 1) -> None:
        value: float | None = of["value"] if of else None
        found[what] = (estimate(of, unit), None if value is None else value / unit)

    for traffic in scheduler["traffic"]:
        name = traffic["name"]
        match traffic["kind"]:
            case "transfers":
                pages = traffic.get("pages")
                if pages:
                    put(f"{name}: pages, mean s", pages["times_ms"]["mean"], 1000)
                for one in traffic["classes"]:
                    put(f"{name}: {one['packets']} packets, mean ms", one["completion_ms"])
                    whole = one["complete"] + one["incomplete"]
                    part = 100 * one["incomplete"] / max(whole, 1)
                    what = f"{name}: {one['packets']} {UNFINISHED}"
                    found[what] = (plain(part), part)
            case "requests":
                put(f"{name}: response, mean ms", traffic["times_ms"]["mean"])
            case "stream":
                put(f"{name}: delay, p95 ms", traffic["delay_ms"]["p95"])
                put(f"{name}: lost, %", traffic["loss_percent"])
            case "persistent":
                put(f"{name}: Mbit/s", traffic["mbit"])
    there = [link for link in scheduler["links"] if not link["link"].endswith("-back")]
    for link in there:
        of = f"{link['link']}: " if len(there) > 1 else ""
        put(f"{of}link used, %", link["utilisation"], 0.01)
        put(f"{of}queue, mean packets", link["backlog_mean"])
    return found


def wins(rows: list[Row], columns: int) -> list[str]:
    """What each discipline wins: as well as the best does it, or nearly so."""
    by_name = {row.what: [value or 0.0 for value in row.values] for row in rows}
    rates = [values for what, values in by_name.items() if what.endswith(": Mbit/s")]
    short = [values for what, values in by_name.items() if what.endswith(SHORT)]
    delay, lost = by_name["call: delay, p95 ms"], by_name["call: lost, %"]
    won = [""] * columns
    for letter, groups in (
        ("S", [[sum(of) for of in zip(*short, strict=True)]]),
        ("L", [[-sum(of) for of in zip(*rates, strict=True)]]),
        ("E", [[-min(of) for of in zip(*rates, strict=True)]] if len(rates) > 1 else []),
    ):
        for costs in groups:
            best = min(costs)
            for at, cost in enumerate(costs):
                won[at] += letter if cost <= best + WITHIN * abs(best) else ""
    for at in range(columns):
        near = delay[at] <= min(delay) + WITHIN_DELAY and lost[at] <= min(lost) + WITHIN_LOSS
        won[at] += "C" if near else ""
    return [" ".join(sorted(letters, key="SCLE".index)) or "·" for letters in won]


def counts(cells: list[str]) -> str:
    """How often each letter."""
    return " ".join(f"{letter}{sum(letter in cell for cell in cells)}" for letter in "SCLE")


def estimate(found: dict[str, Any] | None, unit: float = 1) -> str:
    """A mean over seeds with half of its 95 % interval."""
    if found is None or found["value"] is None:
        return "-"
    text = plain(found["value"] / unit)
    if not found["interval"]:
        return text
    low, high = found["interval"]
    return f"{text} ±{plain((high - low) / 2 / unit)}"


def plain(value: float) -> str:
    """Three digits that matter."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()
