"""The verdict on a claim: interval by interval, and the worst of a row's inequalities.

* One seed gives one value, from schedulers that met the same arrivals. Ratios are averaged and
  given their intervals on the logarithm.
* The interval is Student's t; of a statistic that only the seeds together have, the BCa bootstrap.
* A row of several inequalities holds if all hold: each has its interval at 1 - 5 %/k (Bonferroni),
  so that all k of them together are right 95 times in 100. Of a row that is looked at while seeds
  come, each look has a share of the 5 % (`looks`).
* Reproduced: every interval lies within its bounds. Not reproduced: one lies wholly outside. Else
  inconclusive. Calibrated instead of reproduced where a choice of ours was derived from the claim;
  the row says which.
* A criterion that was revised after runs is reported as it was, too.
* A hard check must hold in every run; it has no interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from shortlane import stats
from shortlane.paper.claims import Bounds, Check
from shortlane.paper.statistics import PerSeed, Pooled, Sample, Statistic

__all__ = ["Measured", "Outcome", "Verdict", "confidence_of_each", "judge", "measure", "worst_of"]

#: What all intervals of a row hold together with.
CONFIDENCE = 0.95
#: Of the bootstrap: at least so many, and so many beyond each end of the interval.
RESAMPLES, BEYOND = 2000, 10


class Outcome(StrEnum):
    """What came out, of a row or of one of its checks."""

    REPRODUCED = "reproduced"
    CALIBRATED = "calibrated"
    INCONCLUSIVE = "inconclusive"
    NOT_REPRODUCED = "not reproduced"
    #: Of a row without checks.
    REPORTED = "reported"


@dataclass(frozen=True)
class Measured:
    """A check with our value: its interval (None without one), over how many seeds, the outcome."""

    check: Check
    unit: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    #: What its interval holds with; None of one that was read from a file, which does not say.
    confidence: float | None
    outcome: Outcome

    @property
    def margin(self) -> float:
        """How far the value is inside its bounds, relative to the nearest: below 0 is outside."""
        if self.value is None:
            return -math.inf
        bounds = self.check.bounds
        margins = [math.inf]
        if bounds.at_least is not None:
            margins.append((self.value - bounds.at_least) / (abs(bounds.at_least) or 1.0))
        if bounds.at_most is not None:
            margins.append((bounds.at_most - self.value) / (abs(bounds.at_most) or 1.0))
        return min(margins)


@dataclass(frozen=True)
class Verdict:
    """A row's outcome, the check that decided it (None without checks), and all values."""

    outcome: Outcome
    worst: Measured | None
    checks: tuple[Measured, ...]
    reports: tuple[Measured, ...] = ()
    #: By grid, row and column.
    grids: tuple[tuple[tuple[Measured, ...], ...], ...] = ()
    #: By the criterion as it was before runs.
    before: "Verdict | None" = None


def judge(
    checks: Sequence[Measured],
    *,
    calibrated: bool = False,
    reports: Sequence[Measured] = (),
    grids: Sequence[Sequence[Sequence[Measured]]] = (),
    before: Verdict | None = None,
) -> Verdict:
    """The verdict on a row by its checks, which is that of the worst of them."""
    tables = tuple(tuple(map(tuple, grid)) for grid in grids)
    if not checks:
        return Verdict(Outcome.REPORTED, None, (), tuple(reports), tables)
    worst = worst_of(checks)
    outcome = worst.outcome
    if calibrated and outcome is Outcome.REPRODUCED:
        outcome = Outcome.CALIBRATED
    return Verdict(outcome, worst, tuple(checks), tuple(reports), tables, before)


def worst_of(checks: Sequence[Measured]) -> Measured:
    """The check that decides a row: of the worst outcome the one furthest out of its bounds."""
    order = [Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE, Outcome.REPRODUCED]
    return min(checks, key=lambda one: (order.index(one.outcome), one.margin))


def confidence_of_each(inequalities: int, share: float = 1.0) -> float:
    """What each interval of a row holds with, so that all of them hold together.

    `share` is that of the look at which the interval is made.
    """
    return 1 - (1 - CONFIDENCE) * share / max(inequalities, 1)


def measure(
    check: Check, statistic: Statistic, sample: Sample, inequalities: int, share: float = 1.0
) -> Measured:
    """A check with our value.

    Args:
        check: what to compare with.
        statistic: where the sample is from.
        sample: values or parts of seeds.
        inequalities: how many checks of its row have an interval; 1 for one by itself.
        share: of the error, that of the look; 1 if there is only one.

    """
    if check.hard:
        return _hard(check, statistic, sample)
    confidence = confidence_of_each(inequalities, share)
    n, value, interval = _estimate(sample, statistic, confidence)
    low, high = interval if interval is not None else (None, None)
    outcome = _outcome(check.bounds, low, high)
    return Measured(check, statistic.unit, value, low, high, n, confidence, outcome)


def _hard(check: Check, statistic: Statistic, sample: Sample) -> Measured:
    if isinstance(sample, Pooled):
        raise TypeError("a hard check takes one value a seed")
    values = list(sample.values.values())
    if not values:
        return Measured(check, statistic.unit, None, None, None, 0, 1.0, Outcome.INCONCLUSIVE)
    worst = min(values) if check.bounds.at_least is not None else max(values)
    outcome = _outcome(check.bounds, min(values), max(values))
    if outcome is Outcome.INCONCLUSIVE:
        outcome = Outcome.NOT_REPRODUCED
    return Measured(check, statistic.unit, worst, None, None, len(values), 1.0, outcome)


def _outcome(bounds: Bounds, low: float | None, high: float | None) -> Outcome:
    if low is None or high is None:
        return Outcome.INCONCLUSIVE
    least = -math.inf if bounds.at_least is None else bounds.at_least
    most = math.inf if bounds.at_most is None else bounds.at_most
    if least <= low and high <= most:
        return Outcome.REPRODUCED
    return Outcome.NOT_REPRODUCED if high < least or most < low else Outcome.INCONCLUSIVE


def _estimate(
    sample: Sample, statistic: Statistic, confidence: float
) -> tuple[int, float | None, tuple[float, float] | None]:
    """How many seeds, the value, its interval."""
    if isinstance(sample, Pooled):
        return _pooled(sample, confidence)
    return _per_seed(sample, statistic.scale == "ratio", confidence)


def _per_seed(
    sample: PerSeed, on_the_logarithm: bool, confidence: float
) -> tuple[int, float | None, tuple[float, float] | None]:
    values = list(sample.values.values())
    if on_the_logarithm and any(value <= 0 for value in values):
        raise ValueError("a ratio is above 0")
    if not values:
        return 0, None, None
    to, back = (math.log, math.exp) if on_the_logarithm else (float, float)
    logarithms = [to(value) for value in values]
    estimate = stats.mean(logarithms, confidence)
    if estimate is None or estimate.low is None or estimate.high is None:
        return len(values), values[0], None
    return len(values), back(estimate.value), (back(estimate.low), back(estimate.high))


def _pooled(
    sample: Pooled, confidence: float
) -> tuple[int, float | None, tuple[float, float] | None]:
    parts = list(sample.parts)
    if not parts:
        return 0, None, None
    value = sample.value(parts)
    if not math.isfinite(value):
        return len(parts), None, None
    resamples = max(RESAMPLES, math.ceil(2 * BEYOND / (1 - confidence)))
    estimate = stats.bca(parts, sample.value, confidence, resamples=resamples)
    if estimate is None or estimate.low is None or estimate.high is None:
        return len(parts), value, None
    return len(parts), value, (estimate.low, estimate.high)
