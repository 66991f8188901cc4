"""What a comparison yields."""

from __future__ import annotations

from dataclasses import dataclass

from cases import Case
from verdict import Ratio


@dataclass(frozen=True)
class Row:
    case: Case
    metric: str  # a class of transfers: mean completion time; drops: packets dropped / arrived
    ratio: Ratio | None
    verdict: str  # holds, open, differs or few


@dataclass(frozen=True)
class Results:
    rows: list[Row]
    control: list[Row]
    failures: list[tuple[Case, int, int]]  # transfers that did not complete: ours, theirs
    replicates: int
    seconds: float
