"""Rate against delay: what is drawn is what was received, and how long packets took."""

import math

import polars as pl
import pytest
import shortlane
from shortlane import figures
from shortlane.errors import Usage
from shortlane.figures.ellipses import ellipse, rates_and_delays
from shortlane.scenario import Bottleneck, Cbr, Dumbbell, Link, Persistent, Scenario, Tcp

from scenarios import SCENARIO


def scenario(seeds):
    return Scenario(
        title="Two downloads and a call",
        duration="6s",
        warm_up="2s",
        seeds=seeds,
        schedulers=["fifo", "fq-codel"],
        topology=Dumbbell(
            access=Link(rate="100mbit", delay="1ms"),
            bottleneck=Bottleneck(rate="4mbit", delay="10ms", limit="40packets"),
        ),
        traffic=[
            Persistent(name="bulk", flows=2, stagger="100ms", tcp=Tcp(preset="linux")),
            Cbr(name="call", rate="64kbit", packet="160b"),
        ],
    )


@pytest.fixture(scope="module")
def results():
    return shortlane.simulate(scenario([1, 2, 3]), progress=None)


def test_rates_are_of_all_long_flows_after_the_warm_up(results):
    found = rates_and_delays(results, stream="call")
    assert found["scheduler"].to_list() == ["fifo"] * 3 + ["fq-codel"] * 3
    received = results.tables["flows"].polars().filter(pl.col("kind") == "download")
    first = received.filter(pl.col("scheduler") == "fifo", pl.col("seed") == 1)
    assert first.height == 2
    assert found["mbit"][0] == pytest.approx(first["received_bytes"].sum() * 8 / 4e6)
    assert 3.2 < found["mbit"].min() <= found["mbit"].max() < 4
    fifo, fair = found["delay_ms"][0], found["delay_ms"][3]
    assert fifo > 2 * fair > 20, "the call waits behind the downloads of a FIFO"


def test_an_ellipse_is_of_one_standard_deviation_of_both():
    x, y = pl.Series([0.0, 2.0, 4.0]), pl.Series([1.0, 1.0, 4.0])
    points = ellipse(x, y, points=360)
    assert max(x for x, _ in points) == pytest.approx(2 + 2, abs=1e-9)
    assert max(y for _, y in points) == pytest.approx(2 + math.sqrt(3), abs=1e-3)
    # Points of a line have none but the line.
    thin = ellipse(x, 2 * x)
    assert all(y == pytest.approx(2 * x) for x, y in thin)
    flat = ellipse(pl.Series([1.0, 1.0, 1.0]), pl.Series([1.0, 2.0, 3.0]))
    assert {x for x, _ in flat} == {1.0}


def test_a_figure_has_a_marker_and_an_ellipse_per_scheduler(results):
    axes = figures.rate_against_delay(results, stream="call").axes[0]
    assert axes.get_legend_handles_labels()[1] == ["fifo", "fq-codel"]
    assert len(axes.patches) == 2
    assert axes.xaxis_inverted()
    assert axes.get_xlabel() == "delay of call, p95 (ms)"


def test_two_seeds_have_markers_alone():
    two = shortlane.simulate(scenario([1, 2]), progress=None)
    assert not figures.rate_against_delay(two).axes[0].patches


def test_results_without_long_flows_are_refused():
    without = shortlane.simulate(SCENARIO, progress=None)
    with pytest.raises(Usage, match="no long flow"):
        figures.rate_against_delay(without)
