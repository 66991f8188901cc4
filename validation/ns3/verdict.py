"""Two simulators on the same lists: the ratio, its interval, and what follows."""

from __future__ import annotations

import math
from dataclasses import dataclass

# 97.5 % points of Student's t, by degrees of freedom.
T = {
    1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23,
    11: 2.20, 12: 2.18, 13: 2.16, 14: 2.14, 15: 2.13, 16: 2.12, 17: 2.11, 18: 2.10, 19: 2.09,
}  # fmt: skip

FCT_TOLERANCE = 0.10
DROP_TOLERANCE = 0.15
# Where both drop fewer packets than this there is nothing to compare.
FEW_DROPS = 0.0005


@dataclass(frozen=True)
class Ratio:
    """Of the ensembles' means, ours over theirs, with a 95 % interval."""

    value: float
    low: float
    high: float
    theirs: float
    ours: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(ours: list[float], theirs: list[float]) -> Ratio:
    """Paired by list of transfers: a ratio estimate with the delta method's standard error."""
    n = len(ours)
    mean_ours, mean_theirs = sum(ours) / n, sum(theirs) / n
    value = mean_ours / mean_theirs
    squares = sum((x - value * y) ** 2 for x, y in zip(ours, theirs, strict=True))
    error = math.sqrt(squares / (n - 1) / n) / mean_theirs
    half = T.get(n - 1, 2.09) * error
    return Ratio(value, value - half, value + half, mean_theirs, mean_ours)


def verdict(found: Ratio, tolerance: float) -> str:
    """`holds` and `differs` mean the whole interval; what is between them is `open`."""
    if found.low >= 1 - tolerance and found.high <= 1 + tolerance:
        return "holds"
    if found.high < 1 - tolerance or found.low > 1 + tolerance:
        return "differs"
    return "open"
