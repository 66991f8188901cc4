"""What may be said about a sample: estimates with intervals, as `shortlane sim` computes them.

Every interval holds with probability `confidence`. An interval takes its values for independent
observations: means of seeds are, values of one run are not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from shortlane import _native
from shortlane.errors import InputError

__all__ = ["Estimate", "bca", "geometric_ratio", "mean", "quantile", "ratio_of_sums"]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number estimated from a sample."""

    value: float
    """The estimate."""
    low: float | None
    """Lower end of its interval; None where the sample is too small for one."""
    high: float | None
    """Upper end of its interval; None where the sample is too small for one."""
    n: int
    """How many independent observations stand behind it."""

    def is_below(self, bound: float) -> bool:
        """Whether the interval lies wholly below `bound`."""
        return self.high is not None and self.high < bound

    def is_above(self, bound: float) -> bool:
        """Whether the interval lies wholly above `bound`."""
        return self.low is not None and self.low > bound

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean(values: Iterable[float], confidence: float = 0.95) -> Estimate | None:
    """Give the mean with an interval by Student's t, from two values on; None of nothing."""
    return _estimate(_native.mean(_numbers(values), confidence))


def quantile(values: Iterable[float], q: float, confidence: float = 0.95) -> Estimate | None:
    """Give the `q`-quantile with an interval between two order statistics, for any distribution.

    None where there are too few values for such an interval: at 95 %, below 6 for the median, 72
    for p95, 368 for p99. The estimate interpolates between the two nearest values (type 7 of
    Hyndman and Fan).
    """
    return _estimate(_native.quantile(_numbers(values), q, confidence))


def geometric_ratio(
    pairs: Iterable[tuple[float, float]], confidence: float = 0.95
) -> Estimate | None:
    """Give the geometric mean of `a / b` over independent pairs, such as means of seeds.

    The interval is by Student's t on the logarithms. None of nothing, and where a number is not
    above 0.
    """
    return _estimate(_native.geometric_ratio(_pairs(pairs), confidence))


def ratio_of_sums(
    pairs: Iterable[tuple[float, float]], confidence: float = 0.95
) -> Estimate | None:
    """Give the sum of all `a` over the sum of all `b`, for independent pairs of sums.

    The interval is by the delta method on the logarithm of the ratio and Student's t, from two
    pairs on. None unless both sums are above 0.
    """
    return _estimate(_native.ratio_of_sums(_pairs(pairs), confidence))


def bca(
    values: Iterable[T],
    statistic: Callable[[list[T]], float],
    confidence: float = 0.95,
    seed: int = 1,
    resamples: int = 10_000,
) -> Estimate | None:
    """Give any statistic with its bias-corrected and accelerated bootstrap interval (Efron 1987).

    `values` are independent observations of any kind, such as pairs; `statistic` takes a list of
    them and gives a finite number. The same seed gives the same interval. No interval below ten
    observations, nor for a statistic that does not vary; None of nothing.
    """
    for name, number in {"seed": seed, "resamples": resamples}.items():
        if not 0 <= number < 1 << 63:
            raise InputError(f"{name} {number} is not accepted: it takes a number from 0 on")
    return _estimate(_native.bca(list(values), statistic, confidence, resamples, seed))


def _estimate(parts: tuple[float, float | None, float | None, int] | None) -> Estimate | None:
    return None if parts is None else Estimate(*parts)


def _numbers(values: Iterable[Any]) -> list[float]:
    return [float(value) for value in values]


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in pairs]
