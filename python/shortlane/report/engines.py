"""The same experiment in several engines: what was predicted, what was measured, what agrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from shortlane import stats
from shortlane.errors import Usage
from shortlane.figures.tables import OBSERVATION, scenario_of
from shortlane.report import blocks
from shortlane.report.blocks import Block
from shortlane.report.numbers import kind_of
from shortlane.report.quantities import COMPLETION, QUANTITIES, Quantity, Values, transfers
from shortlane.report.source import Folder, open_folder
from shortlane.report.verdict import estimate

__all__ = [
    "Cell",
    "Run",
    "cells_of",
    "difference",
    "html_of_several",
    "markdown",
    "markdown_of",
    "runs_of",
]

#: Engines in the order of columns, and what their numbers are.
ENGINES = {
    "simulator": "predicted (simulator)",
    "userspace": "measured in userspace",
    "kernel": "measured in the kernel",
}

AGREES, OPEN, DIFFERS, UNKNOWN = "agrees", "not told apart", "differs", "–"


@dataclass
class Run:
    """Results of one engine."""

    folder: Folder
    engine: str
    #: As its column is headed.
    called: str


@dataclass(frozen=True)
class Cell:
    """One quantity of one discipline in all engines."""

    quantity: Quantity
    what: str
    scheduler: str
    #: Of each run, in their order; None where it has none.
    values: tuple[stats.Estimate | None, ...]
    #: Each run but the first against the first: the ratio or difference, and what it means.
    against: tuple[stats.Estimate | None, ...]
    verdicts: tuple[str, ...]


def runs_of(directories: Sequence[Path]) -> list[Run]:
    """Opens results, the prediction first.

    Raises `InputError` for what is no result, for a replay, and for other experiments than the
    first.
    """
    runs = []
    for directory in directories:
        folder = open_folder(directory)
        engine = str(folder.info.get("engine") or {"sim": "simulator"}.get(kind_of(folder), ""))
        if kind_of(folder) == "lab" and not engine:
            engine = "userspace"
        if engine not in ENGINES:
            raise Usage(
                f"{directory}: of no engine that is known; accepted: what sim or lab wrote, with "
                "its run.json"
            )
        runs.append(Run(folder, engine, ENGINES[engine]))
    runs.sort(key=lambda run: list(ENGINES).index(run.engine))
    first = scenario_of(runs[0].folder).get("file")
    for run in runs[1:]:
        if scenario_of(run.folder).get("file") != first:
            raise Usage(
                f"{run.folder.name}: of another scenario than {runs[0].folder.name}; accepted: "
                "results of one scenario file in several engines"
            )
    for run in runs:
        if sum(other.called == run.called for other in runs) > 1:
            run.called = f"{ENGINES[run.engine]}, {run.folder.name}"
    return runs


def cells_of(runs: Sequence[Run]) -> list[Cell]:
    """Every cell that at least two runs have."""
    made = []
    for quantity, of_run in QUANTITIES.items():
        made += _cells(quantity, [of_run(run.folder) for run in runs])
    complete = [transfers(run.folder) for run in runs]
    return [_paired(cell, complete) if cell.quantity is COMPLETION else cell for cell in made]


def _cells(quantity: Quantity, of_runs: list[dict[tuple[str, str], Values]]) -> list[Cell]:
    made = []
    for key in dict.fromkeys(key for of_run in of_runs for key in of_run):
        values = [of_run.get(key, {}) for of_run in of_runs]
        if sum(bool(of_run) for of_run in values) < 2:
            continue
        estimates = tuple(stats.mean(of_run.values()) for of_run in values)
        against = tuple(difference(of_run, values[0], quantity) for of_run in values[1:])
        made.append(_judged(quantity, key, estimates, against))
    return made


def _judged(
    quantity: Quantity,
    key: tuple[str, str],
    values: tuple[stats.Estimate | None, ...],
    against: tuple[stats.Estimate | None, ...],
) -> Cell:
    even = quantity.even
    verdicts = []
    for other in against:
        if other is None:
            verdicts.append(UNKNOWN)
        elif abs(other.value - even) <= quantity.tolerance:
            verdicts.append(AGREES)
        elif other.low is not None and not other.is_above(even) and not other.is_below(even):
            verdicts.append(OPEN)
        else:
            verdicts.append(DIFFERS)
    return Cell(quantity, *key, values, against, tuple(verdicts))


def difference(one: Values, first: Values, quantity: Quantity) -> stats.Estimate | None:
    """Paired by the rounds that both have; None if there are none."""
    common = [(one[at], first[at]) for at in one if at in first]
    if not common:
        return None
    if quantity.relative:
        return stats.ratio_of_sums(common)
    return stats.mean(a - b for a, b in common)


def _paired(cell: Cell, complete: list[pl.DataFrame]) -> Cell:
    """The same with ratios over the transfers complete in both engines."""
    own = pl.col("what").eq(cell.what) & pl.col("scheduler").eq(cell.scheduler)
    match = ["what", "scheduler", *OBSERVATION, "index"]
    first = complete[0].filter(own).rename({"completion_ns": "first_ns"})
    against = []
    for other in complete[1:]:
        sums = (
            other.filter(own)
            .join(first, on=match)
            .group_by(OBSERVATION)
            .agg(pl.col("completion_ns", "first_ns").cast(pl.Float64).sum())
            .sort(OBSERVATION)
        )
        against.append(stats.ratio_of_sums(sums.select("completion_ns", "first_ns").rows()))
    return _judged(cell.quantity, (cell.what, cell.scheduler), cell.values, tuple(against))


def html_of_several(directories: Sequence[Path]) -> str:
    """The page that holds engines side by side."""
    runs = runs_of(directories)
    cells = cells_of(runs)
    title = str(scenario_of(runs[0].folder).get("title") or "One experiment")
    made = [
        blocks.notice(f"{run.called}: missing: {what}.")
        for run in runs
        for what in run.folder.missing
    ]
    made += [
        blocks.notice(f"{run.called}: ended before its time: {run.folder.info['ended_early']}.")
        for run in runs
        if run.folder.info.get("ended_early")
    ]
    if cells:
        made.append(blocks.section("Do they agree?", *_summary(runs, cells)))
        made += [_section(quantity, runs, cells) for quantity in QUANTITIES]
    else:
        made.append(blocks.notice("These results have nothing in common to compare."))
    made.append(blocks.section("How it was run", *_how(runs)))
    lead = " · ".join(run.called for run in runs)
    return blocks.page(f"{title}: side by side", made, lead=lead)


def _summary(runs: Sequence[Run], cells: Sequence[Cell]) -> list[Block]:
    said = []
    for at, run in enumerate(runs[1:]):
        counts = [cell.verdicts[at] for cell in cells if cell.verdicts[at] != UNKNOWN]
        parts = [
            f"{counts.count(verdict)} {words}"
            for verdict, words in (
                (AGREES, "agree"),
                (OPEN, "not told apart"),
                (DIFFERS, "differ"),
            )
            if verdict in counts
        ]
        said.append(
            f"{_upper(run.called)} against {runs[0].called}: of {len(counts)} cells "
            f"{', '.join(parts) or 'none can be compared'}."
        )
        said += [
            f"Differs, {run.called}: {cell.quantity.title.lower()}, {cell.what}, "
            f"{cell.scheduler}: {_change(cell, at)}."
            for cell in cells
            if cell.verdicts[at] == DIFFERS
        ]
    tolerances = ", ".join(f"{one.title.lower()} {one.allowed}" for one in QUANTITIES)
    return [
        blocks.bullets(said),
        blocks.text(
            f"Agrees: no further apart than {tolerances}. Not told apart: further, but the 95 % "
            "interval over rounds has no difference in it as well, so more rounds are needed. "
            "Completion times are compared over the transfers complete in both, round by round.",
            small=True,
        ),
    ]


def _section(quantity: Quantity, runs: Sequence[Run], cells: Sequence[Cell]) -> Block:
    own = [cell for cell in cells if cell.quantity is quantity]
    if not own:
        return blocks.group()
    columns: dict[str, list[str]] = {
        "": [cell.what for cell in own],
        "scheduler": [cell.scheduler for cell in own],
    }
    for at, run in enumerate(runs):
        columns[run.called] = [_text(cell.values[at]) for cell in own]
    for at, run in enumerate(runs[1:]):
        heading = f"{run.called.removeprefix('measured ')}: as {runs[0].called.split()[0]}?"
        columns[heading] = [_said(cell, at) for cell in own]
    heading = f"{quantity.title}, {quantity.unit}"
    return blocks.section(heading, blocks.table(pl.DataFrame(columns)))


def markdown_of(directories: Sequence[Path]) -> str:
    """A table in Markdown: of one run by scheduler, of several side by side."""
    runs = runs_of(directories)
    return _by_scheduler(runs[0]) if len(runs) == 1 else _side_by_side(runs)


def _by_scheduler(run: Run) -> str:
    found = {quantity: of_run(run.folder) for quantity, of_run in QUANTITIES.items()}
    keys = [key for values in found.values() for key in values]
    schedulers = list(dict.fromkeys(scheduler for _, scheduler in keys))
    lines = [["", *schedulers], ["---", *["---:"] * len(schedulers)]]
    for quantity, values in found.items():
        for what in dict.fromkeys(what for what, _ in values):
            of_each = [values.get((what, scheduler), {}) for scheduler in schedulers]
            # What nobody lost needs no line.
            if any(any(of_one.values()) for of_one in of_each):
                cells = [_text(stats.mean(of_one.values())) for of_one in of_each]
                lines.append([f"{quantity.title}: {what}, {quantity.unit}", *cells])
    return markdown(lines)


def _side_by_side(runs: Sequence[Run]) -> str:
    columns = [column for run in runs[1:] for column in (run.called, "")]
    lines = [["", "scheduler", runs[0].called, *columns]]
    lines.append(["---", "---", "---:", *["---:", "---"] * len(runs[1:])])
    for cell in cells_of(runs):
        if not any(value and value.value for value in cell.values):
            continue
        what = f"{cell.quantity.title}: {cell.what}, {cell.quantity.unit}"
        line = [what, cell.scheduler, _text(cell.values[0])]
        for at in range(len(runs) - 1):
            line += [_text(cell.values[at + 1]), _said(cell, at)]
        lines.append(line)
    return markdown(lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table in Markdown."""
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _said(cell: Cell, at: int) -> str:
    """The verdict, and what it rests on."""
    verdict = cell.verdicts[at]
    return verdict if verdict == UNKNOWN else f"{verdict} ({_change(cell, at)})"


def _text(value: stats.Estimate | None) -> str:
    if value is None:
        return "–"
    # What Student's t does not know: none of these quantities can be below 0.
    low = None if value.low is None else max(value.low, 0.0)
    return estimate(value.value, low, value.high)


def _change(cell: Cell, at: int) -> str:
    """The ratio or the difference with its interval, as text."""
    value = cell.against[at]
    if value is None:
        return "–"
    if cell.quantity.relative:
        ends = "" if value.low is None else f" [{value.low:.2f}, {value.high:.2f}]"
        return f"{value.value:.2f} ×{ends}"
    unit = " points" if cell.quantity.unit == "%" else f" {cell.quantity.unit}"
    ends = "" if value.low is None else f" [{value.low:+.2f}, {value.high:+.2f}]"
    # A hyphen would let a line end behind it.
    return f"{value.value:+.2f}{unit}{ends}".replace("-", "−")


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _how(runs: Sequence[Run]) -> list[Block]:
    made = []
    for run in runs:
        info = run.folder.info
        machine = info.get("machine") or {}
        command = " ".join(["shortlane", *map(str, (info.get("command") or [""])[1:])])
        facts = {
            "Command": command,
            "Version": info.get("version"),
            "Kernel": machine.get("kernel"),
            "Seeds": ", ".join(map(str, scenario_of(run.folder).get("seeds") or [])),
        }
        made += [blocks.text(f"{_upper(run.called)}:"), blocks.facts(facts)]
    file = scenario_of(runs[0].folder).get("file")
    if file:
        made.append(blocks.details("The scenario", blocks.code(str(file))))
    return made
