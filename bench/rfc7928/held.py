"""What the lab measured, in one engine or several, held against what the simulator predicts."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shortlane.figures.tables import scenario_of
from shortlane.report import engines
from shortlane.report.engines import Cell, Run
from shortlane.report.quantities import (
    COMPLETION,
    DELAY,
    LOST,
    QUANTITIES,
    RATE,
    UNFINISHED,
    USE,
)

#: What is compared, as `shortlane report` compares it.
COMPARED = (COMPLETION, UNFINISHED, RATE, DELAY, LOST, USE)
#: Predictions of these seeds say how far apart chance alone puts a cell.
SEEDS = "1..10"
#: A FIFO of a hundred packets is shorter with a real TCP, and behind tbf: docs/suite.md says why.
SLOTS = "slots"
#: Files in which the call is late by a full FIFO, which is all that its 99th percentile tells.
FULL = ("fairness", "unresponsive", "round-trips", "mild", "medium", "heavy", "mix")
#: The kernel's CAKE limits itself; ours has the file's hundred packets.
LIMIT = "limit"
#: What explains a cell that chance does not: scenario, quantity and whose, discipline.
CAUSES: dict[tuple[str, str, str], str] = {
    **{(name, f"{DELAY.title}: call", "fifo"): SLOTS for name in FULL},
    ("mix", f"{DELAY.title}: video", "fifo"): SLOTS,
    ("unresponsive", f"{DELAY.title}: unresponsive", "fifo"): SLOTS,
    ("unresponsive", f"{DELAY.title}: unresponsive", "cake"): LIMIT,
}


@dataclass
class Simulator:
    """What predicts."""

    program: Path
    scenarios: Path
    #: The folder of its results.
    out: Path

    def run(self, name: str, seeds: str, time: str) -> Run:
        """A scenario with these seeds, for so long."""
        folder = self.out / name / seeds
        if not (folder / "run.json").exists():
            file = self.scenarios / f"{name}.toml"
            command: list[str | Path] = [self.program, "sim", file, "--seeds", seeds]
            command += ["--out", folder, "--duration", time]
            subprocess.run(command, check=True, capture_output=True)
        return engines.runs_of([folder])[0]


def against(simulator: Simulator, order: Sequence[str], measured: Sequence[Path]) -> list[str]:
    """The tables: how many cells agree, and those that do not."""
    counted: Counter[tuple[str, str, bool]] = Counter()
    pairs: list[str] = []
    apart = []
    headings: list[str] = []
    for name in order:
        folders = [folder / name for folder in measured if (folder / name / "run.json").exists()]
        if not folders:
            continue
        print(name, flush=True)
        measured_runs = engines.runs_of(folders)
        time = _time_of(measured_runs)
        runs = [simulator.run(name, "1", time), *measured_runs]
        ranges = _ranges(simulator.run(name, SEEDS, time))
        headings = [run.engine for run in runs[1:]]
        comparisons = _comparisons(runs)
        pairs = [pair for pair, _ in comparisons]
        found: set[tuple[str, str, str]] = set()
        for pair, cells in comparisons:
            for cell in cells:
                if cell.quantity not in COMPARED or cell.verdicts[0] == engines.UNKNOWN:
                    continue
                differs = cell.verdicts[0] == engines.DIFFERS
                counted[cell.quantity.title, pair, differs] += 1
                counted[name, pair, differs] += 1
                if differs:
                    found.add((cell.quantity.title, cell.what, cell.scheduler))
        for cell in engines.cells_of(runs):
            key = (cell.quantity.title, cell.what, cell.scheduler)
            if key in found:
                apart.append(_line(name, cell, ranges.get(key)))
    if not counted:
        raise SystemExit(
            f"found no results of {', '.join(order)} in {', '.join(map(str, measured))}"
        )
    lines = _counts([one.title for one in COMPARED], pairs, counted, "Quantity")
    lines += ["", *_counts([f"`{name}`" for name in order], pairs, _ticked(counted), "File")]
    columns = ["", "quantity", "discipline", "predicted", "of ten seeds", *headings, "", "cause"]
    lines += ["", f"| {' | '.join(columns)} |", "|---|---|---|---:|---:|---:|---:|---|---|"]
    return lines + apart


def _time_of(runs: Sequence[Run]) -> str:
    """How long a block of these was."""
    times = {int(scenario_of(run.folder)["duration_ns"]) for run in runs}
    if len(times) > 1:
        raise SystemExit(f"found blocks of {sorted(times)} ns; accepted: one length a scenario")
    return f"{times.pop() // 1_000_000}ms"


def _comparisons(runs: Sequence[Run]) -> list[tuple[str, list[Cell]]]:
    """Each engine against each before it, in words."""
    return [
        (
            f"{run.engine} as {'predicted' if first.engine == 'simulator' else first.engine}",
            engines.cells_of([first, run]),
        )
        for at, first in enumerate(runs)
        for run in runs[at + 1 :]
    ]


def _ranges(run: Run) -> dict[tuple[str, str, str], tuple[float, float]]:
    """The least and the most that one seed predicts, by cell."""
    return {
        (quantity.title, *key): (min(values.values()), max(values.values()))
        for quantity, of_run in QUANTITIES.items()
        for key, values in of_run(run.folder).items()
        if values
    }


def _line(name: str, cell: Cell, among: tuple[float, float] | None) -> str:
    values = [None if value is None else value.value for value in cell.values]
    known = [value for value in values[1:] if value is not None]
    what = f"{cell.quantity.title}: {cell.what}"
    cause = CAUSES.get((name, what, cell.scheduler), "open")
    if among and all(among[0] <= value <= among[1] for value in known):
        cause = "chance"
    seeds = f"{_plain(among[0])} to {_plain(among[1])}" if among else "–"
    cells = [_plain(value) for value in values[1:]]
    written = [f"`{name}`", what, cell.scheduler, _plain(values[0]), seeds, *cells]
    return f"| {' | '.join([*written, cell.quantity.unit, cause])} |"


def _counts(
    rows: Sequence[str], pairs: Sequence[str], counted: Counter[tuple[str, str, bool]], first: str
) -> list[str]:
    lines = [f"| {' | '.join([first, *pairs])} |", "|---|" + "---:|" * len(pairs)]
    for row in rows:
        of_row = [(counted[row, pair, False], counted[row, pair, True]) for pair in pairs]
        if any(agree + differ for agree, differ in of_row):
            cells = [f"{agree} of {agree + differ}" for agree, differ in of_row]
            lines.append(f"| {' | '.join([row, *cells])} |")
    return lines


def _ticked(counted: Counter[tuple[str, str, bool]]) -> Counter[tuple[str, str, bool]]:
    return Counter({(f"`{name}`", pair, same): n for (name, pair, same), n in counted.items()})


def _plain(value: float | None) -> str:
    """Three digits that matter."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
