"""Each statistic on tables small enough to compute by hand."""

import math

import polars as pl
import pytest
from shortlane.paper import catalog, data
from shortlane.paper.statistics import MSS, Tables

stats = catalog.code(data.folder("efd"), "stats")
STATISTICS = stats.STATISTICS

SECOND = 1_000_000_000


def flows(*rows):
    """A row: scheduler, seed, size in packets, then what differs from a complete transfer."""
    common = {
        "kind": "transfer",
        "index": 0,
        "start_ns": 0,
        "completion_ns": SECOND,
        "complete": True,
        "packets": 10,
        "dropped_packets": 0,
        "fragments": 1,
        "timeouts": 0,
        "handshake_timeouts": 0,
        "stall_max_ns": 0,
        "received_bytes": 0,
    }
    full = [
        common | {"scheduler": scheduler, "seed": seed, "size_bytes": size * MSS} | rest
        for scheduler, seed, size, rest in rows
    ]
    return Tables.of({"flows": pl.DataFrame(full, infer_schema_length=None)})


def links(*rows):
    full = [
        {"scheduler": scheduler, "seed": seed, "link": link, **rest}
        for scheduler, seed, link, rest in rows
    ]
    return Tables.of({"links": pl.DataFrame(full)})


def values(name, tables, **arguments):
    return dict(STATISTICS[name](tables, **arguments).values)


def done(seconds, **rest):
    return {"completion_ns": round(seconds * SECOND), **rest}


def never(**rest):
    return {"completion_ns": None, "complete": False, **rest}


def test_response_ratio_is_of_means_over_what_is_complete_under_each():
    tables = flows(
        ("efd", 1, 5, done(1)),
        ("efd", 1, 20, done(3)),
        ("efd", 1, 21, done(100)),
        ("fifo", 1, 5, done(8)),
        ("fifo", 1, 20, never()),
        ("efd", 2, 5, done(1)),
        ("fifo", 2, 5, done(5)),
        ("efd", 3, 5, done(1)),
        ("fifo", 3, 5, never()),
    )
    found = values("response-ratio", tables, scheduler="efd", to="fifo", sizes=[1, 20])
    # Seed 3 has no complete transfer under FIFO, and so no ratio.
    assert found == {1: 2 / 8, 2: 1 / 5}


def test_sizes_are_counted_in_packets_begun():
    table = flows(("efd", 1, 20, done(1)), ("fifo", 1, 20, done(2)))["flows"]
    beyond = table.with_columns(pl.col("size_bytes") + 1)
    arguments = {"scheduler": "efd", "to": "fifo", "sizes": [1, 20]}
    assert values("response-ratio", Tables.of({"flows": table}), **arguments) == {1: 0.5}
    assert values("response-ratio", Tables.of({"flows": beyond}), **arguments) == {}


def test_response_distance_is_on_the_logarithm():
    tables = flows(("lars", 1, 600, done(8)), ("las", 1, 600, done(2)), ("fifo", 1, 600, done(4)))
    arguments = {"scheduler": "lars", "other": "las", "to": "fifo", "sizes": [501, 1000]}
    assert values("response-distance", tables, **arguments)[1] == pytest.approx(0.0)
    closer = flows(("lars", 1, 600, done(5)), ("las", 1, 600, done(2)), ("fifo", 1, 600, done(4)))
    found = values("response-distance", closer, **arguments)[1]
    assert found == pytest.approx(math.log(5 / 4) - math.log(2))


def test_completed_ratio():
    tables = flows(
        ("las", 1, 600, done(1)),
        ("las", 1, 600, never()),
        ("las", 1, 5, done(1)),
        ("fifo", 1, 600, done(1)),
        ("fifo", 1, 700, done(1)),
        ("fifo", 1, 5, done(1)),
    )
    assert values("completed-ratio", tables, scheduler="las", to="fifo") == {1: 2 / 3}
    large = values("completed-ratio", tables, scheduler="las", to="fifo", sizes=[501, 1000])
    assert large == {1: 1 / 2}


def test_what_links_say_is_of_the_bottleneck():
    def row(scheduler, link, mean):
        return (
            scheduler,
            1,
            link,
            {
                "flow_entries_mean": mean,
                "flow_entries_p99": round(2 * mean),
                "flow_entries_peak": round(3 * mean),
                "flow_entries_beyond_backlog": 0 if link == "bottleneck" else 7,
                "utilisation": mean / 1000,
            },
        )

    tables = links(
        row("las", "bottleneck", 200.0),
        row("efd", "bottleneck", 5.0),
        row("las", "bottleneck-back", 900.0),
        row("efd", "bottleneck-back", 900.0),
    )
    assert values("table-ratio", tables, scheduler="efd", to="las") == pytest.approx({1: 0.025})
    assert values("table-mean", tables, scheduler="las") == {1: 200}
    assert values("table-p99", tables, scheduler="efd") == {1: 10}
    assert values("table-peak", tables, scheduler="efd") == {1: 15}
    assert values("entries-beyond-backlog", tables, scheduler="efd") == {1: 0}
    assert values("utilisation-ratio", tables, scheduler="efd", to="las") == pytest.approx(
        {1: 0.025}
    )


def test_incomplete_transfers_are_sized_by_what_got_across():
    def received(packets):
        return never(received_bytes=packets * MSS)

    tables = flows(
        ("fifo", 1, 900, received(0)),
        ("fifo", 1, 900, received(20)),
        ("fifo", 1, 900, received(21)),
        ("fifo", 1, 5, done(1, received_bytes=5 * MSS)),
        ("efd", 1, 900, received(100)),
        ("efd", 1, 900, received(10)),
        ("efd", 1, 900, received(300)),
        ("efd", 1, 900, received(400)),
    )
    arguments = {"scheduler": "fifo", "to": "efd"}
    found = values("incomplete-short-ratio", tables, most=20, **arguments)
    assert found[1] == pytest.approx((2 / 3) / (1 / 4))
    medians = values("incomplete-median-ratio", tables, scheduler="efd", to="fifo")
    assert medians == {1: 200 / 20}
    assert values("incomplete-count", tables, scheduler="fifo") == {1: 3}


def test_no_short_one_counts_as_one_and_no_packet_as_one():
    def received(packets):
        return never(received_bytes=packets * MSS)

    tables = flows(
        ("fifo", 1, 900, received(0)),
        ("fifo", 1, 900, received(0)),
        ("las", 1, 900, received(100)),
        ("las", 1, 900, received(100)),
    )
    arguments = {"scheduler": "fifo", "to": "las"}
    assert values("incomplete-short-ratio", tables, most=20, **arguments) == {1: 1 / (1 / 2)}
    assert values("incomplete-median-ratio", tables, scheduler="las", to="fifo") == {1: 100}


def test_fragments():
    tables = flows(
        ("efd", 1, 150, done(1, fragments=10, packets=160)),
        ("efd", 1, 600, done(1, fragments=14, packets=620)),
        ("efd", 1, 700, done(1, fragments=16, packets=700)),
        ("efd", 1, 800, never(fragments=500, packets=900)),
        ("fifo", 1, 600, done(1, fragments=0, packets=600)),
    )
    ratios = values(
        "fragments-ratio", tables, scheduler="efd", sizes=[500, 1000], to_sizes=[100, 200]
    )
    assert ratios == {1: 1.5}
    assert values("fragment-length", tables, scheduler="efd", largest=0.2) == {1: 700 / 16}
    falling = values("fragments-spearman", tables, scheduler="efd")
    assert falling[1] == pytest.approx(-0.5)


def test_the_steepest_rise_is_of_the_pooled_curve():
    rows = []
    for seed in (1, 2):
        rows += [("efd", seed, size, done(1 + size)) for size in range(15, 22)]
        rows += [("run2c", seed, size, done(1 if size < 18 else 3)) for size in range(15, 22)]
    sample = STATISTICS["steepest-rise-difference"](
        flows(*rows), scheduler="efd", other="run2c", sizes=[15, 17], step=4
    )
    # From 15 to 19: EFD 16 s to 20 s, Run2C 1 s to 3 s.
    assert sample.value(sample.parts) == pytest.approx(4 / 16 - 2)
    assert sample.value([1, 1, 1]) == pytest.approx(4 / 16 - 2)


def test_a_size_without_transfers_is_passed_over():
    sample = STATISTICS["steepest-rise"](
        flows(("efd", 1, 15, done(1)), ("efd", 1, 16, done(1)), ("efd", 1, 20, done(4))),
        scheduler="efd",
        sizes=[15, 16],
        step=5,
    )
    assert sample.value(sample.parts) == 3
    empty = STATISTICS["steepest-rise"](
        flows(("efd", 1, 15, done(1))), scheduler="efd", sizes=[15, 16], step=5
    )
    assert math.isnan(empty.value(empty.parts))


def stalled(index, start, seconds):
    return {"index": index, "start_ns": start * SECOND, "stall_max_ns": round(seconds * SECOND)}


def test_waits_are_of_the_largest_that_start_in_the_middle():
    tables = flows(
        ("las", 1, 1000, stalled(0, 1, 99)),
        ("las", 1, 900, stalled(1, 10, 6)),
        ("las", 1, 900, stalled(2, 20, 8)),
        ("las", 1, 900, stalled(3, 30, 70)),
        ("las", 1, 1000, stalled(4, 80, 99)),
        ("las", 1, 1, stalled(5, 100, 0)),
        ("efd", 1, 900, stalled(1, 10, 2)),
        ("efd", 1, 900, stalled(2, 20, 1)),
        ("efd", 1, 1, stalled(5, 100, 0)),
    )
    assert values("stall", tables, scheduler="las", largest=2) == {1: 8}
    assert values("stall-ratio", tables, scheduler="las", to="efd", largest=2) == {1: 4}
    part = {"scheduler": "las", "to": "efd", "largest": 2}
    assert values("stall-part", tables, half_life=5.0, **part) == {1: 8 / 10}
    assert values("stall-part", tables, half_life=1.0, **part) == {1: 8 / 4}


def stream(packets, dropped, **rest):
    return {"kind": "stream", "packets": packets, "dropped_packets": dropped, **rest}


def test_losses_of_a_stream():
    tables = flows(
        ("las", 1, 1, stream(1000, 300)),
        ("las", 1, 5, done(1, packets=50, dropped_packets=50)),
        ("efd", 1, 1, stream(1000, 10)),
    )
    assert values("stream-loss", tables, scheduler="las") == {1: 30}
    assert values("stream-loss-excess", tables, scheduler="las", over="efd") == {1: 29}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (2, 19, 1.9 / 2),  # ten times 0.2 % is less than 10 %
        (50, 200, 20 / 10),  # 10 % is less than ten times 5 %
        (0, 20, 2 / 1),  # none lost counts as one packet: 0.1 %
    ],
)
def test_a_blow_up_is_ten_times_or_ten_percent(before, now, expected):
    calm = flows(("efd", 1, 1, stream(1000, before)))
    tables = Tables.of({"flows": flows(("efd", 1, 1, stream(1000, now)))["flows"]}, calm=calm)
    arguments = {"scheduler": "efd", "calm": "calm", "factor": 10.0, "percent": 10.0}
    assert values("stream-blow-up", tables, **arguments)[1] == pytest.approx(expected)


def test_volume_of_a_stream_is_for_a_given_time():
    table = flows(("fifo", 1, 1, stream(100, 0, start_ns=10 * SECOND)))["flows"]
    blocks = pl.DataFrame({"scheduler": ["fifo"], "seed": [1], "duration_ns": [20 * SECOND]})
    tables = Tables.of({"flows": table, "blocks": blocks})
    found = values("stream-volume", tables, scheduler="fifo", packet=1500, seconds=990.0)
    assert found[1] == pytest.approx(100 * 1500 * 99 / 1e6)


def test_loss_and_timeouts_of_tcp():
    tables = flows(
        ("efd", 1, 5, done(1, packets=100, dropped_packets=2, timeouts=1)),
        ("efd", 1, 5, never(packets=100, dropped_packets=4, handshake_timeouts=2)),
        ("efd", 1, 5, stream(1000, 900)),
        ("fifo", 1, 5, done(1, packets=100, dropped_packets=6, timeouts=1)),
    )
    assert values("tcp-loss", tables, scheduler="efd") == {1: 3}
    assert values("tcp-loss-ratio", tables, scheduler="efd", to="fifo") == {1: 0.5}
    assert values("timeouts", tables, scheduler="efd") == {1: 1.5}
    assert values("timeouts-ratio", tables, scheduler="efd", to="fifo") == {1: 1.5}


def test_incomplete_ones_are_counted_against_another_scheduler():
    tables = flows(
        *[("fifo", 1, 900, never()) for _ in range(4)],
        *[("las", 1, 900, never()) for _ in range(3)],
        ("las", 1, 900, done(1)),
    )
    assert values("incomplete-ratio", tables, scheduler="las", to="fifo") == {1: 0.75}


def test_a_plateau_is_told_as_part_of_the_transfers_own_time():
    tables = flows(
        ("las", 1, 1, {"start_ns": 100 * SECOND}),
        # Too early and too late to be among those that can get on.
        ("las", 1, 900, done(1, start_ns=1 * SECOND, stall_max_ns=SECOND)),
        ("las", 1, 900, done(1, start_ns=80 * SECOND, stall_max_ns=SECOND)),
        ("las", 1, 500, done(50, start_ns=20 * SECOND, stall_max_ns=5 * SECOND)),
        # It does not end: 60 s are left until the last start.
        ("las", 1, 400, never(start_ns=40 * SECOND, stall_max_ns=12 * SECOND)),
        # Not one of the two largest.
        ("las", 1, 300, done(10, start_ns=40 * SECOND, stall_max_ns=9 * SECOND)),
    )
    assert values("stall-of-transfer", tables, scheduler="las", largest=2) == {1: 20.0}
    assert values("stall-of-transfer", tables, scheduler="las", largest=1) == {1: 10.0}


def test_what_a_stream_costs_is_the_loss_with_it_less_that_without():
    def dropped(scheduler, packets):
        return (scheduler, 1, 5, {"packets": 100, "dropped_packets": packets})

    alone = flows(dropped("fifo", 2), dropped("efd", 5))
    beside = flows(dropped("fifo", 6), dropped("efd", 8))
    tables = Tables.of({"flows": beside["flows"]}, alone=alone)
    assert values("tcp-loss-added", tables, scheduler="efd", without="alone") == {1: 3}
    arguments = {"scheduler": "efd", "over": "fifo", "without": "alone"}
    assert values("tcp-loss-added-excess", tables, **arguments) == {1: -1}


def test_every_statistic_of_the_paper_is_covered_here():
    here = __import__("inspect").getsource(__import__(__name__))
    assert [name for name in STATISTICS if f'"{name}"' not in here] == []
