"""The flow scheduler paper: its rows, its statistics on tables made by hand, a row end to end."""

import json
import shutil
import subprocess
import sys
import tomllib

import polars as pl
import pytest
from shortlane.errors import InputError
from shortlane.paper import catalog, data
from shortlane.paper.loading import load
from shortlane.paper.runs import jobs
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import Tables

stats = catalog.code(data.folder("flow-scheduler"), "stats")
PACKET, STATISTICS, WARM_UP = stats.PACKET, stats.STATISTICS, stats.WARM_UP
figures = catalog.code(data.folder("flow-scheduler"), "figures")
FIGURES = figures.FIGURES

SECOND = 1_000_000_000
SECTION = (
    "B-F3 B-T1a B-T1b B-T1c B-T1d B-T2 B-F4a-6a B-F4b-6b B-F5a B-F5b-7b B-T3a B-T4a B-T3b B-TH "
    "B-F9b-11b B-F7a B-F8-9a-10 B-C1 B-F11a"
)


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(data.folder("flow-scheduler"), tmp_path / "flow-scheduler")


def test_it_has_every_row_of_its_section(folder):
    paper = load(folder, STATISTICS)
    assert " ".join(row.id for row in paper.rows) == SECTION
    wanted = {row.figure for row in paper.rows if row.figure}
    assert {figure.id for figure in FIGURES} == wanted


def test_tables_are_there_with_their_numbers(folder):
    paper = load(folder, STATISTICS)
    published = {
        (check.statistic, check.point, check.arguments["scheduler"]): check.published
        for row in paper.rows
        for check in row.reports
        if check.published is not None and "sizes" not in check.arguments
    }
    assert published["small-timeouts", "s1", "fifo"] == 579
    assert published["small-timeouts", "s2", "sb:weight=1"] == 879
    assert published["completion", "s1", "sb-ko"] == 1.2347
    assert published["completion", "s2", "sb-sh"] == 0.7666
    assert published["completion", "s1", "sb-ko:threshold=100packets"] == 1.0939


def test_published_means_of_a_table_agree_with_each_other(folder):
    """The mean of all is that of small and of large ones, with one part of small ones a table."""
    paper = load(folder, STATISTICS)
    found = {}
    for row in paper.rows:
        for check in row.reports:
            if check.statistic == "completion" and check.published is not None:
                sizes = tuple(check.arguments.get("sizes", ()))
                kind = {(): "all", (1, 20): "small"}.get(sizes, "large")
                found.setdefault((check.point, check.arguments["scheduler"]), {})[kind] = (
                    check.published
                )
    assert len(found) == 15
    small = {"s1": 0.2874, "s2": 0.5383}
    for (point, _), mean in found.items():
        of_both = small[point] * mean["small"] + (1 - small[point]) * mean["large"]
        assert of_both == pytest.approx(mean["all"], rel=2e-3)


def test_quick_is_a_tenth_of_every_rate(folder):
    paper = load(folder, STATISTICS)
    found = {
        job.name: job.definition["set"]["traffic.0.arrivals"]
        for job in jobs(paper, paper.rows, quick=True, variants=())
        if job.definition["set"]["topology.bottleneck.rate"] == "100mbit"
    }
    quick = tomllib.loads((folder / "paper.toml").read_text())["quick"]["campaigns"]
    assert found == {name: keys["traffic.0.arrivals"] for name, keys in quick.items()}
    assert set(found) == set(paper.campaigns)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[quick.campaigns]\ns1 =",
            "[quick.campaigns]\ns9 =",
            "quick.campaigns = 's9'; it takes q",
        ),
        ('s1 = { "traffic', 's1 = 5 # { "traffic', "quick.campaigns.s1 = 5; it takes a table"),
    ],
)
def test_what_is_wrong_in_quick_is_named(folder, old, new, said):
    file = folder / "paper.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load(folder, STATISTICS)
    assert said in str(error.value)


def flows(*rows):
    """A row: scheduler, seed, index, size in packets, then what differs from a quick transfer."""
    common = {
        "kind": "transfer",
        "start_ns": WARM_UP,
        "completion_ns": SECOND,
        "timeouts": 0,
        "handshake_timeouts": 0,
        "sent_short_lane": 0,
        "sent_long_lane": 0,
    }
    full = [
        common
        | {"scheduler": scheduler, "seed": seed, "index": index, "size_bytes": size * PACKET}
        | rest
        for scheduler, seed, index, size, rest in rows
    ]
    return Tables.of({"flows": pl.DataFrame(full, infer_schema_length=None)})


def took(seconds, **rest):
    return {"completion_ns": None if seconds is None else round(seconds * SECOND), **rest}


def values(name, tables, **arguments):
    return dict(STATISTICS[name](tables, **arguments).values)


COMPLETIONS = flows(
    ("sb", 1, 0, 20, took(1)),
    ("fifo", 1, 0, 20, took(4)),
    # Complete under one of both only.
    ("sb", 1, 1, 3, took(None)),
    ("fifo", 1, 1, 3, took(9)),
    # Before the warm-up has passed.
    ("sb", 1, 2, 3, took(7, start_ns=WARM_UP - 1)),
    ("fifo", 1, 2, 3, took(7, start_ns=WARM_UP - 1)),
    ("sb", 1, 3, 3, took(2)),
    ("fifo", 1, 3, 3, took(3)),
    # Large.
    ("sb", 1, 4, 21, took(50)),
    ("fifo", 1, 4, 21, took(60)),
    ("fifo", 2, 0, 3, took(1)),
)


def test_completion_ratio_is_over_what_is_complete_under_both():
    both = {"scheduler": "sb", "to": "fifo"}
    small = values("completion-ratio", COMPLETIONS, sizes=[1, 20], **both)
    assert small == {1: pytest.approx(3 / 7)}
    assert values("completion-ratio", COMPLETIONS, **both)[1] == pytest.approx(53 / 67)
    assert values("completed-under-both", COMPLETIONS, sizes=[1, 20], **both) == {1: 2}


def test_completion_is_over_what_is_complete():
    assert values("completion", COMPLETIONS, scheduler="sb", sizes=[1, 20]) == {1: 1.5}
    found = values("completion", COMPLETIONS, scheduler="fifo", sizes=[1, 20])
    assert found == {1: pytest.approx(16 / 3), 2: 1}
    assert values("small-share", COMPLETIONS, scheduler="sb") == {1: pytest.approx(2 / 3)}
    assert values("largest", COMPLETIONS, scheduler="fifo") == {1: 21, 2: 3}


def test_the_slowest_small_transfer():
    both = {"scheduler": "sb", "to": "fifo"}
    assert values("worst-completion-ratio", COMPLETIONS, **both) == {1: pytest.approx(2 / 9)}
    # 3 packets: 2 s to 9 s; 20 packets: 1 s to 4 s.
    assert values("worst-completion-at-some-size", COMPLETIONS, **both) == {1: 1 / 4}


def test_timeouts_are_those_of_small_transfers():
    tables = flows(
        ("fifo", 1, 0, 20, took(1, timeouts=2, handshake_timeouts=2)),
        ("fifo", 1, 1, 21, took(1, timeouts=9)),
        ("fifo", 1, 2, 1, took(1, timeouts=9, start_ns=0)),
        ("sb", 1, 0, 20, took(1)),
    )
    assert values("small-timeouts", tables, scheduler="fifo") == {1: 4}
    assert values("small-timeouts", tables, scheduler="fifo", handshake=False) == {1: 2}
    both = {"scheduler": "sb", "to": "fifo"}
    assert values("small-timeouts-ratio", tables, **both) == {1: 1 / 4}
    assert values("small-timeouts-ratio", tables, handshake=False, **both) == {1: 1 / 2}


def test_the_high_lanes_share():
    tables = flows(
        ("sb-ko", 1, 0, 20, took(1, sent_short_lane=20)),
        ("sb-ko", 1, 1, 80, took(1, sent_short_lane=20, sent_long_lane=60)),
        ("sb", 1, 0, 20, took(1, sent_short_lane=20)),
        ("sb", 1, 1, 80, took(1, sent_short_lane=0, sent_long_lane=80)),
    )
    found = values("high-lane-share-ratio", tables, scheduler="sb-ko", to="sb")
    assert found == {1: pytest.approx(2)}


def test_occupancy_is_by_littles_law():
    def waited(seconds, high, low=0):
        waits = {"queueing_mean_ns": round(seconds * SECOND)}
        return took(1, sent_short_lane=high, sent_long_lane=low, **waits)

    flows_only = flows(
        # 40 packets through the high lane in 20 s; those that are known waited 2 s on average.
        ("sb", 1, 0, 20, waited(1, 10)),
        ("sb", 1, 1, 20, waited(3, 10)),
        ("sb", 1, 2, 900, waited(9, 20, low=900)),
        ("sb:weight=0.1", 1, 0, 20, waited(10, 40)),
        ("sb:weight=0.2", 1, 0, 20, waited(5, 40)),
    )["flows"]
    blocks = pl.DataFrame(
        {"scheduler": ["sb"], "seed": [1], "duration_ns": [WARM_UP + 20 * SECOND]}
    )
    tables = Tables.of({"flows": flows_only, "blocks": blocks})
    assert values("occupancy", tables, scheduler="sb") == {1: pytest.approx(40 / 20 * 2)}
    found = values("occupancy-ratio", tables, scheduler="sb:weight=0.2", to="sb")
    assert found == {1: pytest.approx(2.5)}
    weights = ["sb:weight=0.2", "sb:weight=0.1"]
    found = values("largest-occupancy-ratio", tables, schedulers=weights, to="sb")
    assert found == {1: pytest.approx(5)}


def test_loss_is_that_of_the_bottleneck():
    rows = [
        {"link": "bottleneck", "arrived_packets": 400, "dropped_packets": 5},
        {"link": "bottleneck-back", "arrived_packets": 400, "dropped_packets": 0},
    ]
    links = pl.DataFrame([{"scheduler": "fifo", "seed": 1} | row for row in rows])
    assert values("loss", Tables.of({"links": links}), scheduler="fifo") == {1: 1.25}


def test_every_statistic_of_the_paper_is_covered_here():
    here = __import__("inspect").getsource(__import__(__name__))
    own = [name for name in STATISTICS if name not in SHARED]
    assert [name for name in own if f'"{name}"' not in here] == []


def test_a_row_from_end_to_end(folder, tmp_path):
    """A few seconds of the scaled network."""
    file = folder / "paper.toml"
    head, _, rest = file.read_text().partition("[quick.campaigns]\n")
    _, _, rest = rest.partition("[points.s1]")
    short = '"traffic.0.arrivals" = 50, "traffic.0.stop" = "14s", "scenario.duration" = "18s"'
    campaigns = f"s1 = {{ {short} }}\ns2 = {{ {short} }}\n"
    file.write_text(f"{head}[quick.campaigns]\n{campaigns}\n[points.s1]{rest}")
    out = tmp_path / "out"
    rows = "B-T1b,B-F5b-7b"
    command = [sys.executable, "-m", "shortlane", "paper", folder, "--quick", "--rows", rows]
    ended = subprocess.run(
        [*map(str, command), "--json", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert [row["id"] for row in found["rows"]] == rows.split(",")
    small = found["rows"][0]["reports"][0]
    assert (small["what"], small["published"]) == ("small flows under fifo, scenario 1", 0.8432)
    # Two round trips of 100 ms at the least.
    assert 0.2 < small["value"] < 2
    for figure in ("tables-1-2", "5b-7b"):
        assert (out / f"figure-{figure}.svg").read_text().startswith("<svg")
