"""One experiment in several engines: what agrees, what is not told apart, what differs."""

import re
import tomllib

import polars as pl
import pytest
import shortlane
from commands import run
from report_help import change_info, opened, rewritten
from shortlane import report
from shortlane.errors import InputError
from shortlane.report import engines, quantities

SCENARIO = """
[scenario]
title = "Two engines"
duration = "12s"
warm-up = "2s"
seeds = "1..4"

[topology]
kind = "dumbbell"
access = { rate = "1gbit", delay = "1ms" }
bottleneck = { rate = "10mbit", delay = "8ms", limit = "100packets" }

[schedulers]
run = ["fifo", "fq-codel"]

[[traffic]]
kind = "transfers"
load = 0.3
sizes = "uniform:min=2kb,max=200kb"

[[traffic]]
name = "downloads"
kind = "persistent"
flows = 2

[[traffic]]
name = "call"
kind = "cbr"
rate = "64kbit"
packet = "160b"
"""


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    place = tmp_path_factory.mktemp("engines") / "predicted"
    shortlane.simulate(tomllib.loads(SCENARIO), progress=None).write(place)
    return place


def scaled(folder, name, expression):
    """Replaces a column of a table."""
    path = folder / f"{name}.parquet"
    pl.read_parquet(path).with_columns(expression).write_parquet(path)


def in_kernel(predicted, to):
    """The same as if the kernel had measured it."""
    folder = rewritten(predicted, to, scheduler={"fq-codel": "kernel:fq_codel"})
    change_info(folder, engine="kernel")
    return folder


def cells(*folders):
    return engines.cells_of(engines.runs_of(folders))


def test_the_same_results_agree_in_every_cell(predicted, tmp_path):
    found = cells(predicted, in_kernel(predicted, tmp_path / "kernel"))
    compared = [cell for cell in found if cell.quantity is not quantities.USE]
    # Two disciplines: three classes of sizes, the rate of downloads, the delay of the call.
    assert len([cell for cell in found if cell.quantity is quantities.COMPLETION]) == 6
    assert len([cell for cell in found if cell.quantity is quantities.DELAY]) == 2
    assert {cell.scheduler for cell in found} == {"fifo", "fq-codel"}
    for cell in compared:
        if cell.quantity is not quantities.RATE:
            assert cell.verdicts == (engines.AGREES,), cell


def test_what_is_slower_differs_and_what_varies_is_not_told_apart(predicted, tmp_path):
    folder = in_kernel(predicted, tmp_path / "kernel")
    completion, delay = pl.col("completion_ns"), pl.col("delay_ns")
    scaled(folder, "flows", (completion * 1.3).cast(pl.Int64).alias("completion_ns"))
    # In one round the call waits for a second.
    late = pl.when(pl.col("seed") == 2).then(delay + 10**9).otherwise(delay)
    scaled(folder, "probes", late.alias("delay_ns"))
    for cell in cells(predicted, folder):
        if cell.quantity is quantities.COMPLETION:
            assert cell.against[0].value == pytest.approx(1.3, rel=1e-6)
            assert cell.verdicts == (engines.DIFFERS,)
        if cell.quantity is quantities.DELAY:
            assert cell.against[0].value == pytest.approx(250, rel=1e-6)
            assert cell.verdicts == (engines.OPEN,)


def test_the_prediction_is_first_whatever_the_order(predicted, tmp_path):
    kernel = in_kernel(predicted, tmp_path / "kernel")
    runs = engines.runs_of([kernel, predicted])
    assert [run.engine for run in runs] == ["simulator", "kernel"]


def test_the_page_names_engines_and_what_differs(predicted, tmp_path):
    folder = in_kernel(predicted, tmp_path / "kernel")
    completion = pl.col("completion_ns")
    scaled(folder, "flows", (completion * 1.3).cast(pl.Int64).alias("completion_ns"))
    page = report.write([predicted, folder], tmp_path / "page.html")
    text = re.sub(r"<[^>]+>", " ", page.read_text())
    assert "predicted (simulator)" in text
    assert "measured in the kernel" in text
    assert "1.30 ×" in text
    assert "differs" in text


def test_the_command_takes_several(predicted, tmp_path):
    kernel = in_kernel(predicted, tmp_path / "kernel")
    done = run("report", str(predicted), str(kernel), "--out", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").exists()


def test_a_link_that_varies_is_held_against_what_it_gave(tmp_path):
    # 10 Mbit/s for 5 of the 10 s that count, 2 Mbit/s for the others, and two flows that fill it.
    varying = 'limit = "100packets", varying = "steps:0s=10mbit,7s=2mbit"'
    text = SCENARIO.replace('limit = "100packets"', varying)
    shortlane.simulate(tomllib.loads(text), progress=None).write(tmp_path / "predicted")
    found = cells(tmp_path / "predicted", in_kernel(tmp_path / "predicted", tmp_path / "kernel"))
    there = [cell for cell in found if cell.quantity is quantities.USE and cell.what == "way there"]
    assert len(there) == 2
    for cell in there:
        assert 95 < cell.values[0].value < 100.5, cell


def test_markdown_has_a_column_for_each_scheduler_or_each_engine(predicted, tmp_path):
    alone = run("report", str(predicted), "--markdown").stdout.splitlines()
    assert alone[0] == "|  | fifo | fq-codel |"
    assert any(line.startswith("| Rate of long flows: downloads, Mbit/s | ") for line in alone)
    # No acknowledgment was dropped: that needs no line.
    assert any("dropped: way there" in line for line in alone)
    assert not any("dropped: way back" in line for line in alone)
    kernel = in_kernel(predicted, tmp_path / "kernel")
    both = run("report", str(kernel), str(predicted), "--markdown").stdout.splitlines()
    assert both[0] == "|  | scheduler | predicted (simulator) | measured in the kernel |  |"
    columns = {line.count(" | ") for line in both}
    assert len(columns) == 1, both
    assert any(line.endswith("agrees (1.00 × [1.00, 1.00]) |") for line in both)


def test_other_experiments_are_refused(predicted, tmp_path):
    other = tmp_path / "other"
    shorter = tomllib.loads(SCENARIO.replace("100packets", "50packets"))
    shortlane.simulate(shorter, progress=None).write(other)
    with pytest.raises(InputError, match="of another scenario than"):
        engines.runs_of([predicted, other])


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_is_quiet_and_as_wide_as_the_window(predicted, tmp_path, width):
    kernel = in_kernel(predicted, tmp_path / "kernel")
    page = report.write([predicted, kernel], tmp_path / "page.html")
    with opened(page, width=width) as shown:
        shown.check()
