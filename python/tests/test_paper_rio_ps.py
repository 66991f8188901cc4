"""The mice and elephants slides: claims, statistics with known answers, a tiny run."""

import math
import shutil

import polars as pl
import pytest
from commands import run
from shortlane.paper import catalog, data, evidence
from shortlane.paper.runs import jobs
from shortlane.paper.statistics import Tables

stats = catalog.code(data.folder("rio-ps"), "stats")
STATISTICS, jain_by_round = stats.STATISTICS, stats.jain_by_round

SECOND = 10**9
#: Of the second half of a run in the star.
LATE = 2000 * SECOND


def of(name, tables, /, **arguments):
    """The values by seed of a statistic."""
    return STATISTICS[name](tables, **arguments).values


def tables(**found):
    return Tables.of({name: pl.DataFrame(rows) for name, rows in found.items()})


def flow(scheduler="a", **changed):
    """A web object of 10 packets that took a second."""
    return {
        "scheduler": scheduler,
        "seed": 1,
        "traffic": "web",
        "size_bytes": 4600,
        "start_ns": LATE,
        "planned_ns": LATE,
        "end_ns": LATE + SECOND,
        "completion_ns": SECOND,
        "received_bytes": 4600,
        "packets": 12,
        "dropped_packets": 0,
        "marked_packets": 0,
        "sent_short_lane": 12,
        "dropped_short_lane": 0,
        "sent_long_lane": 0,
    } | changed


def test_the_slides_have_every_row_of_their_section():
    paper, _, drawing = catalog.known("rio-ps")
    section = "E-F1 E-F2 E-T1a E-T1b E-T1c E-F6a E-F6b E-F7a E-F7b E-F8 E-F9 E-T4 E-C1"
    assert " ".join(row.id for row in paper.rows) == section
    figures = {row.figure for row in paper.rows}.difference({""})
    assert {plot.id for plot in drawing.FIGURES} == figures
    assert len(jobs(paper, paper.rows, quick=True, variants=())) == 5


def test_the_published_totals_of_table_1_are_the_sums_of_short_and_long():
    paper, _, _ = catalog.known("rio-ps")
    by_id = {row.id: row for row in paper.rows}
    short, total, long = (
        [one.published for one in by_id[name].reports if one.statistic == "class-goodput"]
        for name in ("E-T1a", "E-T1b", "E-T1c")
    )
    assert len(total) == 6
    assert [a + b for a, b in zip(short, long, strict=True)] == total


def test_slopes_are_of_least_squares_lines():
    """Times whose mean grows as e^(20 p), and whose coefficient of variation stays."""
    points = {"low": 0.01, "mid": 0.03, "high": 0.1}

    def at(loss):
        scale = math.exp(20 * loss) * SECOND
        rows = [
            {"seed": 1, "traffic": traffic, "completion_ns": int(scale * factor)}
            for traffic in ("short", "long")
            for factor in (1.0, 2.0)
        ]
        return tables(flows=rows)

    every = Tables.of({}, **{name: at(loss) for name, loss in points.items()})
    mean = of("slope", every, of="mean", traffic="short", points=points)
    assert mean[1] == pytest.approx(20)
    assert of("slope", every, of="cv", traffic="long", points=points)[1] == pytest.approx(
        0, abs=1e-6
    )
    difference = of(
        "slope-difference", every, of="mean", traffic="short", less="long", points=points
    )
    assert difference[1] == pytest.approx(0)


def test_goodput_of_a_class_is_in_packets_of_data():
    rows = [
        flow("a", traffic="short", received_bytes=460 * 30, completion_ns=20 * SECOND),
        flow("a", traffic="long", received_bytes=460 * 70, completion_ns=None),
        flow("b", traffic="short", received_bytes=460 * 60, completion_ns=5 * SECOND),
        flow("b", traffic="long", received_bytes=460 * 40, completion_ns=None),
    ]
    links = [{"scheduler": name, "seed": 1, "rate_bps": 8000} for name in ("a", "b")]
    found = tables(flows=rows, links=links)
    both = ["short", "long"]
    assert of("class-goodput", found, traffic=["short"], scheduler="a") == {1: 30}
    assert of("class-goodput-ratio", found, traffic=["short"], scheduler="a", to="b") == {1: 0.5}
    assert of("class-goodput-ratio", found, traffic=both, scheduler="a", to="b") == {1: 1.0}
    part = of("class-goodput-part", found, traffic=["short"], scheduler="b", packets=120)
    assert part == {1: 0.5}
    # 30 packets of 4000 bits in the 500 s of a link that carries 4,000,000 bits.
    assert of("class-share", found, traffic="short", scheduler="a") == {1: pytest.approx(0.03)}
    excess = of("class-share-excess", found, traffic="short", scheduler="b", over="a")
    assert excess == {1: pytest.approx(0.03)}
    # Half of the time of the first, and all of the second, is within 10 s.
    within = [
        of("round-goodput", found, traffic="short", scheduler=name, seconds=10) for name in "ab"
    ]
    assert within == [{1: 15}, {1: 60}]


def test_responses_are_compared_size_by_size():
    """Twice as long for 5 packets, half as long for 10: 1 on the geometric mean of two bins."""
    small, large = {"size_bytes": 460}, {"size_bytes": 4600}
    rows = [
        flow("a", **small, completion_ns=2 * SECOND),
        flow("a", **large, completion_ns=2 * SECOND),
        flow("a", **large, completion_ns=None),
        flow("a", **large, start_ns=LATE - 1, completion_ns=90 * SECOND),
        flow("a", traffic="mice", completion_ns=90 * SECOND),
        flow("b", **small, completion_ns=SECOND),
        flow("b", **large, completion_ns=4 * SECOND),
    ]
    later = [flow("a", completion_ns=3 * SECOND), flow("b", completion_ns=SECOND)]
    found = Tables.of({"flows": pl.DataFrame(rows)}, later=tables(flows=later))
    whole = of("object-response-ratio", found, scheduler="a", to="b", sizes=[1, 10])
    assert whole[1] == pytest.approx(1.0)
    change = of(
        "object-response-change", found, scheduler="a", to="b", sizes=[10, 10], before="later"
    )
    assert change[1] == pytest.approx(0.5 / 3)


def test_queues_are_those_of_the_bottleneck_after_the_warm_up():
    links = [
        {"scheduler": name, "seed": 1, "link": link, "backlog_mean_packets": mean}
        for name, link, mean in (
            ("a", "servers", 30.0),
            ("a", "other", 1.0),
            ("b", "servers", 60.0),
        )
    ]
    samples = [
        {"scheduler": name, "seed": 1, "link": "servers", "t_ns": t, "backlog_packets": packets}
        for name, packets in (("a", 10), ("b", 30))
        for t, packets in ((0, 900), (LATE, 0), (LATE + 1, packets))
    ]
    found = tables(links=links, samples=samples)
    assert of("queue-mean-ratio", found, scheduler="a", to="b") == {1: 0.5}
    assert of("queue-mean", found, scheduler="a") == {1: 30}
    deviation = of("queue-deviation-ratio", found, scheduler="a", to="b")
    assert deviation[1] == pytest.approx(1 / 3)


def test_signals_are_drops_and_marks_by_size_of_the_flow():
    rows = [
        flow(packets=100, dropped_packets=1, marked_packets=1),
        flow(size_bytes=460 * 500, packets=500, dropped_packets=10, marked_packets=40),
        flow(size_bytes=460 * 500, start_ns=0, packets=500, dropped_packets=500),
    ]
    found = tables(flows=rows)
    sizes = {"sizes": [1, 10], "to_sizes": [101, 1000]}
    assert of("signal-ratio", found, scheduler="a", **sizes)[1] == pytest.approx(0.2)
    assert of("signal-rate", found, scheduler="a", sizes=[101, 1000])[1] == pytest.approx(10)


def test_jain_is_by_round_and_counts_what_was_not_complete():
    late = LATE + 100 * SECOND
    rows = [
        flow(traffic="mice", completion_ns=SECOND),
        flow(traffic="mice", completion_ns=SECOND),
        flow(traffic="mice", planned_ns=late, completion_ns=SECOND, end_ns=late + 50 * SECOND),
        flow(traffic="mice", planned_ns=late, completion_ns=None, end_ns=None),
        flow(traffic="web", planned_ns=late, end_ns=late + 200 * SECOND),
    ]
    # Two rounds: all alike is 1; one of two is 1/2.
    rounds = jain_by_round(pl.DataFrame(rows).lazy(), "mice", 100).sort("planned_ns").collect()
    assert rounds["index"].to_list() == [1.0, 0.5]
    found = tables(flows=rows + [one | {"scheduler": "b"} for one in rows[:2] + rows[-1:]])
    assert of("jain", found, traffic="mice", scheduler="a", spare=100) == {1: 0.75}
    # Without the rounds of the last 201 s one is left.
    assert of("jain", found, traffic="mice", scheduler="a", spare=201) == {1: 1.0}
    less = of("jain-difference", found, traffic="mice", scheduler="a", over="b", spare=100)
    assert less == {1: -0.25}
    ratio = of("traffic-response-ratio", found, traffic="mice", scheduler="a", to="b", spare=100)
    assert ratio == {1: 1.0}
    assert of("traffic-response", found, traffic="mice", scheduler="a", spare=100) == {1: 1.0}


def test_late_goodput_takes_the_late_part_of_a_transfer():
    half = {"start_ns": LATE - 10 * SECOND, "end_ns": LATE + 10 * SECOND}
    rows = [
        flow("a", received_bytes=4600, **half),
        flow("a", received_bytes=9200, start_ns=LATE, end_ns=None),
        flow("a", received_bytes=4600, start_ns=0, end_ns=SECOND),
        flow("b", received_bytes=4600),
    ]
    found = tables(flows=rows)
    assert of("late-goodput", found, scheduler="a", since=2000) == {1: pytest.approx(25)}
    ratio = of("late-goodput-ratio", found, scheduler="a", to="b", since=2000)
    assert ratio == {1: pytest.approx(2.5)}


def test_the_first_packets_are_short_and_flows_count_by_their_packets():
    rows = [
        flow(),
        flow(packets=30, sent_short_lane=9, dropped_short_lane=1, sent_long_lane=20),
        flow(packets=30, sent_short_lane=9, sent_long_lane=21),
    ]
    found = tables(flows=rows)
    assert of("short-missing", found, scheduler="a", threshold=10) == {1: 1}
    # 1 s and 1 s of idling as short; then a third of 3 s as short, two thirds and 1 s as long.
    mixed = {"sent_short_lane": 10, "sent_long_lane": 20, "end_ns": LATE + 3 * SECOND}
    found = tables(flows=[flow(), flow(**mixed), flow(start_ns=0)])
    ratio = of("short-to-long", found, scheduler="a", since=2000, idle=1)
    assert ratio == {1: pytest.approx(3 / 3)}


def test_a_row_from_its_runs_to_its_page(tmp_path):
    folder = shutil.copytree(data.folder("rio-ps"), tmp_path / "rio-ps")
    file = folder / "paper.toml"
    text = file.read_text().replace('seeds = "1..3"\n', 'seeds = "1..2"\n', 1)
    scaled = 'set = { "scenario.duration" = "30s" }\n\n# 500 s'
    file.write_text(text.replace("\n# 500 s", scaled, 1))
    out = tmp_path / "out"
    ended = run("paper", str(folder), "--quick", "--rows", "E-T1a", "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    (row,) = evidence.read(out / evidence.FILE).rows
    offered = row.checks[2]
    # Three rounds of ten transfers of 100 packets, and the last in its last 10 s.
    assert 2000 / 50000 < offered.value <= 3000 / 50000
    page = (out / "README.md").read_text()
    assert "| what | published | ours | needed | seeds |  |" in page
    assert "| short flows' packets, drop-tail, 1.25 Mbit/s | 40973 |" in page
    assert (out / "figure-table-1.svg").is_file()
