"""Campaigns on this machine: what is written, resumed, refused, and survives."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib

import polars as pl
import pytest
import shortlane
from campaign_help import (  # noqa: F401 - the fixture
    HANG,
    KILL,
    SLOW,
    _nothing_is_left_running,
    alive,
    at_run,
    children,
    command,
    files,
    finish,
    in_workers,
    run,
    start,
    status,
    sweep,
    sweep_file,
    wait_for,
)
from shortlane import campaign
from shortlane.campaign import Campaign
from shortlane.errors import InputError


def test_results_are_those_of_simulate(tmp_path):
    sweep = Campaign.load({**_sweep(), "campaign": {**_sweep()["campaign"], "seeds": [3, 1, 2]}})
    said = []
    outcome = sweep.run(tmp_path, jobs=2, progress=lambda *told: said.append(told))
    assert (outcome.runs, outcome.done, outcome.ran, outcome.failed) == (12, 12, 12, [])
    assert said[-1] == (1.0, "12 of 12 runs")
    flows = campaign.open(tmp_path).table("flows").collect()
    for run_ in sweep.runs():
        alone = shortlane.simulate(tomllib.loads(run_.scenario), seeds=run_.seed)
        expected = alone.flows.drop("run", "scheduler", "seed", "round", "block")
        found = flows.filter(pl.col("run_id") == run_.id)
        assert found.select(expected.columns).equals(expected)
        assert found["scheduler"].unique().to_list() == [run_.scheduler]
        assert found["seed"].unique().to_list() == [run_.seed]
        load = run_.point.params["traffic.transfers.load"]
        assert found["param.traffic.transfers.load"].unique().to_list() == [load]


def _sweep():
    return sweep()


def test_a_run_is_a_file_that_says_what_it_is(tmp_path):
    Campaign.load(sweep(seeds=7, loads=[0.5], schedulers=["efd"])).run(tmp_path, jobs=1)
    (path,) = tmp_path.glob("runs/*")
    row = pl.read_parquet(path).row(0, named=True)
    assert row["run_id"] == path.stem
    assert (row["campaign"], row["scheduler"], row["seed"]) == ("Small sweep", "efd", 7)
    assert row["param.traffic.transfers.load"] == 0.5
    assert (row["version"], row["schema"]) == (shortlane.__version__, shortlane.SCHEMA_VERSION)
    assert tomllib.loads(row["scenario"])["schedulers"] == {"run": ["efd"]}
    assert len(row["flows.size_bytes"]) == len(row["flows.completion_ns"]) > 0


def test_only_the_tables_and_columns_that_are_wanted(tmp_path):
    document = sweep(seeds=1)
    document["campaign"]["tables"] = ["flows", "probes"]
    Campaign.load(document).run(tmp_path, jobs=1)
    results = campaign.open(tmp_path)
    table = results.table("flows", columns=["completion_ns", "index"])
    key = ["run_id", "point", "scheduler", "seed", "param.traffic.transfers.load"]
    assert table.collect_schema().names() == [*key, "completion_ns", "index"]
    some = results.runs().filter(pl.col("scheduler") == "efd")
    found = results.table("flows", ["index"], runs=some).collect()
    assert found["scheduler"].unique().to_list() == ["efd"]
    assert results.table("probes").collect().height > 0
    with pytest.raises(InputError, match=r"table 'links' is not there; .* flows, probes"):
        results.table("links")
    with pytest.raises(InputError, match="no column 'size'; it takes index, kind"):
        results.table("flows", columns=["size"])


def test_tables_without_rows(tmp_path):
    document = sweep(seeds=1, loads=[0.5])
    document["campaign"]["scenario"] = document["campaign"]["scenario"] | {
        "traffic": [{"kind": "transfers", "load": 0.5}]
    }
    Campaign.load(document).run(tmp_path, jobs=1)
    probes = campaign.open(tmp_path).table("probes").collect()
    assert probes.height == 0
    assert probes.schema["delay_ns"] == pl.Int64


def test_runs_of_a_build_that_knew_more_columns(tmp_path):
    Campaign.load(sweep(seeds=1)).run(tmp_path, jobs=1)
    last = sorted(tmp_path.glob("runs/*.parquet"))[-1]
    more = pl.read_parquet(last).with_columns(pl.lit([1]).alias("flows.later"))
    more.write_parquet(last)
    flows = campaign.open(tmp_path).table("flows", ["index"]).collect()
    assert flows["run_id"].n_unique() == len(files(tmp_path))


def test_nothing_done_is_an_empty_table(tmp_path):
    failing = sweep(seeds=1, loads=[99.0])
    assert len(Campaign.load(failing).run(tmp_path, jobs=1).failed) == 2
    flows = campaign.open(tmp_path).table("flows", ["size_bytes", "kind", "complete"]).collect()
    assert flows.height == 0
    assert flows.dtypes[-3:] == [pl.Int64, pl.String, pl.Boolean]


def test_resuming_runs_only_what_is_missing(tmp_path):
    whole = Campaign.load(sweep())
    whole.run(tmp_path, jobs=2)
    everything = {name: (tmp_path / "runs" / name).read_bytes() for name in files(tmp_path)}
    for name in files(tmp_path)[:3]:
        (tmp_path / "runs" / name).unlink()
    (tmp_path / "runs" / ".0123.parquet.99.tmp").write_bytes(b"half of a file")
    outcome = whole.run(tmp_path, jobs=2)
    assert (outcome.done, outcome.ran) == (16, 3)
    assert not list(tmp_path.glob("runs/.*"))
    again = {name: (tmp_path / "runs" / name).read_bytes() for name in files(tmp_path)}
    assert again == everything
    assert whole.run(tmp_path, jobs=2).ran == 0


def test_a_campaign_grows(tmp_path):
    Campaign.load(sweep(seeds="1..2")).run(tmp_path, jobs=2)
    more = sweep(seeds="1..3", schedulers=["fifo", "efd", "las"])
    outcome = Campaign.load(more).run(tmp_path, jobs=2)
    assert (outcome.runs, outcome.ran) == (18, 10)


def test_an_impossible_combination_is_named_and_the_rest_goes_on(tmp_path):
    path = sweep_file(tmp_path, loads="[0.4, 99.0]", more='efd = { threshold = ["-1"] }')
    out = tmp_path / "out"
    code, _, err = run("campaign", "run", path, "--out", out)
    assert code == 1
    # Of 2 loads, 3 schedulers and 4 seeds: one load is refused, and one scheduler.
    assert "16 of 24 runs failed" in err.splitlines()[-1]
    code, found = status(out)
    assert (code, found["done"], found["failed"], found["missing"]) == (1, 8, 16, 0)
    reasons = {failure["error"]: failure for failure in found["failures"]}
    assert len(reasons) == 2
    for reason, failure in reasons.items():
        assert "-1 is not accepted" in reason or "99.0 is not accepted" in reason
        again = shlex.split(failure["command"])
        assert again[0] == "shortlane"
        repeated = subprocess.run(
            command(*again[1:]), cwd=out / "failed", capture_output=True, text=True, check=False
        )
        assert repeated.returncode == 2
        assert reason.partition(": ")[2] in repeated.stderr


def test_failed_runs_are_tried_again(tmp_path):
    document = sweep(seeds=1)
    slow = document["campaign"]["scenario"] | {
        "scenario": {"title": "Long", "duration": "600s", "warm-up": "0s"}
    }
    document["campaign"]["scenario"] = slow
    outcome = Campaign.load(document).run(tmp_path, jobs=2, limit_s=0.05)
    assert len(outcome.failed) == outcome.runs == 4
    assert "longer than 0.05 s" in outcome.failed[0].error
    states = campaign.open(tmp_path).runs()["state"].to_list()
    assert states == ["failed"] * 4
    outcome = Campaign.load(document).run(tmp_path, jobs=2)
    assert (outcome.done, outcome.failed) == (4, [])
    assert not list((tmp_path / "failed").iterdir())


def test_ctrl_c_says_what_remains(tmp_path):
    path = sweep_file(tmp_path, seeds="1..100")
    out = tmp_path / "out"
    process = start("campaign", "run", path, "--out", out, env=in_workers(tmp_path, SLOW))
    wait_for("first result", lambda: files(out))
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    code, _, err = finish(process)
    assert code == 1
    said = err.splitlines()[-1]
    assert said.startswith("shortlane: interrupted; ")
    assert said.endswith("remain: the same command continues")
    wait_for("end of the workers", lambda: not any(map(alive, workers)))
    assert not list(out.glob("runs/.*"))
    found = status(out)[1]
    assert 0 < found["done"] < 400
    assert found["done"] + found["missing"] == 400


def test_a_client_that_is_killed_resumes(tmp_path):
    path = sweep_file(tmp_path, seeds="1..20")
    out = tmp_path / "out"
    process = start("campaign", "run", path, "--out", out, env=in_workers(tmp_path, SLOW))
    wait_for("first result", lambda: files(out))
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    wait_for("end of the workers", lambda: not any(map(alive, workers)))
    before = files(out)
    for name in before:
        assert pl.read_parquet(out / "runs" / name).height == 1
    code, out_text, _ = run("campaign", "run", path, "--out", out)
    assert (code, out_text) == (0, "Small sweep: 80 of 80 runs done\n")
    assert set(before) < set(files(out))


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    path = sweep_file(tmp_path)
    env = in_workers(tmp_path, at_run("efd", 2, KILL, once=True))
    code, out_text, _ = run("campaign", "run", path, "--out", tmp_path / "out", env=env)
    assert (tmp_path / "done-once").exists()
    assert (code, out_text) == (0, "Small sweep: 16 of 16 runs done\n")


def test_a_worker_that_hangs_is_replaced(tmp_path):
    path = sweep_file(tmp_path)
    env = in_workers(tmp_path, at_run("efd", 2, HANG, once=True))
    out = tmp_path / "out"
    code, out_text, _ = run("campaign", "run", path, "--out", out, "--hang", "1s", env=env)
    assert (tmp_path / "done-once").exists()
    assert (code, out_text) == (0, "Small sweep: 16 of 16 runs done\n")


def test_a_run_that_kills_its_workers_is_given_up(tmp_path):
    path = sweep_file(tmp_path, loads="[0.4]")
    env = in_workers(tmp_path, at_run("efd", 2, KILL, once=False))
    out = tmp_path / "out"
    code, _, err = run("campaign", "run", path, "--out", out, "--tries", "2", env=env)
    assert code == 1
    assert "1 of 8 runs failed" in err
    found = status(out)[1]
    (failure,) = found["failures"]
    assert (found["done"], failure["scheduler"], failure["seed"]) == (7, "efd", 2)
    assert failure["error"] == "it killed its worker 2 times (out of memory?)"


def test_another_campaign_is_refused_by_both_names(tmp_path):
    Campaign.load(sweep(seeds=1)).run(tmp_path, jobs=1)
    other = Campaign.load(sweep(seeds=1, title="Other sweep"))
    with pytest.raises(InputError) as refused:
        other.run(tmp_path, jobs=1)
    assert "'Small sweep' (scenario scenario, 4 runs)" in str(refused.value)
    assert "'Other sweep' (scenario scenario, 4 runs); take another --out" in str(refused.value)


def test_a_campaign_that_has_lost_runs_is_refused(tmp_path):
    Campaign.load(sweep(seeds="1..2")).run(tmp_path, jobs=1)
    less = Campaign.load(sweep(seeds=1))
    with pytest.raises(InputError, match=r"4 of the runs done there are not in this one.*--again"):
        less.run(tmp_path, jobs=1)
    assert less.run(tmp_path, jobs=1, again=True).ran == 0
    assert campaign.open(tmp_path).table("links").collect()["seed"].unique().to_list() == [1]


def test_what_was_never_done_may_be_dropped(tmp_path):
    impossible = sweep(seeds=1, loads=[0.4], schedulers=["efd", "sb:weight=1.2"])
    assert len(Campaign.load(impossible).run(tmp_path, jobs=1).failed) == 1
    outcome = Campaign.load(sweep(seeds=1, loads=[0.4], schedulers=["efd"])).run(tmp_path, jobs=1)
    assert (outcome.runs, outcome.ran, outcome.failed) == (1, 0, [])
    assert campaign.open(tmp_path).runs()["state"].to_list() == ["done"]


def test_the_same_campaign_twice_at_once_is_refused(tmp_path):
    path = sweep_file(tmp_path, seeds="1..100")
    out = tmp_path / "out"
    first = start("campaign", "run", path, "--out", out, env=in_workers(tmp_path, SLOW))
    wait_for("first result", lambda: files(out))
    code, _, err = run("campaign", "run", path, "--out", out)
    assert code == 2
    assert "another campaign is running into it" in err
    os.kill(first.pid, signal.SIGINT)
    assert finish(first)[0] == 1


@pytest.mark.parametrize("key", ["version", "schema"])
def test_results_of_another_version_are_not_mixed(tmp_path, key):
    document = sweep(seeds=1, loads=[0.4])
    Campaign.load(document).run(tmp_path, jobs=1)
    plan = json.loads((tmp_path / "campaign.json").read_text())
    older = {"version": "0.0.1", "schema": 0}[key]
    ids = {run: f"{i:016x}" for i, run in enumerate(plan["runs"])}
    plan |= {key: older, "runs": {ids[run]: what for run, what in plan["runs"].items()}}
    for path in tmp_path.glob("runs/*"):
        path.rename(path.with_stem(ids[path.stem]))
    (tmp_path / "campaign.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match=rf"holds results of shortlane .*{older}.*--again"):
        Campaign.load(document).run(tmp_path, jobs=1)
    outcome = Campaign.load(document).run(tmp_path, jobs=1, again=True)
    assert outcome.ran == 2
    assert len(files(tmp_path)) == 4
    assert campaign.open(tmp_path).table("blocks").collect().height == 2


def test_no_campaign_there(tmp_path):
    code, _, err = run("campaign", "status", tmp_path)
    assert code == 2
    assert "there is no campaign.json; it takes a directory" in err
    (tmp_path / "campaign.json").write_text('{"format": 99}')
    code, _, err = run("campaign", "status", tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(shutil.which("unshare") is None, reason="takes unshare")
def test_a_full_disk_is_one_line_and_nothing_half_written(tmp_path):
    path = sweep_file(tmp_path, seeds="1..40")
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = f"""
import os, subprocess, sys
from pathlib import Path
go = {command("campaign", "run", path, "--out", disk, "--jobs", 2)!r}
full = subprocess.run(go, capture_output=True, text=True)
print(full.returncode, full.stderr.splitlines()[-1])
left = [p.name for p in Path({str(disk)!r}).glob("*/.*")]
print(len(list(Path({str(disk)!r}).glob("runs/*"))), left)
subprocess.run(["mount", "-o", "remount,size=20m", {str(disk)!r}], check=True)
done = subprocess.run(go, capture_output=True, text=True)
print(done.returncode, done.stdout.strip())
"""
    script = 'mount -t tmpfs -o size=400k none "$0" && exec "$@"'
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, disk]
    ran = subprocess.run(
        [*unshare, sys.executable, "-c", inside],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    full, left, done = ran.stdout.splitlines()
    assert full.startswith("1 shortlane: worker ")
    assert f"cannot write {disk}/" in full
    assert "No space left on device" in full
    assert full.endswith("the same command continues")
    number, temporary = left.split(" ", 1)
    assert 0 < int(number) < 160
    assert temporary == "[]"
    assert done == "0 Small sweep: 160 of 160 runs done"


def test_bad_options_are_one_line(tmp_path):
    path = sweep_file(tmp_path)
    both = run("campaign", "run", path, "--out", tmp_path, "--jobs", 1, "--cluster", "tcp://x:1")
    assert both[0] == 2
    for options in (["--jobs", "0"], ["--limit", "5"], ["--hang", "soon"]):
        code, _, err = run("campaign", "run", path, "--out", tmp_path / "out", *options)
        assert code == 2
        assert "is not accepted; it takes" in err
    code, _, err = run("campaign", "run", path, "--out", "nowhere://x")
    assert code == 2
    assert "--out nowhere://x" in err
    assert len(err.splitlines()) == 1
