"""The LAS paper: its claims, each of its statistics by hand, and one row end to end."""

import inspect
import shutil
import sys

import polars as pl
import pytest
from commands import run
from shortlane.paper import catalog, data, evidence
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import Tables

stats = catalog.code(data.folder("las"), "stats")
STATISTICS, received, window_losses = stats.STATISTICS, stats.received, stats.window_losses

SECOND = 1_000_000_000


def progress(*rows):
    """A row: scheduler, seed, connection, seconds, bytes, then packets and dropped ones."""
    columns = [
        "scheduler",
        "seed",
        "traffic",
        "t_ns",
        "received_bytes",
        "packets",
        "dropped_packets",
    ]
    full = [
        (scheduler, seed, name, round(at * SECOND), amount, *(rest or (0, 0)))
        for scheduler, seed, name, at, amount, *rest in rows
    ]
    return pl.DataFrame(full, schema=columns, orient="row")


def tables(*rows, **more):
    return Tables.of({"progress": progress(*rows), **more})


def values(name, of, /, **arguments):
    return dict(STATISTICS[name](of, **arguments).values)


def test_the_paper_has_every_row_of_its_section():
    paper = catalog.named("las")
    section = "D-F2a D-F2b D-F3a D-F3b D-F5 D-F6 D-T1 D-C0 D-F7 D-F8a D-F8b D-F10a D-F10b D-C1 D-C2"
    assert " ".join(row.id for row in paper.rows) == section
    table = next(row for row in paper.rows if row.id == "D-T1")
    published = [report.published for report in table.reports if report.published is not None]
    # All, connections 1 to 5, connection 0; LAS and FIFO: the sums of the paper's table are right.
    assert published == [1013, 649, 926, 569, 87, 80]
    assert (926 + 87, 569 + 80) == (1013, 649)
    assert [round(check.published, 2) for check in table.checks] == [
        round(1013 / 649, 2),
        round(926 / 569, 2),
        round(87 / 80, 2),
    ]


def test_what_is_received_by_a_time_is_that_of_the_latest_row_until_then():
    frame = progress(("las", 1, "a", 1.0, 100), ("las", 1, "a", 3.0, 300), ("fifo", 1, "a", 1.0, 7))
    found = received(frame, "las", ("a", "b"), (0.5, 1.0, 2.9, 3.0, 9.0))
    assert found == {1: {"a": [0, 100, 100, 300, 300], "b": [0, 0, 0, 0, 0]}}


#: Connection a gets 600 of 1000 bytes until 10 s, and 100 of 1000 from then to 20 s.
UNEVEN = (
    ("las", 1, "a", 10.0, 600),
    ("las", 1, "b", 10.0, 400),
    ("las", 1, "c", 10.0, 200),
    ("las", 1, "a", 20.0, 700),
    ("las", 1, "b", 20.0, 1300),
    ("las", 1, "c", 20.0, 400),
)


def test_shares_are_of_a_span():
    of = {"scheduler": "las", "pair": ["a", "b"]}
    assert values("share", tables(*UNEVEN), span=[0, 20], **of) == {1: 0.35}
    assert values("share", tables(*UNEVEN), span=[10, 20], **of) == {1: 0.1}
    assert values("share", tables(*UNEVEN), span=[20, 30], **of) == {}
    distance = values("share-distance", tables(*UNEVEN), to=["a", "c"], span=[0, 10], **of)
    assert distance == pytest.approx({1: 0.75 - 0.6})
    assert values("imbalance", tables(*UNEVEN), end=20, **of) == {1: 30}


def test_who_is_ahead_and_when_that_changes():
    of = {"scheduler": "las", "pair": ["a", "b"]}
    # At 10, 11, ... 19 s a has more in all, at 20 s b.
    assert values("ahead", tables(*UNEVEN), span=[10, 20], **of) == {1: pytest.approx(1000 / 11)}
    assert values("meetings", tables(*UNEVEN), span=[10, 20], **of) == {1: 1}
    assert values("meetings", tables(*UNEVEN), span=[10, 19], **of) == {1: 0}


def test_reversals_pass_over_even_windows():
    amounts = {"a": [0, 70, 120, 150, 180], "b": [0, 30, 80, 150, 220]}
    rows = [
        ("las", 1, name, 10.0 * place, amount)
        for name, all_of_it in amounts.items()
        for place, amount in enumerate(all_of_it)
    ]
    # Shares of a: 0.7, 0.5, 0.3, 0.3.
    of = {"scheduler": "las", "pair": ["a", "b"], "span": [0, 40], "window": 10}
    assert values("reversals", tables(*rows), part=0.6, **of) == {1: 1}
    assert values("reversals", tables(*rows), part=0.75, **of) == {1: 0}


def test_variation_is_of_throughput_by_the_second():
    steps = [("fifo", 1, "a", 1.0 * at, amount) for at, amount in enumerate([0, 10, 40, 50, 80])]
    even = [("las", 1, "a", 1.0 * at, amount) for at, amount in enumerate([0, 15, 40, 55, 80])]
    # 10, 30, 10, 30: deviation 10 of 20; 15, 25, 15, 25: 5 of 20.
    of = {"of": "a", "span": [0, 4]}
    assert values("variation", tables(*steps), scheduler="fifo", **of) == {1: 0.5}
    found = values("variation-ratio", tables(*steps, *even), scheduler="fifo", to="las", **of)
    assert found == {1: 2}


def test_streams_are_counted_when_they_arrive():
    rows = [
        ("las", 1, "udp", at * SECOND, delay) for at, delay in ((0, SECOND), (1, SECOND), (2, None))
    ]
    probes = pl.DataFrame(
        rows, schema=["scheduler", "seed", "stream", "sent_ns", "delay_ns"], orient="row"
    )
    both = tables(("las", 1, "tcp", 2.5, 1920), probes=probes)
    # Both packets of 1000 bytes arrive from 1 s to 3 s: 8 kbit/s.
    of = {"scheduler": "las", "of": "udp", "span": [1, 3]}
    assert values("stream-goodput", both, rate=16000, **of) == {1: 0.5}
    of = {"scheduler": "las", "of": "tcp", "to": "udp"}
    assert values("connection-to-stream", both, span=[0, 3], **of) == {1: 1}
    assert values("connection-to-stream", both, span=[0, 2], **of) == {}


def flows(*rows):
    """A row: scheduler, connection, packets, dropped ones, bytes received."""
    columns = ["scheduler", "traffic", "packets", "dropped_packets", "received_bytes"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(seed=pl.lit(1), start_ns=pl.lit(2 * SECOND))


def test_losses_and_throughput_of_connections():
    frame = flows(
        ("las", "0", 100, 8, 500),
        ("las", "1", 200, 10, 2000),
        ("fifo", "0", 50, 4, 250),
        ("fifo", "1", 200, 2, 2000),
    )
    there = Tables.of({"flows": frame.with_columns(received_bytes=pl.lit(1000))})
    blocks = pl.DataFrame({"scheduler": ["las"], "seed": [1], "duration_ns": [4 * SECOND]})
    both = Tables.of({"flows": frame, "blocks": blocks}, there=there)
    pair = {"scheduler": "las", "to": "fifo"}
    assert values("lost", both, scheduler="las", of=["0", "1"]) == {1: 18}
    assert values("lost-ratio", both, of=["0", "1"], **pair) == {1: 3}
    assert values("sent", both, scheduler="fifo", of=["0"]) == {1: 50}
    assert values("loss", both, scheduler="las", of="0") == {1: 8}
    assert values("loss-ratio", both, of="0", **pair) == {1: 1}
    assert values("throughput-ratio", both, of="0", **pair) == {1: 2}
    assert values("throughput-ratio", both, of="0", to_point="there", **pair) == {1: 0.5}
    # 500 bytes in 2 s.
    assert values("throughput", both, scheduler="las", of="0") == {1: 2}


def test_windows_have_losses_of_their_own():
    rows = (
        ("las", 1, "ftp", 90.0, 1, 50, 10),
        ("las", 1, "ftp", 150.0, 2, 150, 20),
        ("las", 1, "ftp", 190.0, 3, 250, 30),
        ("las", 1, "ftp", 290.0, 4, 350, 60),
        ("fifo", 1, "ftp", 190.0, 3, 100, 6),
    )
    assert window_losses(progress(*rows), "las", "ftp", 100, 100) == {1: {0: 10, 1: 30}}
    of = {"scheduler": "las", "other": "fifo", "of": "ftp", "window": 100, "start": 100}
    # The second window has no packets under FIFO.
    assert values("window-loss-difference", tables(*rows), **of) == {1: 4}


def test_every_statistic_of_the_paper_is_covered_here():
    here = inspect.getsource(sys.modules[__name__])
    own = [name for name in STATISTICS if name not in SHARED]
    assert [name for name in own if f'"{name}"' not in here] == []


def test_a_row_from_runs_to_page(tmp_path):
    folder = shutil.copytree(data.folder("las"), tmp_path / "las")
    file = folder / "two-tcp.scenario.toml"
    file.write_text(file.read_text().replace('"200s"', '"60s"'))
    out = tmp_path / "out"
    ended = run("paper", str(folder), "--quick", "--rows", "D-F2a", "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    (row,) = evidence.read(out / evidence.FILE).rows
    # Six seeds are declared; the row is decided at the first look.
    assert (row.id, row.worst.n) == ("D-F2a", 4)
    assert 0.5 < row.worst.value <= 1
    assert (out / "figure-2.svg").exists()
