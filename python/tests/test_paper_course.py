"""Rows on their way to verdicts, with runs that are only said to be there."""

import math

import polars as pl
import pytest
from shortlane.paper import looks
from shortlane.paper.claims import Bounds, Check, Paper, Point, Quick, Row
from shortlane.paper.course import Course
from shortlane.paper.evidence import Count, note
from shortlane.paper.runs import Job
from shortlane.paper.statistics import PerSeed, Statistic, Tables
from shortlane.paper.verdict import Outcome
from shortlane.paper.words import seeds

SWEEP = {
    "campaign": {"title": "a sweep", "scenario": "efd-paper-8mbit", "seeds": "1..30"},
    "grid": {"traffic.0.rate": ["8mbit", "15mbit"]},
    "schedulers": {"run": ["fifo", "efd", "las"]},
}
FIGURE = {
    "campaign": {"title": "a figure", "scenario": "efd-paper-8mbit", "seeds": "1..30"},
    "schedulers": {"run": ["lars"]},
}
POINTS = {
    "calm": Point("calm", "sweep", {"traffic.0.rate": "8mbit"}),
    "busy": Point("busy", "sweep", {"traffic.0.rate": "15mbit"}),
    "drawn": Point("drawn", "figure", {}),
}


def value(tables, scheduler, points=()):
    """Around 1 with a spread of 1; `efd` without any."""
    spread = 0.0 if scheduler == "efd" else 1.0
    return PerSeed({seed: 1 + spread * math.sin(seed) for seed in tables["flows"]["seed"]})


STATISTICS = {"value": Statistic("value", value, "plain", "")}


class There:
    """Results that have the seeds that are asked for, and all of them if none are."""

    def at(self, point, variant=None, seeds=None):
        chosen = seeds[POINTS[point].campaign] if seeds else range(1, 31)
        return Tables.of({"flows": pl.DataFrame({"seed": sorted(chosen)})})

    def keep(self, points):
        pass


def check(scheduler="fifo", point="calm", hard=False, **bounds):
    words = f"{scheduler}, {point}"
    return Check(words, "value", point, {"scheduler": scheduler}, Bounds(**bounds), hard)


def course(*rows):
    paper = Paper(
        *("a", None, "A paper", "", "", (), {}),
        campaigns=("sweep", "figure"),
        points=POINTS,
        rows=rows,
        variants=(),
        variant_seeds="",
        quick=Quick("1", {}, {}),
    )
    found = [Job("sweep", "sweep", None, SWEEP), Job("figure", "figure", None, FIGURE)]
    return Course(paper, rows, STATISTICS, found, There())


def row(*checks, name="A-1", **more):
    return Row(name, "It is so", "", "", "", checks, **more)


def everything():
    """Every run of every campaign."""
    found = {"sweep": SWEEP, "figure": FIGURE}
    return {
        name: {run.id for run in Job(name, name, None, sweep).campaign().runs()}
        for name, sweep in found.items()
    }


def taken(way):
    """How many runs each look took that took any."""
    counts = []
    for stage in range(len(looks.PARTS)):
        needs = way.needs(stage)
        if needs:
            counts.append({name: len(ids) for name, ids in needs.items()})
        way.look(stage, needs if stage == 0 else everything())
    return counts


def test_a_row_that_the_first_look_decides_takes_no_more():
    way = course(row(check(at_most=10), check("las", "busy", at_least=-10)))
    # Two points, three schedulers, five seeds; of what is only drawn all seeds.
    assert taken(way) == [{"sweep": 2 * 3 * 5, "figure": 30}]
    (found,) = way.judged()
    assert found.verdict.outcome is Outcome.REPRODUCED
    assert (seeds(found.verdict.checks, found.most), note(found)) == ("5 of 30", "")


def test_what_is_open_takes_its_own_points_and_schedulers():
    way = course(row(check(at_most=10), check("las", "busy", at_most=1.5)))
    first, *later = taken(way)
    assert first == {"sweep": 30, "figure": 30}
    assert later[0] == {"sweep": 10}
    (found,) = way.judged()
    decided, other = found.verdict.checks
    assert (decided.n, decided.outcome) == (5, Outcome.REPRODUCED)
    assert other.n > 5


@pytest.mark.parametrize("named", [{"busy": 15}, ["busy"], "busy"])
def test_points_that_are_arguments_are_taken_further_too(named):
    across = Check(
        "both", "value", "calm", {"scheduler": "las", "points": named}, Bounds(at_most=1.5)
    )
    _, *later = taken(course(row(across)))
    assert later[0] == {"sweep": 2 * 10}


def test_one_refused_inequality_ends_a_row():
    way = course(row(check(at_most=1.5), check("efd", at_most=0.5)))
    assert len(taken(way)) == 1
    (found,) = way.judged()
    assert found.verdict.outcome is Outcome.NOT_REPRODUCED
    assert found.verdict.checks[0].outcome is Outcome.INCONCLUSIVE


def test_a_row_at_its_bound_is_given_up_and_says_so():
    way = course(row(check(at_most=1.14)))
    assert len(taken(way)) == 2
    (found,) = way.judged()
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert note(found) == "more seeds would hardly decide"
    assert seeds(found.verdict.checks, found.most) == "10 of 30"


def test_a_row_with_all_its_seeds_is_not_said_to_be_given_up():
    # At the bound after all thirty, and not so near to it before.
    way = course(row(check(at_most=1.14), check("las", "busy", at_most=1.4)))
    taken(way)
    (found,) = way.judged()
    told = note(found) == "more seeds would hardly decide"
    assert told == (max(one.n for one in found.verdict.checks) < 30)


def test_a_row_of_one_look_is_judged_at_five_per_cent():
    way = course(row(check(at_most=10)))
    taken(way)
    share = looks.share_of(0, 30)
    assert way.judged()[0].verdict.checks[0].confidence == pytest.approx(1 - 0.05 * share)


def test_runs_that_nobody_asked_for_change_no_verdict():
    one, other = course(row(check(at_most=1.5))), course(row(check(at_most=1.5)))
    for stage in range(len(looks.PARTS)):
        needs = one.needs(stage)
        assert needs == other.needs(stage)
        one.look(stage, everything())
        there = {name: {*ids, "one more"} for name, ids in everything().items()}
        other.look(stage, there)
    assert one.judged() == other.judged()


def test_before_the_first_look_nothing_is_decided():
    way = course(row(check(at_most=10)))
    needs = way.needs(0)
    ours = {run.id for run in Job("sweep", "sweep", None, SWEEP).campaign().runs()[:1]}
    lacking = {name: ids - ours for name, ids in needs.items()}
    for stage in range(len(looks.PARTS)):
        assert way.needs(stage) == (needs if stage == 0 else {})
        way.look(stage, lacking)
    (found,) = way.judged()
    assert found.verdict.outcome is Outcome.INCONCLUSIVE
    assert found.verdict.checks[0].value is not None
    states = {name: dict.fromkeys(ids, "done") for name, ids in lacking.items()}
    assert way.counts(states) == {"sweep": Count(30, 29, 0), "figure": Count(30, 30, 0)}


def test_hard_checks_take_every_run_that_is_there_and_ask_for_none():
    way = course(row(check(at_most=10, hard=True)))
    assert len(taken(way)) == 1
    (found,) = way.judged()
    assert (found.verdict.outcome, found.verdict.checks[0].n) == (Outcome.REPRODUCED, 30)


def test_what_is_reported_has_the_seeds_of_its_row_or_all_of_a_question():
    beside = course(row(check(at_most=10), reports=(check("las"),)))
    asked = course(row(reports=(check("las"),)))
    for one, n, share in ((beside, 5, looks.share_of(0, 30)), (asked, 30, 1.0)):
        needs = one.needs(0)
        one.look(0, needs)
        (report,) = one.judged()[0].verdict.reports
        assert report.n == n
        assert report.confidence == pytest.approx(1 - 0.05 * share)
    assert {name: len(ids) for name, ids in asked.needs(0).items()} == {"sweep": 180, "figure": 30}
