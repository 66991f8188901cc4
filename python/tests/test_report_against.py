"""Disciplines against the better of their peers: what counts as better, and which peer is meant."""

import tomllib

import polars as pl
import pytest
import shortlane
from commands import run
from report_help import rewritten
from shortlane.errors import Usage
from shortlane.report.against import map_of
from test_report_engines import SCENARIO

PEERS = ["fifo", "fq-codel"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Four seeds, in which `efd` is `fq-codel` with transfers twice as fast."""
    place = tmp_path_factory.mktemp("against") / "results"
    text = SCENARIO.replace('["fifo", "fq-codel"]', '["fifo", "fq-codel", "efd"]')
    shortlane.simulate(tomllib.loads(text), progress=None).write(place)
    for name in ("flows", "probes", "links"):
        path = place / f"{name}.parquet"
        frame = pl.read_parquet(path).filter(pl.col("scheduler") != "efd")
        same = frame.filter(pl.col("scheduler") == "fq-codel").with_columns(
            scheduler=pl.lit("efd").cast(frame["scheduler"].dtype)
        )
        if name == "flows":
            half = (pl.col("completion_ns") / 2).cast(pl.Int64).alias("completion_ns")
            same = same.with_columns(half)
        pl.concat([frame, same]).write_parquet(path)
    return place


def line(text, begin):
    return next(one for one in text.splitlines() if one.startswith(f"| {begin} |"))


def test_what_is_faster_is_better_and_what_is_the_same_is_not(results):
    text = map_of([results], PEERS)
    counted = [int(cell) for cell in line(text, "efd").split("|")[2:7]]
    # Three classes of sizes are faster; the rest is the same: unfinished, rate, delay, loss, use.
    assert counted[0] == 3, text
    assert counted[1] > 0, text
    assert counted[2:] == [0, 0, 0], text
    assert text.count("**0.50 ") == 3, text


def test_it_is_held_against_the_better_peer(results, tmp_path):
    slower = rewritten(results, tmp_path / "slower", scheduler={})
    path = slower / "flows.parquet"
    own = pl.col("scheduler").cast(pl.String) == "efd"
    late = pl.when(own).then(pl.col("completion_ns") * 10).otherwise(pl.col("completion_ns"))
    pl.read_parquet(path).with_columns(late.alias("completion_ns")).write_parquet(path)
    text = map_of([slower], PEERS)
    assert int(line(text, "efd").split("|")[5]) == 3, text
    assert "_5.00 " in text, text


def test_a_peer_that_no_result_has_is_refused(results):
    with pytest.raises(Usage, match=r"nothing of kernel:sfq; accepted: efd, fifo, fq-codel"):
        map_of([results], ["kernel:sfq"])


def test_the_command_prints_a_row_for_each_directory(results):
    done = run("report", str(results), "--against", "fifo,kernel:fq_codel")
    assert done.returncode == 0, done.stderr
    assert line(done.stdout, "Two engines")
