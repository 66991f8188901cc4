"""The fair service curve paper: its claims, each of its statistics by hand, one row end to end."""

import inspect
import sys

import polars as pl
import pytest
from commands import run
from shortlane.paper import catalog, data, evidence
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import Tables

stats = catalog.code(data.folder("fair-service-curve"), "stats")
STATISTICS, departures, fsc = stats.STATISTICS, stats.departures, stats.fsc

MS = 1_000_000


def flows(*rows):
    """A row: scheduler, seed, group, seconds."""
    full = [
        (scheduler, seed, group, place, round(seconds * 1000 * MS), round(seconds * 1000 * MS))
        for place, (scheduler, seed, group, seconds) in enumerate(rows)
    ]
    columns = ["scheduler", "seed", "traffic", "index", "completion_ns", "end_ns"]
    return Tables.of({"flows": pl.DataFrame(full, schema=columns, orient="row")})


def values(name, of, /, **arguments):
    return dict(STATISTICS[name](of, **arguments).values)


def test_the_paper_has_every_row_of_its_section():
    paper = catalog.named("fair-service-curve")
    section = "C-TOY C-TOY2 C-F3 C-F4a C-F4b C-F4c C-REC"
    assert " ".join(row.id for row in paper.rows) == section
    # The fluid example has one run, so that no interval is made up for it.
    assert all(check.hard for row in paper.rows[:2] for check in row.checks)


def test_times_are_means_of_a_group():
    of = flows(
        ("fsc:bpr=1", 1, "a", 4),
        ("fsc:bpr=1", 1, "a", 2),
        ("fsc:bpr=1", 1, "b", 1),
        (fsc(4, 6000), 1, "a", 1),
        (fsc(4, 6000), 1, "b", 2),
    )
    pair = {"scheduler": "fsc:bpr=4,pbs=6000b", "to": "fsc:bpr=1"}
    assert values("time", of, scheduler="fsc:bpr=1", of="a") == {1: 3}
    assert values("time-ratio", of, of="a", **pair) == pytest.approx({1: 1 / 3})
    assert values("groups-faster", of, groups=["a", "b"], **pair) == {1: 1}
    assert values("best-group", of, groups=["a", "b"], **pair) == pytest.approx({1: 1 / 3})


def test_flows_that_end_at_another_time_or_under_one_alone_differ():
    ours = flows(("x", 1, "a", 1), ("x", 1, "a", 2), ("x", 1, "a", 3))["flows"]
    other = ours.with_columns(
        scheduler=pl.lit("y"), end_ns=pl.col("end_ns") + pl.col("index").eq(1).cast(pl.Int64)
    )
    both = Tables.of({"flows": pl.concat([ours, other.head(2)])})
    assert values("departures-differ", both, scheduler="x", other="y") == {1: 2}
    assert values("departures-differ", both, scheduler="x", other="x") == {1: 0}


GRID = {
    **{(4, 1000, seed): 3 for seed in (1, 2)},
    (4, 2000, 1): 1,
    (4, 2000, 2): 2.5,
    (4, 4000, 1): 2,
    (4, 4000, 2): 1,
    (16, 2000, 1): 0.5,
    (16, 2000, 2): 0.5,
    (16, 4000, 1): 1,
    (16, 4000, 2): 1,
}


def grid():
    rows = [(fsc(bpr, pbs), seed, "a", time) for (bpr, pbs, seed), time in GRID.items()]
    return flows(*rows, ("pfq", 1, "a", 4), ("pfq", 2, "a", 4))


def test_the_best_burst_is_that_of_a_seed_and_gains_are_at_that_of_all():
    of = {"of": "a", "bpr": 4, "grid": [1000, 2000, 4000], "length": 2000}
    assert values("best-pbs", grid(), **of) == {1: 1, 2: 2}
    # T(4) is 2 and 1 at that burst, T(16) 1 and 1, T(1) 4.
    of = {"of": "a", "at": 4, "grid": [1000, 2000, 4000]}
    assert values("gain", grid(), ratios=[4, 16], **of) == {1: 0.25, 2: 0}
    assert values("gain", grid(), ratios=[1, 4], **of) == {1: 0.5, 2: 0.75}


def bursts():
    """Two bursts of four packets: two with one packet of others between them, then three.

    The second burst waits twice as long.
    """
    rows, at = [], 0
    for burst in (0, 1):
        start = at = burst * 1500
        for place, others in enumerate((0, 1, 3, 3)):
            for _ in range(others):
                at += 1
                rows.append(("x", 1, "stream/0", at * MS, 0))
            at += 1
            rows.append(("x", 1, "burst", start * MS, (at - start) * MS * (1 + burst)))
            assert place < 4
        at *= 2
    columns = ["scheduler", "seed", "stream", "sent_ns", "delay_ns"]
    lost = ("x", 1, "burst", 1500 * MS, None)
    return Tables.of({"probes": pl.DataFrame([*rows, lost], schema=columns, orient="row")})


def test_departures_are_counted_among_those_of_others():
    first = departures(bursts()["probes"], "x").filter(pl.col("burst") == 0)
    assert first["place"].to_list() == [1, 2, 3, 4]
    assert first["others"].to_list() == [0, 1, 4, 7]
    assert first["since_ns"].to_list() == [1 * MS, 3 * MS, 7 * MS, 11 * MS]


def test_delay_and_spacing_of_bursts():
    # Waits of 1, 3, 7 and 11 ms, and twice these.
    assert values("burst-delay", bursts(), scheduler="x") == {1: (22 + 44) / 8}
    assert values("burst-delay-ratio", bursts(), scheduler="x", to="x") == {1: 1}
    assert values("second-burst", bursts(), scheduler="x") == {1: 2}
    one = bursts()["probes"].filter(pl.col("sent_ns") < 1000 * MS)
    first = Tables.of({"probes": one})
    assert values("spacing", first, scheduler="x", first=1, last=2) == {1: 1}
    assert values("spacing", first, scheduler="x", first=2, last=4) == {1: 3}
    assert values("spacing-ratio", first, scheduler="x", preferred=2) == pytest.approx({1: 1 / 3})


def test_every_statistic_of_the_paper_is_covered_here():
    here = inspect.getsource(sys.modules[__name__])
    own = [name for name in STATISTICS if name not in SHARED]
    assert [name for name in own if f'"{name}"' not in here] == []


def test_the_fluid_example_from_runs_to_page(tmp_path):
    out = tmp_path / "out"
    rows = "C-TOY,C-TOY2"
    ended = run("paper", "fair-service-curve", "--quick", "--rows", rows, "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    found = evidence.read(out / evidence.FILE)
    assert [row.verdict for row in found.rows] == ["reproduced", "reproduced"]
    page = (out / "README.md").read_text()
    assert "too few seeds" not in page
