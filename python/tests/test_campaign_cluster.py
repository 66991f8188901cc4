"""Campaigns on a Dask cluster: a real scheduler and worker processes, some of which die."""

import json
import os
import signal
import socket

import polars as pl
import pytest
from campaign_help import (  # noqa: F401 - the fixture
    KILL,
    SLOW,
    Cluster,
    _nothing_is_left_running,
    at_run,
    children,
    files,
    finish,
    in_workers,
    run,
    start,
    status,
    sweep_file,
    wait_for,
)
from shortlane import campaign
from shortlane.campaign import Campaign

pytestmark = pytest.mark.long


def test_workers_that_are_killed_lose_nothing(tmp_path):
    path, out = sweep_file(tmp_path, seeds="1..20"), tmp_path / "out"
    with Cluster(tmp_path, workers=3, env=in_workers(tmp_path, SLOW)) as cluster:
        client = start("campaign", "run", path, "--out", out, "--cluster", cluster.address)
        for worker in cluster.workers[:2]:
            before = len(files(out))
            wait_for("another result", lambda before=before: len(files(out)) > before)
            for pid in [worker.pid, *children(worker.pid)]:
                os.kill(pid, signal.SIGKILL)
        cluster.add_worker()
        assert finish(client)[:2] == (0, "Small sweep: 80 of 80 runs done\n")
    assert len(files(out)) == 80


def test_workers_that_come_and_go_lose_nothing(tmp_path):
    """As those of an adaptive cluster, which are retired in the middle of their work."""
    path, out = sweep_file(tmp_path, seeds="1..20"), tmp_path / "out"
    passing = ("--lifetime", "3 seconds", "--lifetime-restart")
    env = in_workers(tmp_path, SLOW)
    with Cluster(tmp_path, workers=2, env=env, options=passing) as cluster:
        code, out_text, _ = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert (code, out_text) == (0, "Small sweep: 80 of 80 runs done\n")


def test_a_cluster_without_workers_yet(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "out"
    with Cluster(tmp_path, workers=0) as cluster:
        client = start("campaign", "run", path, "--out", out, "--cluster", cluster.address)
        wait_for("start", (out / "campaign.json").exists)
        cluster.add_worker()
        assert finish(client)[:2] == (0, "Small sweep: 16 of 16 runs done\n")


def test_a_scheduler_that_is_killed_is_said_and_resumed(tmp_path):
    path, out = sweep_file(tmp_path, seeds="1..20"), tmp_path / "out"
    with Cluster(tmp_path, env=in_workers(tmp_path, SLOW)) as cluster:
        client = start("campaign", "run", path, "--out", out, "--cluster", cluster.address)
        wait_for("first result", lambda: files(out))
        cluster.scheduler.kill()
        code, _, err = finish(client)
    assert code == 1
    said = err.splitlines()[-1]
    assert said.startswith("shortlane: the cluster is gone: its scheduler has ended")
    assert said.endswith("and the same command continues")
    before = {name: (out / "runs" / name).stat().st_mtime_ns for name in files(out)}
    with Cluster(tmp_path) as cluster:
        code, out_text, _ = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert (code, out_text) == (0, "Small sweep: 80 of 80 runs done\n")
    after = {name: (out / "runs" / name).stat().st_mtime_ns for name in before}
    assert after == before


def test_a_client_that_is_killed_resumes_on_the_same_cluster(tmp_path):
    path, out = sweep_file(tmp_path, seeds="1..20"), tmp_path / "out"
    with Cluster(tmp_path, env=in_workers(tmp_path, SLOW)) as cluster:
        go = ("campaign", "run", path, "--out", out, "--cluster", cluster.address)
        client = start(*go)
        wait_for("first result", lambda: files(out))
        client.kill()
        finish(client)
        assert len(files(out)) < 80
        assert run(*go)[:2] == (0, "Small sweep: 80 of 80 runs done\n")
    for name in files(out):
        assert pl.read_parquet(out / "runs" / name).height == 1


def test_a_run_that_kills_its_workers_is_given_up(tmp_path):
    path, out = sweep_file(tmp_path, loads="[0.4]"), tmp_path / "out"
    env = in_workers(tmp_path, at_run("efd", 2, KILL, once=False))
    env["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "1"
    with Cluster(tmp_path, env=env) as cluster:
        code, _, _ = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert code == 1
    (failure,) = status(out)[1]["failures"]
    assert (failure["scheduler"], failure["seed"]) == ("efd", 2)
    assert "it killed its worker 2 times" in failure["error"]
    assert len(files(out)) == 7


def test_no_cluster_there_is_one_line(tmp_path):
    with socket.socket() as taken:  # Bound, and nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        path, out = sweep_file(tmp_path), tmp_path / "out"
        code, _, err = run("campaign", "run", path, "--out", out, "--cluster", address)
    assert code == 2
    assert err.startswith(f"shortlane: --cluster {address}: ")
    assert "it takes the address of a running Dask scheduler" in err
    assert len(err.splitlines()) == 1


def test_a_worker_of_another_version_is_named(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "out"
    env = in_workers(tmp_path, 'import shortlane\nshortlane.__version__ = "9.9.9"')
    with Cluster(tmp_path, workers=1, env=env) as cluster:
        code, _, err = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert code == 1
    assert f"worker {socket.gethostname()}, process" in err
    assert "has shortlane 9.9.9" in err
    assert not files(out)


WITHOUT_THE_PACKAGE = "import sys\nsys.modules['shortlane'] = None\n"


def test_workers_without_the_package(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "out"
    (tmp_path / "without.py").write_text(WITHOUT_THE_PACKAGE)
    env = {"DASK_DISTRIBUTED__WORKER__PRELOAD": json.dumps([str(tmp_path / "without.py")])}
    with Cluster(tmp_path, workers=1, env=env) as cluster:
        code, _, err = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert code == 1
    assert "has no shortlane: import of shortlane halted" in err.splitlines()[-1]


def test_a_scheduler_needs_no_package(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "out"
    (tmp_path / "without.py").write_text(WITHOUT_THE_PACKAGE)
    env = {"DASK_DISTRIBUTED__SCHEDULER__PRELOAD": json.dumps([str(tmp_path / "without.py")])}
    with Cluster(tmp_path, workers=1, env=env) as cluster:
        found = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert found[:2] == (0, "Small sweep: 16 of 16 runs done\n")


def test_workers_with_other_disks_are_noticed(tmp_path):
    path, out = sweep_file(tmp_path), tmp_path / "out"
    elsewhere = (
        "from shortlane.campaign.store import Store\nwork.Store = lambda _: Store(FOLDER / 'b')"
    )
    with Cluster(tmp_path, workers=1, env=in_workers(tmp_path, elsewhere)) as cluster:
        code, _, err = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert code == 1
    assert f"wrote {out}/runs/" in err.splitlines()[-1]
    assert "--out takes a directory or a URL that this machine and all workers share" in err


def test_results_in_s3(tmp_path, monkeypatch):
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(key, "of-a-test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem().mkdir("campaigns")
        _in_s3(tmp_path)
    finally:
        server.stop()


def _in_s3(tmp_path):
    path, out = sweep_file(tmp_path, loads="[0.4, 99.0]"), "s3://campaigns/small"
    with Cluster(tmp_path) as cluster:
        code, _, err = run("campaign", "run", path, "--out", out, "--cluster", cluster.address)
    assert code == 1
    assert "8 of 16 runs failed" in err
    found = status(out)[1]
    assert (found["done"], found["failed"]) == (8, 8)
    assert found["failures"][0]["scenario"].startswith("s3://campaigns/small/failed/")
    results = campaign.open(out)
    links = results.table("links", columns=["link", "sent_bytes"]).collect()
    assert links.height == 2 * 8
    assert Campaign.load(path).run(out, jobs=1).ran == 0
