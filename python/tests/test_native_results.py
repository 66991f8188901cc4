"""`read()`, `replay()` and the statistics."""

import json
import struct

import polars
import pytest
import shortlane
from commands import run
from shortlane import stats
from shortlane.disciplines import Efd

from scenarios import SCENARIO


def capture(path, packets=300):
    """A pcap of UDP packets, five of one flow at once, then of a flow each."""
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    body = bytearray(head)
    time = 0
    for number in range(packets):
        time += 0 if number < 5 else 90
        port = 0 if number < 5 else number
        body += struct.pack("<IIII", 0, time, 60, 100)
        body += bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 86, 0, 0, 0, 0, 64])
        body += bytes([17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]) + struct.pack(">H", port) + bytes(24)
    path.write_bytes(body)
    return path


def test_a_replay_is_that_of_the_command(tmp_path):
    pcap = capture(tmp_path / "x.pcap")
    schedulers = ["fifo", Efd(threshold=1)]
    results = shortlane.replay(pcap, "8mbit", limit=40, schedulers=schedulers, events=True)
    out, events = tmp_path / "out", tmp_path / "events.parquet"
    command = ["replay", str(pcap), "--rate", "8mbit", "--limit", "40packets"]
    command += ["--scheduler", "fifo", "--scheduler", "efd:threshold=1packets"]
    files = ["--out", str(out), "--events", str(events)]
    assert run(*command, *files).stdout == results.text
    assert json.loads(run(*command, "--json").stdout)["schedulers"] == results.summary

    theirs = shortlane.read(out)
    for name in theirs.tables:
        assert theirs[name].polars().equals(results[name].polars()), name
    assert polars.read_parquet(events).equals(results.events)
    assert len(results.events) == 600
    differ = {key for key in theirs.info if theirs.info[key] != results.info[key]}
    assert differ == {"command"}
    # What is written down does the same again.
    again = run(*results.info["command"][1:])
    assert (again.returncode, again.stdout) == (0, results.text)
    assert results.warnings == theirs.info["scenario"]["warnings"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rate": "10"}, "rate 10 is not accepted: it takes a rate above 0 with its unit"),
        ({"limit": "9"}, "limit 9 is not accepted: it takes an amount above 0 with its unit"),
        ({"idle": 0}, "idle 0ns is not accepted: it takes a time above 0"),
        ({"seed": -1}, "seed -1 is not accepted: it takes a number from 0"),
        ({"schedulers": ["srpt"]}, "srpt cannot run on a capture"),
        ({"schedulers": ["fifo", "fifo"]}, "the scheduler fifo is named twice"),
    ],
)
def test_what_a_replay_does_not_take(tmp_path, arguments, said):
    with pytest.raises(shortlane.InputError) as caught:
        shortlane.replay(capture(tmp_path / "x.pcap"), **({"rate": "1mbit"} | arguments))
    assert said in str(caught.value)


def test_what_is_no_capture(tmp_path):
    (tmp_path / "x.pcap").write_bytes(b"nothing of the kind")
    for path, said in [("x.pcap", "capture "), ("y.pcap", "No such file"), (".", "is a directory")]:
        with pytest.raises(shortlane.InputError, match=said):
            shortlane.replay(tmp_path / path, "1mbit")


def test_a_directory_without_results_says_so(tmp_path):
    with pytest.raises(shortlane.InputError, match=r"no run\.json .*it takes a directory that"):
        shortlane.read(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(shortlane.InputError, match="not that of a run"):
        shortlane.read(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": 0, "version": "0.0.1"}')
    with pytest.raises(shortlane.InputError, match=r"schema is 0, written by Shortlane 0\.0\.1"):
        shortlane.read(tmp_path)


def test_a_table_that_is_none_says_so(tmp_path):
    info = {"schema": shortlane.SCHEMA_VERSION, "run": "x"}
    (tmp_path / "run.json").write_text(json.dumps(info))
    (tmp_path / "flows.parquet").write_bytes(b"PAR1")
    results = shortlane.read(tmp_path)
    with pytest.raises(shortlane.InputError, match=r"flows\.parquet: not a table of results"):
        _ = results.flows


def test_results_that_cannot_be_written_say_so(tmp_path):
    results = shortlane.simulate(SCENARIO, seeds=1, tables=["blocks"])
    (tmp_path / "file").write_text("")
    with pytest.raises(shortlane.RunError, match="results not written"):
        results.write(tmp_path / "file" / "below")
    with pytest.raises(shortlane.InputError, match="format xls is not accepted: it takes parquet"):
        results.write(tmp_path, "xls")
    results.write(tmp_path / "one")
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"blocks.parquet", "run.json"}


def test_estimates_are_those_of_the_tables():
    estimate = stats.mean([1, 2, 3, 4, 5])
    assert (estimate.value, estimate.n) == (3, 5)
    assert (estimate.low, estimate.high) == pytest.approx((1.036757, 4.963243), rel=1e-5)
    # t(4) at 99 %: 4.604095.
    assert stats.mean([1, 2, 3, 4, 5], 0.99).high == pytest.approx(
        3 + 4.604095 * 0.5**0.5, rel=1e-5
    )
    assert stats.quantile(range(1, 21), 0.5).low == 6
    assert stats.quantile(range(5), 0.5) is None
    assert stats.geometric_ratio([(2, 1), (1, 2)]).value == pytest.approx(1)
    assert stats.ratio_of_sums([(2, 3), (4, 3)]).value == 1
    assert stats.mean([]) is None
    assert stats.mean([7.0]).low is None
    assert str(stats.mean([1, 2, 3])) == "2 [-0.4841, 4.484]"
    sure = stats.mean([1.0, 2.0, 3.0, 4.0])
    assert sure.is_below(5)
    assert sure.is_above(0)
    assert not sure.is_below(3)
    assert sure == stats.mean(polars.Series([1, 2, 3, 4]))


def test_any_statistic_has_its_interval():
    values = [(float(i), float(i * i)) for i in range(30)]

    def ratio(pairs):
        return sum(b for _, b in pairs) / sum(a for a, _ in pairs)

    once = stats.bca(values, ratio, seed=3, resamples=500)
    assert once.value == pytest.approx(ratio(values))
    assert once.low < once.value < once.high
    assert once == stats.bca(values, ratio, seed=3, resamples=500)
    assert once != stats.bca(values, ratio, seed=4, resamples=500)
    wide = stats.bca(values, ratio, confidence=0.999, seed=3, resamples=2000)
    assert wide.high - wide.low > once.high - once.low


def test_what_a_statistic_raises_comes_out():
    with pytest.raises(ZeroDivisionError):
        stats.bca(range(20), lambda values: 1 / 0)
    with pytest.raises(shortlane.InputError, match="the statistic gave NaN"):
        stats.bca(range(20), lambda values: float("nan"))
    with pytest.raises(shortlane.InputError, match="value 1 is inf; it takes finite numbers"):
        stats.mean([1, float("inf")])
    with pytest.raises(shortlane.InputError, match="confidence 95 is not accepted"):
        stats.mean([1, 2], confidence=95)
    with pytest.raises(shortlane.InputError, match="seed -1 is not accepted"):
        stats.bca([1, 2], sum, seed=-1)
    with pytest.raises(shortlane.InputError, match="q 1 is not accepted"):
        stats.quantile([1, 2], 1)
