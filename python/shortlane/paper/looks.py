"""After how many seeds a paper's runs are looked at, and what each look costs.

A row is judged again and again while seeds come, and its runs end when it is decided. Its intervals
hold at all looks together: each look has a share of the error, and the shares add up to one (alpha
spending, Lan and DeMets 1983, by the square of the part of the seeds, Kim and DeMets 1987; repeated
confidence intervals, Jennison and Turnbull 1989). Shares are added up as they are (Bonferroni), so
that the intervals hold together whatever they are made by, and whatever ends the runs.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

from shortlane.paper.claims import Bounds
from shortlane.paper.statistics import PerSeed, Sample, Statistic
from shortlane.paper.verdict import confidence_of_each

__all__ = ["PARTS", "chances", "hope", "seeds_at", "share_of"]

#: Of the declared seeds: after these parts of them there is a look.
PARTS = (1 / 6, 1 / 3, 2 / 3, 1.0)
#: There is no look at fewer seeds, unless no more are declared.
LEAST = 4
#: A row whose chance of being decided by all its seeds is below this ends early, from this look on.
LEAST_HOPE, HOPE_FROM = 0.2, 1


def seeds_at(stage: int, declared: int) -> int:
    """How many of the declared seeds have run at a look."""
    return min(declared, max(LEAST, math.ceil(PARTS[stage] * declared)))


def share_of(stage: int, declared: int) -> float:
    """The share of a look in the error of an interval; 0 if it has no more seeds than the last."""
    now = seeds_at(stage, declared)
    before = seeds_at(stage - 1, declared) if stage else 0
    return (now**2 - before**2) / declared**2


def chances(
    sample: Sample,
    statistic: Statistic,
    bounds: Bounds,
    *,
    inequalities: int,
    stage: int,
    most: int,
) -> tuple[float, float]:
    """About how likely a check is to be inside its bounds after all seeds, and outside.

    By the normal distribution, from the mean and the spread at a look. It decides how long is run,
    and no verdict: the intervals hold whatever ends the runs.
    """
    values = list(sample.values.values()) if isinstance(sample, PerSeed) else []
    if len(values) < 2:
        return 1.0, 1.0
    ratios = statistic.scale == "ratio"
    own = [math.log(value) for value in values] if ratios else values
    last = len(own) * most / seeds_at(stage, most)
    spread = stdev(own)
    ahead = NormalDist(fmean(own), spread * math.sqrt(1 / len(own) - 1 / last))
    share = next(share for place in reversed(range(len(PARTS))) if (share := share_of(place, most)))
    confidence = confidence_of_each(inequalities, share)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * spread / math.sqrt(last)

    def below(bound: float | None, open_end: float, shift: float) -> float:
        if bound is None or (ratios and bound <= 0):
            return open_end
        return _below(ahead, (math.log(bound) if ratios else bound) + shift)

    low, high = bounds.at_least, bounds.at_most
    inside = below(high, 1.0, -reach) - below(low, 0.0, reach)
    return max(inside, 0.0), below(low, 0.0, -reach) + 1 - below(high, 1.0, reach)


def hope(checks: Sequence[tuple[float, float]]) -> float:
    """At most how likely a row is to be decided, by the `chances` of its open checks."""
    return min(inside for inside, _ in checks) + sum(outside for _, outside in checks)


def _below(law: NormalDist, value: float) -> float:
    return law.cdf(value) if law.stdev else float(law.mean <= value)
