"""What no paper has published on: rows without verdict, their tables, and their statistics."""

import json
import shutil
import subprocess
import sys

import polars as pl
import pytest
from shortlane.errors import InputError
from shortlane.paper import catalog, data
from shortlane.paper.judge import judge_row
from shortlane.paper.loading import load
from shortlane.paper.statistics import Tables
from shortlane.paper.verdict import Outcome

stats = catalog.code(data.folder("beyond"), "stats")
STATISTICS = stats.STATISTICS

SECOND = 1_000_000_000


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(data.folder("beyond"), tmp_path / "beyond")


def flows(*rows, scheduler="efd", traffic="transfers"):
    """A transfer each, one a second from the 10th to the 79th of a hundred seconds."""
    common = {
        "scheduler": scheduler,
        "seed": 1,
        "kind": "transfer",
        "traffic": traffic,
        "size_bytes": 1000,
        "slowdown": 1.0,
        "complete": True,
        "connect_ns": None,
        "packets": 100,
        "dropped_packets": 0,
        "retransmissions": 0,
        "reordered_packets": 0,
        "sent_short_lane": 0,
        "sent_long_lane": 0,
        "fragments": 1,
        "stall_max_ns": 0,
        "received_bytes": 0,
        "planned_ns": 0,
        "end_ns": None,
    }
    full = [common | {"start_ns": (11 + place) * SECOND} | row for place, row in enumerate(rows)]
    first, last = ({"start_ns": at * SECOND, "slowdown": 99.0} for at in (0, 100))
    return pl.DataFrame([common | first, *full, common | last], infer_schema_length=None)


def value(name, frame, table="flows", **arguments):
    sample = STATISTICS[name](Tables.of({table: frame}), scheduler="efd", **arguments)
    return sample.values.get(1)


ALL = [1, 10**9]


def test_transfers_at_both_ends_of_a_run_do_not_count():
    frame = flows({"slowdown": 2.0}, {"slowdown": 4.0}, {"slowdown": 6.0, "size_bytes": 5000})
    assert value("slowdown", frame, between=ALL) == 4.0
    assert value("slowdown", frame, between=[1, 2000]) == 3.0


def test_what_is_incomplete_is_in_no_mean_and_beyond_every_quantile():
    never = {"slowdown": None, "complete": False}
    frame = flows(*[{"slowdown": float(n)} for n in range(1, 10)], never)
    assert value("slowdown", frame, between=ALL) == 5.0
    assert value("slowdown", frame, between=ALL, quantile=0.5) == 6.0
    assert value("slowdown", frame, between=ALL, quantile=0.99) is None
    assert value("incomplete", frame) == pytest.approx(10.0)


def test_a_ratio_is_of_the_same_transfers():
    both = pl.concat(
        [flows({"slowdown": 2.0}), flows({"slowdown": 8.0}, scheduler="fifo")],
    )
    assert value("slowdown-ratio", both, to="fifo", between=ALL) == 0.25


def test_waits_are_above_the_fastest_of_all():
    def handshake(milliseconds):
        return {"connect_ns": 11 * SECOND + milliseconds * 1_000_000, "start_ns": 11 * SECOND}

    fastest = flows(handshake(6), scheduler="fifo")
    frame = pl.concat([flows(handshake(7), handshake(9)), fastest])
    assert value("connect-wait", frame) == pytest.approx(2.0)
    assert value("connect-wait", frame, quantile=0.99) == pytest.approx(3.0)
    probes = pl.DataFrame(
        {
            "scheduler": ["efd", "efd", "efd", "fifo"],
            "seed": 1,
            "stream": "ping",
            "delay_ns": [5_000_000, 8_000_000, None, 4_000_000],
        }
    )
    assert value("ping-wait", probes, "probes") == pytest.approx(2.5)
    assert value("ping-wait", probes, "probes", quantile=0.5) == pytest.approx(4.0)
    assert value("ping-wait", probes, "probes", quantile=0.99) is None


def test_packets_are_counted_by_what_became_of_them():
    frame = flows(
        {"sent_short_lane": 20, "sent_long_lane": 60, "reordered_packets": 4, "packets": 100},
        {"sent_short_lane": 20, "retransmissions": 12, "dropped_packets": 2},
    )
    assert value("reordered", frame) == pytest.approx(4.0)
    assert value("reordered-flows", frame) == pytest.approx(50.0)
    assert value("short-lane", frame) == pytest.approx(40.0)
    assert value("short-packets", frame, between=ALL) == 20.0
    assert value("resent", frame) == pytest.approx(6.0)
    assert value("resent", frame, beyond_drops=True) == pytest.approx(5.0)
    assert value("dropped", frame) == pytest.approx(1.0)


def test_a_download_is_done_with_its_last_piece():
    def piece(start, end, planned=0, **rest):
        times = {"start_ns": start * SECOND, "planned_ns": planned, **rest}
        return times | {"end_ns": None if end is None else end * SECOND, "traffic": "mine"}

    split = flows(piece(20, 25), piece(20, 30), piece(50, 56, 1), piece(80, None, 2))
    whole = flows(piece(20, 40))
    assert value("download-time", split, traffic="mine") == 8.0
    tables = Tables.of({"flows": split}, whole=Tables.of({"flows": whole}))
    found = STATISTICS["download-ratio"](tables, scheduler="efd", traffic="mine", whole="whole")
    assert found.values == {1: 0.4}


def test_shares_are_of_two_downloads_alone():
    rows = [
        {"traffic": "mine", "received_bytes": 10},
        {"traffic": "mine", "received_bytes": 50},
        {"traffic": "other", "received_bytes": 20},
        {"traffic": "transfers", "received_bytes": 999},
    ]
    assert value("bytes-share", flows(*rows), traffic="mine", other="other") == 75.0


def test_a_row_without_checks_is_reported(folder):
    paper = load(folder, STATISTICS)
    assert not any(row.checks for row in paper.rows)
    row = next(row for row in paper.rows if row.id == "F-7")
    assert row.grids[0].rows[:3] == ("fifo", "efd", "efd:low-share=0.1")
    assert len(row.measured) == len(row.grids[0].rows) * len(row.grids[0].columns)
    empty = flows(scheduler="nobody")
    here = Tables.of(
        {"flows": empty}, large1=Tables.of({"flows": empty}), small1=Tables.of({"flows": empty})
    )
    verdict = judge_row(row, lambda _: here, STATISTICS)
    assert (verdict.outcome, verdict.worst) == (Outcome.REPORTED, None)
    assert {cell.value for line in verdict.grids[0] for cell in line} == {None}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rows.scheduler = [", "rows.planner = [", "it takes arguments of slowdown: scheduler"),
        ('title = "Slowdown"', "", "row[0].table[0].title is missing; it takes a text"),
        ('words = "short, mean"', 'words = "{scheduler}"', "words without {scheduler}"),
        ('statistic = "slowdown"', 'statistic = "s"', "column[0].statistic = 's'; it takes "),
    ],
)
def test_what_is_wrong_in_a_table_is_named(folder, old, new, said):
    file = folder / "paper.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load(folder, STATISTICS)
    assert said in str(error.value)


def test_a_row_is_run_and_reported(folder, tmp_path):
    file = folder / "paper.toml"
    text = file.read_text()
    assert 'seeds = "1"' in text
    file.write_text(text.replace('seeds = "1"', 'seeds = "1..2"', 1))
    out = tmp_path / "out"
    words = ["paper", str(folder), "--quick", "--rows", "F-4", "--json", "--out", str(out)]
    ran = subprocess.run(
        [sys.executable, "-m", "shortlane", *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (row,) = json.loads(ran.stdout)["rows"]
    assert (row["verdict"], row["worst"]) == ("reported", None)
    lines = {line["scheduler"]: line["values"] for line in row["tables"][0]["rows"]}
    # Strict priority keeps the order of a flow, a share for the long lane does not.
    assert lines["sb:weight=1"][0]["value"] == 0
    assert lines["sb:weight=0.6"][0]["value"] > 0
    page = (out / "README.md").read_text()
    assert "## Questions" in page
    assert "| scheduler | packets reordered (%) |" in page
    assert "Reproduced if" not in page
