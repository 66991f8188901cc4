"""Verdicts on a paper's rows, and on the same rows under variants of what it leaves open."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from shortlane.paper.claims import Check, Paper, Row, Variant
from shortlane.paper.runs import Runs, affected
from shortlane.paper.statistics import Statistic, Tables
from shortlane.paper.verdict import Measured, Verdict, judge, measure

__all__ = ["Judged", "Sensitivity", "assembled", "judge_row", "judge_variants"]


@dataclass(frozen=True)
class Judged:
    """A row with its verdict.

    `most` is how many seeds are declared; 0 of a row that has been judged by itself. `hopeless`: it
    ended before them, since all of them would hardly decide it.
    """

    row: Row
    verdict: Verdict
    most: int = 0
    hopeless: bool = False


@dataclass(frozen=True)
class Sensitivity:
    """The rows that a variant concerns, judged under it."""

    variant: Variant
    rows: tuple[Judged, ...]


def judge_row(
    row: Row,
    at: Callable[[str], Tables],
    statistics: Mapping[str, Statistic],
    arguments: Mapping[str, Any] | None = None,
) -> Verdict:
    """The verdict on one row by all runs that there are, looked at once.

    Args:
        row: the claim.
        at: gives the tables of a point.
        statistics: by name.
        arguments: in the place of those of the row's checks, where a statistic takes them.

    """
    inequalities = sum(not check.hard for check in row.checks)

    def measured(check: Check, of: int) -> Measured:
        statistic = statistics[check.statistic]
        changed = {k: v for k, v in (arguments or {}).items() if k in check.arguments}
        check = replace(check, arguments={**check.arguments, **changed})
        return measure(check, statistic, statistic(at(check.point), **check.arguments), of)

    return assembled(row, [measured(check, inequalities) for check in row.checks], measured)


def assembled(
    row: Row, checks: Sequence[Measured], measured: Callable[[Check, int], Measured]
) -> Verdict:
    """The verdict on a row by its checks; `measured` gives the values beside them.

    It takes a check and how many inequalities hold together with it.
    """
    before = None
    if row.revised:
        of = sum(not check.hard for check in row.revised.checks)
        before = judge([measured(check, of) for check in row.revised.checks])
    return judge(
        checks,
        calibrated=bool(row.calibrated),
        before=before,
        reports=[measured(report, 1) for report in row.reports],
        grids=[[[measured(cell, 1) for cell in line] for line in grid.cells] for grid in row.grids],
    )


def judge_variants(
    paper: Paper,
    runs: Runs,
    rows: Collection[Row],
    statistics: Mapping[str, Statistic],
    variants: Sequence[Variant],
) -> list[Sensitivity]:
    """The verdicts on the rows that each variant concerns; without those that concern none."""
    found = []
    for variant in variants:
        at = partial(runs.at, variant=variant)
        judged = tuple(
            Judged(row, judge_row(_judged_part(row), at, statistics, variant.arguments))
            for row in affected(paper, rows, variant)
            if row.checks
        )
        runs.keep(())
        if judged:
            found.append(Sensitivity(variant, judged))
    return found


def _judged_part(row: Row) -> Row:
    return replace(row, reports=(), grids=())
