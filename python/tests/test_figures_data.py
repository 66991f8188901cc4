"""The numbers behind figures, on frames small enough to know the answer."""

import polars as pl
import pytest
from shortlane.errors import InputError
from shortlane.figures import data


class Results:
    def __init__(self, info=None, **tables):
        self.info = info or {}
        self.tables = tables


def flows(rows):
    """Rows of (scheduler, seed, size, completion)."""
    frame = pl.DataFrame(
        rows,
        schema={
            "scheduler": pl.String,
            "seed": pl.Int64,
            "size_bytes": pl.Int64,
            "completion_ns": pl.Int64,
        },
        orient="row",
    )
    return frame.with_columns(
        run=pl.lit("r"),
        round=pl.lit(0),
        block=pl.lit(0),
        kind=pl.lit("transfer"),
        start_ns=pl.lit(0),
        planned_ns=pl.lit(None, pl.Int64),
        index=pl.int_range(pl.len()),
        traffic=pl.lit("web"),
    )


def test_the_mean_by_size_is_that_of_seeds_with_student_s_interval():
    # Seeds have means 1, 2, 3; the second has three times as many flows, and counts once.
    rows = [("efd", 1, 1000, 1), ("efd", 3, 1000, 3), *[("efd", 2, 1000, 2)] * 3]
    found = data.mean_by_size(flows(rows), least=1)
    row = found.row(0, named=True)
    assert (row["mean"], row["flows"], row["observations"]) == (2.0, 5, 3)
    assert row["size_bytes"] == pytest.approx(1000)
    # t(2) = 4.302653, standard error 1 / sqrt(3).
    assert row["high"] == pytest.approx(2 + 4.302653 / 3**0.5, rel=1e-6)
    assert row["low"] == pytest.approx(2 - 4.302653 / 3**0.5, rel=1e-6)


def test_two_seeds_carry_no_interval_and_incomplete_flows_are_counted():
    rows = [("efd", 1, 1000, 4), ("efd", 2, 1000, 8), ("efd", 2, 1000, None)]
    row = data.mean_by_size(flows(rows), least=1).row(0, named=True)
    assert (row["mean"], row["low"], row["high"]) == (6.0, None, None)
    assert (row["flows"], row["missing"]) == (2, 1)


def test_bins_are_joined_until_every_scheduler_has_enough():
    sizes = [1000, 2000, 4000, 100_000]
    rows = [("fifo", 1, size, 10) for size in sizes for _ in range(5)]
    rows += [("efd", 1, size, 20) for size in (1000, 4000, 100_000) for _ in range(5)]
    found = data.mean_by_size(flows(rows), least=5)
    # Of 2000 bytes efd has none: that bin is joined with its neighbour, under both.
    bins = found.filter(pl.col("scheduler") == "fifo").select("from_bytes", "to_bytes").rows()
    assert bins == [(1000, 1000), (2000, 4000), (100_000, 100_000)]
    assert found["scheduler"].to_list() == ["fifo"] * 3 + ["efd"] * 3
    assert data.mean_by_size(flows(rows), least=12)["flows"].to_list() == [20, 15]


def test_void_blocks_and_the_warm_up_do_not_count():
    table = flows([("efd", 1, 1000, 5), ("efd", 1, 1000, 7), ("efd", 1, 1000, 100)])
    table = table.with_columns(
        block=pl.Series([0, 0, 1]), start_ns=pl.Series([20, 9, 20], dtype=pl.Int64)
    )
    blocks = pl.DataFrame({"run": "r", "block": [0, 1], "void": [False, True]})
    results = Results({"scenario": {"warm_up_ns": 10}}, flows=table, blocks=blocks)
    assert data.mean_by_size(results, least=1)["mean"].to_list() == [5.0]


def test_a_cdf_ends_below_one_where_packets_are_lost():
    probes = pl.DataFrame(
        {"scheduler": ["fifo"] * 5, "stream": "voice", "delay_ns": [3, 1, None, 3, 2]}
    )
    found = data.cdf(probes, "delay_ns")
    assert found.select("value", "fraction").rows() == [(1.0, 0.2), (2.0, 0.4), (3.0, 0.8)]
    assert found["missing"].to_list() == [1, 1, 1]
    assert found["rows"].to_list() == [5, 5, 5]


def test_a_long_cdf_is_thinned_but_exact_where_it_is_drawn():
    probes = pl.DataFrame({"scheduler": "fifo", "stream": "v", "delay_ns": range(1, 100_001)})
    found = data.cdf(probes, "delay_ns", points=100)
    assert 100 <= found.height <= 200
    assert (found["fraction"] - found["value"] / 100_000).abs().max() == 0
    assert found["value"].to_list()[-2:] == [99_999, 100_000]


def samples(**columns):
    return pl.DataFrame(
        {
            "run": "r",
            "scheduler": "fifo",
            "seed": 1,
            "round": 0,
            "block": 0,
            "link": "down",
            **columns,
        }
    )


def test_a_time_series_is_of_one_run_in_windows():
    first = samples(t_ns=[0, 10, 20, 30, 40], backlog_packets=[1, 3, 5, 7, 100])
    other = first.with_columns(seed=pl.lit(2), backlog_packets=pl.lit(9, pl.Int64))
    found = data.time_series(pl.concat([first, other]), points=2)
    assert found.select("mean", "low", "high").rows() == [(2.0, 1.0, 3.0), (112 / 3, 5.0, 100.0)]
    assert found["t_s"].to_list() == pytest.approx([10e-9, 30e-9])
    of_second = data.time_series(pl.concat([first, other]), observation={"seed": 2}, points=2)
    assert of_second["mean"].to_list() == [9.0, 9.0]


def test_a_histogram_of_whole_numbers_has_whole_bins():
    found = data.histogram(samples(flow_entries=[0, 1, 1, 3]))
    assert found.select("from", "to", "count").rows() == [
        (0, 1, 1),
        (1, 2, 2),
        (2, 3, 0),
        (3, 4, 1),
    ]
    assert found["share"].to_list() == [0.25, 0.5, 0.0, 0.25]


def test_a_histogram_in_bins_of_one_s_own():
    table = samples(slowdown=[1.0, 2.0, 3.0, 9.0])
    found = data.histogram(table, "slowdown", edges=[1, 2, 3])
    # 9 is in no bin, and counts as one of four.
    assert found.select("count", "share").rows() == [(1, 0.25), (2, 0.5)]
    with pytest.raises(InputError, match="edges: found"):
        data.histogram(table, "slowdown", edges=[2, 1])


def test_losses_are_per_run_and_stream():
    probes = pl.DataFrame(
        {
            "scheduler": ["efd"] * 6,
            "stream": ["a", "a", "a", "a", "b", "b"],
            "seed": [1, 1, 2, 2, 1, 1],
            "delay_ns": [1, None, 1, 1, None, None],
        }
    )
    found = data.losses(probes)
    assert found.select("stream", "seed", "lost_percent").rows() == [
        ("a", 1, 50.0),
        ("a", 2, 0.0),
        ("b", 1, 100.0),
    ]
    estimates = data.estimates(found, "lost_percent", by=["scheduler", "stream"])
    assert estimates.select("stream", "mean", "observations").rows() == [
        ("a", 25.0, 2),
        ("b", 100.0, 1),
    ]


def progress_rows():
    return pl.DataFrame(
        {
            "scheduler": "las",
            "seed": 1,
            "round": 0,
            "traffic": "web",
            "index": [0] * 2 + [1] * 3 + [2],
            "t_ns": [0, 10, 0, 5, 9, 3],
            "received_bytes": [1, 50, 1, 40, 99, 7],
        }
    )


def test_progress_is_of_the_largest_transfers():
    found = data.progress(progress_rows(), largest=2)
    assert found.select("index", "received_bytes").rows() == [
        (1, 1),
        (1, 40),
        (1, 99),
        (0, 1),
        (0, 50),
    ]
    chosen = data.progress(progress_rows(), transfers=[("web", 2)])
    assert chosen["received_bytes"].to_list() == [7]


def test_the_largest_are_so_by_size_where_sizes_are_known():
    # Transfer 2 received least and is the largest.
    table = flows([("las", 1, 10, 1), ("las", 1, 20, 1), ("las", 1, 1000, None)])
    results = Results(flows=table, progress=progress_rows())
    assert data.progress(results, largest=1)["index"].to_list() == [2]


def test_thinned_progress_keeps_plateaus():
    steps = [*range(0, 40_000, 10), *range(90_000, 100_000, 10)]
    table = pl.DataFrame(
        {
            "scheduler": "las",
            "traffic": "web",
            "index": 0,
            "t_ns": steps,
            "received_bytes": range(len(steps)),
        }
    )
    found = data.progress(table, points=50)
    assert found.height <= 110
    pause = found["t_s"].diff().max()
    assert pause == pytest.approx(50_010e-9, rel=1e-6)


def test_of_no_rows_come_no_rows():
    for found in (
        data.mean_by_size(flows([])),
        data.cdf(flows([])),
        data.time_series(samples(t_ns=[0], backlog_packets=[1]).clear()),
        data.histogram(samples(flow_entries=[0]).clear()),
        data.progress(progress_rows().clear()),
    ):
        assert found.is_empty()
        assert found.columns[0] == "scheduler"


def test_a_missing_column_or_table_is_named():
    with pytest.raises(InputError, match="table flows: found no column `scheduler`"):
        data.mean_by_size(pl.DataFrame({"size_bytes": [1], "completion_ns": [1]}))
    with pytest.raises(InputError, match="no table `probes`, but none"):
        data.cdf(Results(), "delay_ns")
