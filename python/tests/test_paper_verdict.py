"""The verdict rule on samples whose answer is known."""

import math
from statistics import mean, stdev

import pytest
from shortlane.paper.claims import Bounds, Check
from shortlane.paper.statistics import PerSeed, Pooled, Statistic
from shortlane.paper.verdict import Outcome, judge, measure

RATIO = Statistic("ratio", lambda tables: PerSeed({}), "ratio", "x")
PLAIN = Statistic("plain", lambda tables: PerSeed({}), "plain", "")

#: Thirty ratios around 0.5, all within 0.4 and 0.6.
AROUND_HALF = {seed: 0.5 * math.exp(0.1 * math.sin(seed)) for seed in range(30)}


def check(at_least=None, at_most=None, *, hard=False):
    return Check("a value", "ratio", "here", {}, Bounds(at_least, at_most), hard)


def measured(values, inequalities=1, statistic=RATIO, **bounds):
    return measure(check(**bounds), statistic, PerSeed(values), inequalities)


def test_an_interval_within_the_bounds_reproduces():
    assert measured(AROUND_HALF, at_most=0.6).outcome is Outcome.REPRODUCED
    assert measured(AROUND_HALF, at_least=0.4, at_most=0.6).outcome is Outcome.REPRODUCED


def test_an_interval_wholly_outside_does_not():
    assert measured(AROUND_HALF, at_most=0.4).outcome is Outcome.NOT_REPRODUCED
    assert measured(AROUND_HALF, at_least=0.6).outcome is Outcome.NOT_REPRODUCED


def test_an_interval_across_a_bound_decides_nothing():
    value = measured(AROUND_HALF, at_most=0.6).value
    assert measured(AROUND_HALF, at_most=value).outcome is Outcome.INCONCLUSIVE


def test_the_interval_is_student_t_on_logarithms():
    one = measured(AROUND_HALF, at_most=0.6)
    logarithms = [math.log(value) for value in AROUND_HALF.values()]
    # 97.5 % quantile of Student's t with 29 degrees of freedom, from the tables.
    reach = 2.04523 * stdev(logarithms) / math.sqrt(30)
    assert one.value == pytest.approx(math.exp(mean(logarithms)))
    assert one.low == pytest.approx(math.exp(mean(logarithms) - reach), rel=1e-5)
    assert one.high == pytest.approx(math.exp(mean(logarithms) + reach), rel=1e-5)
    assert one.n == 30


def test_intervals_of_several_inequalities_hold_together():
    alone, of_five = measured(AROUND_HALF, at_most=0.6), measured(AROUND_HALF, 5, at_most=0.6)
    logarithms = [math.log(value) for value in AROUND_HALF.values()]
    # 99.5 % quantile: 5 % shared by five, on two sides.
    reach = 2.75639 * stdev(logarithms) / math.sqrt(30)
    assert of_five.confidence == pytest.approx(0.99)
    assert of_five.high == pytest.approx(math.exp(mean(logarithms) + reach), rel=1e-5)
    assert of_five.low < alone.low
    # What one inequality alone would decide, five together leave open.
    between = (alone.high + of_five.high) / 2
    assert measured(AROUND_HALF, at_most=between).outcome is Outcome.REPRODUCED
    assert measured(AROUND_HALF, 5, at_most=between).outcome is Outcome.INCONCLUSIVE


def test_bounds_include_their_ends():
    same = dict.fromkeys(range(30), 0.5)
    assert measured(same, statistic=PLAIN, at_most=0.5).outcome is Outcome.REPRODUCED
    assert measured(same, statistic=PLAIN, at_least=0.5).outcome is Outcome.REPRODUCED
    assert measured(dict.fromkeys(range(30), 0.0), statistic=PLAIN, at_most=0).outcome is (
        Outcome.REPRODUCED
    )


@pytest.mark.parametrize("seeds", [0, 1])
def test_too_few_seeds_decide_nothing(seeds):
    one = measured({seed: 0.1 for seed in range(seeds)}, at_most=0.6)
    assert one.outcome is Outcome.INCONCLUSIVE
    assert (one.low, one.n) == (None, seeds)


def test_a_ratio_that_is_not_positive_is_a_mistake_of_the_statistic():
    with pytest.raises(ValueError, match="above 0"):
        measured({1: 0.5, 2: 0.0}, at_most=0.6)


def test_a_row_is_judged_by_its_worst_inequality():
    good, better = measured(AROUND_HALF, at_most=0.6), measured(AROUND_HALF, at_most=5)
    open_one = measured(AROUND_HALF, at_most=good.value)
    bad = measured(AROUND_HALF, at_most=0.4)
    assert judge([better, good]).worst is good
    assert judge([better, good]).outcome is Outcome.REPRODUCED
    assert judge([good, open_one, better]).worst is open_one
    assert judge([good, open_one, better]).outcome is Outcome.INCONCLUSIVE
    assert judge([good, open_one, bad, better]).worst is bad
    assert judge([good, open_one, bad, better]).outcome is Outcome.NOT_REPRODUCED


def test_of_two_that_fail_the_one_further_off_is_shown():
    near, far = measured(AROUND_HALF, at_most=0.4), measured(AROUND_HALF, at_most=0.1)
    assert judge([near, far]).worst is far


def test_calibrated_stands_for_reproduced_only():
    good, bad = measured(AROUND_HALF, at_most=0.6), measured(AROUND_HALF, at_most=0.4)
    open_one = measured(AROUND_HALF, at_most=good.value)
    assert judge([good], calibrated=True).outcome is Outcome.CALIBRATED
    assert judge([bad], calibrated=True).outcome is Outcome.NOT_REPRODUCED
    assert judge([open_one], calibrated=True).outcome is Outcome.INCONCLUSIVE


def test_a_hard_check_must_hold_in_every_run():
    peaks = {1: 120.0, 2: 300.0, 3: 80.0}
    held = measure(check(at_most=300, hard=True), PLAIN, PerSeed(peaks), 4)
    assert (held.outcome, held.value, held.low) == (Outcome.REPRODUCED, 300.0, None)
    broken = measure(check(at_most=299, hard=True), PLAIN, PerSeed(peaks), 4)
    assert (broken.outcome, broken.value) == (Outcome.NOT_REPRODUCED, 300.0)
    none = measure(check(at_most=299, hard=True), PLAIN, PerSeed({}), 4)
    assert (none.outcome, none.value) == (Outcome.INCONCLUSIVE, None)


def test_a_pooled_statistic_has_a_bootstrap_interval():
    parts = [float(seed % 7) for seed in range(30)]
    pooled = Pooled(parts, lambda chosen: max(mean(chosen), 0.0))
    one = measure(check(at_most=4.0), PLAIN, pooled, 1)
    assert one.value == mean(parts)
    assert one.low < one.value < one.high
    # Student's t says nearly the same of a mean.
    reach = 2.04523 * stdev(parts) / math.sqrt(30)
    assert one.high - one.low == pytest.approx(2 * reach, rel=0.2)
    assert one.outcome is Outcome.REPRODUCED
    assert measure(check(at_most=4.0), PLAIN, pooled, 1) == one


def test_the_bootstrap_takes_ten_seeds():
    pooled = Pooled([1.0, 2.0, 3.0], mean)
    one = measure(check(at_most=100.0), PLAIN, pooled, 1)
    assert (one.value, one.low, one.outcome) == (2.0, None, Outcome.INCONCLUSIVE)


def test_a_pooled_statistic_without_a_value_decides_nothing():
    one = measure(check(at_most=1.0), PLAIN, Pooled(list(range(30)), lambda _: math.nan), 1)
    assert (one.value, one.outcome) == (None, Outcome.INCONCLUSIVE)
