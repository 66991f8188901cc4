"""A map: disciplines against the better of some peers, a row for each experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shortlane import stats
from shortlane.errors import Usage
from shortlane.figures.tables import scenario_of
from shortlane.report.engines import Run, difference, markdown, runs_of
from shortlane.report.quantities import (
    COMPLETION,
    DELAY,
    LOST,
    QUANTITIES,
    RATE,
    TWINS,
    UNFINISHED,
    USE,
    Quantity,
    Values,
)

__all__ = ["map_of"]

#: What is judged, with the difference that counts as little: part of the value, or as it is.
LITTLE = {COMPLETION: 0.02, UNFINISHED: 0.5, RATE: 0.02, DELAY: 0.5, LOST: 0.5, USE: 0.5}
#: The others are better if they are less.
MORE_IS_BETTER = (RATE, USE)
BETTER, EVEN, LITTLE_WORSE, WORSE, UNJUDGED = (
    "better",
    "no difference",
    "worse by little",
    "worse",
    "one round",
)


@dataclass(frozen=True)
class Judged:
    """One quantity of a discipline, against the better of its peers."""

    text: str
    verdict: str


def map_of(directories: Sequence[Path], peers: Sequence[str]) -> str:
    """Tables in Markdown: how many cells are better or worse, then a map for each discipline.

    Raises `Usage` for a peer that a result does not have, and `InputError` for what is no result.
    """
    experiments = [(directory, runs_of([directory])[0]) for directory in directories]
    names = [TWINS.get(peer, peer) for peer in peers]
    maps: dict[str, dict[str, dict[str, Judged]]] = {}
    for directory, run in experiments:
        title = str(scenario_of(run.folder).get("title") or directory.name)
        for scheduler, cells in _judged(run, names, directory).items():
            maps.setdefault(scheduler, {})[title] = cells
    made = [_counts(maps)]
    made += [_map(scheduler, rows) for scheduler, rows in maps.items()]
    return "\n".join(made)


def _judged(run: Run, peers: Sequence[str], directory: Path) -> dict[str, dict[str, Judged]]:
    """Of each discipline that is no peer, by the heading of the column."""
    found: dict[str, dict[str, Judged]] = {}
    seen = set()
    for quantity in LITTLE:
        values = QUANTITIES[quantity](run.folder)
        if quantity is RATE:
            values = _together(values)
        elif quantity is COMPLETION:
            values = _briefly(values)
        seen |= {scheduler for _, scheduler in values}
        for (what, scheduler), own in values.items():
            # Acknowledgments are none of a link's use.
            if scheduler in peers or (quantity is USE and what != "way there"):
                continue
            of_peers = [(peer, values.get((what, peer), {})) for peer in peers]
            cell = _cell(quantity, own, of_peers)
            if cell is not None:
                heading = SHORT[quantity] if quantity is USE else f"{SHORT[quantity]} {what}"
                found.setdefault(scheduler, {})[heading] = cell
    if missing := [peer for peer in peers if peer not in seen]:
        raise Usage(
            f"{directory}: nothing of {', '.join(missing)}; accepted: {', '.join(sorted(seen))}"
        )
    return found


#: What columns begin with.
SHORT = {
    COMPLETION: "time of",
    UNFINISHED: "unfinished, % of",
    RATE: "rate of",
    DELAY: "p99 of",
    LOST: "lost, % of",
    USE: "link used, %",
}


def _together(rates: dict[tuple[str, str], Values]) -> dict[tuple[str, str], Values]:
    """All long flows as one: who of them gets more is not a matter of better or worse."""
    sums: dict[tuple[str, str], Values] = {}
    for (_, scheduler), values in rates.items():
        own = sums.setdefault(("long flows", scheduler), {})
        for at, value in values.items():
            own[at] = own.get(at, 0.0) + value
    return sums


def _briefly(times: dict[tuple[str, str], Values]) -> dict[tuple[str, str], Values]:
    """Traffic whose transfers are all of one class of sizes by its name alone."""
    whats = {what for what, _ in times}
    traffic = [what.rpartition(", ")[0] for what in whats]
    brief = {what: what.rpartition(", ")[0] for what in whats}
    return {
        (brief[what] if traffic.count(brief[what]) == 1 else what, scheduler): values
        for (what, scheduler), values in times.items()
    }


def _cell(quantity: Quantity, own: Values, of_peers: Sequence[tuple[str, Values]]) -> Judged | None:
    sign = -1.0 if quantity in MORE_IS_BETTER else 1.0
    if not quantity.relative and not any(
        any(one.values()) for one in (own, *dict(of_peers).values())
    ):
        # Nobody lost anything.
        return None
    means = [
        (sign * mean.value, peer, values)
        for peer, values in of_peers
        if (mean := stats.mean(values.values())) is not None
    ]
    if not means:
        return None
    _, peer, values = min(means, key=lambda one: one[0])
    against = difference(own, values, quantity)
    if against is None:
        # Nothing to divide by, such as two that lose nothing.
        return None
    verdict = _verdict(quantity, against, sign)
    text = _text(quantity, against) + f" {peer}"
    if verdict == BETTER:
        text = f"**{text}**"
    elif verdict in (WORSE, LITTLE_WORSE):
        text = f"_{text}_"
    return Judged(text, verdict)


def _verdict(quantity: Quantity, against: stats.Estimate, sign: float) -> str:
    if against.low is None:
        return UNJUDGED
    even = quantity.even
    worse, better = against.is_above(even), against.is_below(even)
    if sign < 0:
        worse, better = better, worse
    if better:
        return BETTER
    if not worse:
        return EVEN
    return LITTLE_WORSE if abs(against.value - even) <= LITTLE[quantity] else WORSE


def _text(quantity: Quantity, against: stats.Estimate) -> str:
    form = "{:.2f}" if quantity.relative else "{:+.2f}"
    text = form.format(against.value)
    if against.low is None or against.high is None or against.low == against.high:
        return text
    return f"{text} ({form.format(against.low)} to {form.format(against.high)})"


def _counts(maps: dict[str, dict[str, dict[str, Judged]]]) -> str:
    verdicts = (BETTER, EVEN, LITTLE_WORSE, WORSE, UNJUDGED)
    lines = [["cells", *verdicts], ["---", *["---:"] * len(verdicts)]]
    for scheduler, rows in maps.items():
        all_of_it = [cell.verdict for cells in rows.values() for cell in cells.values()]
        lines.append([scheduler, *(str(all_of_it.count(verdict)) for verdict in verdicts)])
    return markdown(lines)


def _map(scheduler: str, rows: dict[str, dict[str, Judged]]) -> str:
    headings = list(dict.fromkeys(heading for cells in rows.values() for heading in cells))
    begins = list(SHORT.values())
    headings.sort(
        key=lambda one: next(i for i, begin in enumerate(begins) if one.startswith(begin))
    )
    lines = [[scheduler, *headings], ["---", *["---:"] * len(headings)]]
    for title, cells in rows.items():
        lines.append([title, *(cells[one].text if one in cells else "" for one in headings)])
    return markdown(lines)
