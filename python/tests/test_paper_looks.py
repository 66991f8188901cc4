"""Intervals of rows that are looked at while seeds come, against simulated seeds."""

import itertools
import math
import random

import pytest
from shortlane.paper import looks
from shortlane.paper.claims import Bounds, Check
from shortlane.paper.statistics import PerSeed, Pooled, Statistic
from shortlane.paper.verdict import Outcome, measure

PLAIN = Statistic("plain", lambda tables: PerSeed({}), "plain", "")
RATIO = Statistic("ratio", lambda tables: PerSeed({}), "ratio", "x")
STAGES = range(len(looks.PARTS))
CERTAIN = Check("a value", "plain", "here", {}, Bounds(at_most=0.0))
#: Simulated rows; the spread of a share of 5 % among so many is 0.5 %.
ROWS = 2000


def missed(draw, truth, share, inequalities=1, declared=30):
    """The part of rows with an interval, at any look, that the truth is not in."""
    chance = random.Random(1)
    count = 0
    for _ in range(ROWS):
        values = [draw(chance) for _ in range(declared)]
        count += any(
            not (one.low <= truth <= one.high)
            for stage in STAGES
            if share(stage, declared)
            for n in [looks.seeds_at(stage, declared)]
            for sample in [PerSeed(dict(enumerate(values[:n])))]
            for one in [measure(CERTAIN, PLAIN, sample, inequalities, share(stage, declared))]
        )
    return count / ROWS


def normal(chance):
    return chance.gauss(7.0, 2.0)


@pytest.mark.parametrize("declared", [10, 20, 30])
def test_intervals_hold_at_all_looks_together(declared):
    found = missed(normal, 7.0, looks.share_of, declared=declared)
    assert found <= 0.065
    # Nor are they so wide that nothing is said.
    assert found >= 0.025


def test_without_shares_they_would_not():
    assert missed(normal, 7.0, lambda stage, declared: 1.0) > 0.08


def test_skewed_seeds_are_missed_more_often_but_not_by_much():
    # Logarithms of ratios are less skewed than this; the fixed interval of 30 has 7 %.
    assert missed(lambda chance: chance.expovariate(1.0), 1.0, looks.share_of) <= 0.12


@pytest.mark.parametrize("declared", [1, 2, 3, 4, 5, 6, 7, 10, 12, 20, 30, 100])
def test_shares_are_spent_once_and_wholly(declared):
    shares = [looks.share_of(stage, declared) for stage in STAGES]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0
    seeds = [looks.seeds_at(stage, declared) for stage in STAGES]
    assert seeds == sorted(seeds)
    assert seeds[-1] == declared
    # A look at the same seeds again costs nothing and is none.
    same = [now == before for before, now in itertools.pairwise(seeds)]
    assert [share == 0 for share in shares[1:]] == same


def chances(values, statistic=PLAIN, inequalities=1, stage=1, most=30, **bounds):
    sample = PerSeed(dict(enumerate(values)))
    return looks.chances(
        sample, statistic, Bounds(**bounds), inequalities=inequalities, stage=stage, most=most
    )


def test_chances_are_those_of_what_comes():
    """Against simulation: seeds that go on as the first ten began."""
    chance = random.Random(2)
    first = [chance.gauss(0.0, 1.0) for _ in range(10)]
    centre = sum(first) / 10
    spread = math.sqrt(sum((one - centre) ** 2 for one in first) / 9)
    bound = centre + 0.4 * spread
    inside, outside = chances(first, at_most=bound)
    check = Check("a value", "plain", "here", {}, Bounds(at_most=bound))
    ended = []
    for _ in range(ROWS):
        # The mean to come is as uncertain as that of the first ten.
        mean = chance.gauss(centre, spread / math.sqrt(10))
        values = first + [chance.gauss(mean, spread) for _ in range(20)]
        share = looks.share_of(3, 30)
        ended.append(measure(check, PLAIN, PerSeed(dict(enumerate(values))), 1, share).outcome)
    assert inside == pytest.approx(ended.count(Outcome.REPRODUCED) / ROWS, abs=0.06)
    assert outside == pytest.approx(ended.count(Outcome.NOT_REPRODUCED) / ROWS, abs=0.03)


def test_a_row_at_its_bound_has_no_hope_and_one_far_from_it_has():
    wide = [0.0, 1.0] * 5
    assert looks.hope([chances(wide, at_most=0.5)]) < looks.LEAST_HOPE
    assert looks.hope([chances(wide, at_most=1.0)]) > 0.9
    # What one check cannot reach another may refuse.
    assert looks.hope([chances(wide, at_most=0.5), chances(wide, at_most=0.0)]) > 0.9
    assert looks.hope([chances(wide, at_most=0.5), chances(wide, at_most=1.0)]) < looks.LEAST_HOPE


def test_chances_of_ratios_are_by_their_logarithms():
    values = [0.5, 2.0] * 5
    logarithms = [math.log(one) for one in values]
    assert chances(values, RATIO, at_least=0.7, at_most=2.0) == pytest.approx(
        chances(logarithms, at_least=math.log(0.7), at_most=math.log(2.0))
    )
    assert chances(values, RATIO, at_least=0.0) == (1.0, 0.0)


def test_what_cannot_be_told_goes_on():
    pooled = Pooled([1.0, 2.0], lambda parts: parts[0])
    told = looks.chances(pooled, PLAIN, Bounds(at_most=1.0), inequalities=1, stage=1, most=30)
    assert told == (1.0, 1.0)
    assert chances([3.0], at_most=1.0) == (1.0, 1.0)
    assert chances([1.0, 2.0], most=2, at_most=3.0) == (1.0, 0.0)
    # Values without spread are where they are.
    assert chances([3.0, 3.0], at_most=1.0) == (0.0, 1.0)
