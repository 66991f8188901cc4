"""What the tests of campaigns share: a small sweep, processes, and faults in workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE_S = 240

SCENARIO = {
    "scenario": {"title": "Small", "duration": "2s", "warm-up": "0s"},
    "topology": {
        "kind": "dumbbell",
        "access": {"rate": "100mbit", "delay": "1ms"},
        "bottleneck": {"rate": "10mbit", "delay": "1ms", "limit": "50packets"},
    },
    "traffic": [
        {"kind": "transfers", "load": 0.5},
        {"name": "voice", "kind": "cbr", "rate": "64kbit", "packet": "160b"},
    ],
}

SCENARIO_TOML = """
[scenario]
title = "Small"
duration = "2s"
warm-up = "0s"
[topology]
kind = "dumbbell"
access = { rate = "100mbit", delay = "1ms" }
bottleneck = { rate = "10mbit", delay = "1ms", limit = "50packets" }
[schedulers]
run = ["fifo"]
[[traffic]]
kind = "transfers"
load = 0.5
"""


def sweep(seeds="1..4", schedulers=("fifo", "efd"), loads=(0.4, 0.8), title="Small sweep", **more):
    document = {
        "campaign": {"title": title, "scenario": SCENARIO, "seeds": seeds},
        "grid": {"traffic.transfers.load": list(loads)},
        "schedulers": {"run": list(schedulers)},
    }
    return document | more


def sweep_file(folder, seeds="1..4", loads="[0.4, 0.8]", title="Small sweep", more=""):
    """The same sweep as files, for the command."""
    folder = Path(folder)
    (folder / "small.toml").write_text(SCENARIO_TOML)
    path = folder / "sweep.toml"
    path.write_text(
        f'[campaign]\ntitle = "{title}"\nscenario = "small.toml"\nseeds = "{seeds}"\n'
        f'[grid]\n"traffic.0.load" = {loads}\n[schedulers]\nrun = ["fifo", "efd"]\n{more}\n'
    )
    return path


def command(*arguments):
    return [sys.executable, "-m", "shortlane", *map(str, arguments)]


#: What `start` has started since the last test.
STARTED = []


def start(*arguments, env=None):
    """The command in a process group of its own."""
    process = subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (env or {}),
        start_new_session=True,
    )
    STARTED.append(process)
    return process


@pytest.fixture(autouse=True)
def _nothing_is_left_running():
    """However a test ends: the workers of a campaign are in its process group."""
    yield
    while STARTED:
        process = STARTED.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(process):
    """Exit status, standard output and error of a process that ends by itself."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return process.returncode, out, err


def run(*arguments, env=None):
    return finish(start(*arguments, env=env))


def wait_for(what, condition):
    """Waits until `condition()` is true, and gives what it is."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"no {what} within {PATIENCE_S} s"
        time.sleep(0.02)
    return found


def files(out):
    return sorted(path.name for path in Path(out).glob("runs/*.parquet"))


def status(out):
    code, text, _ = run("campaign", "status", out, "--json")
    return code, json.loads(text)


def in_workers(folder, code):
    """An environment in which every worker runs `code` as it starts, `work` being at hand."""
    path = Path(folder) / "preload_of_test.py"
    path.write_text(
        "import os, signal, time\nfrom pathlib import Path\n"
        f"from shortlane.campaign import work\nFOLDER = Path({str(folder)!r})\n"
        # Dask loads it twice.
        f"simulate = vars(work).setdefault('simulate_of_test', work._simulate)\n{code}\n"
    )
    return {"DASK_DISTRIBUTED__WORKER__PRELOAD": json.dumps([str(path)])}


#: Every group takes a moment, so that there is time to interfere.
SLOW = """
def slowly(order, group):
    time.sleep(0.15)
    return simulate(order, group)
work._simulate = slowly
"""


def at_run(scheduler, seed, deed, *, once):
    """Does `deed` when this run is to be simulated: every time, or the first time only."""
    return f"""
def faulty(order, group):
    marker = FOLDER / "done-once"
    if any((run.scheduler, run.seed) == ({scheduler!r}, {seed}) for run in group):
        if not ({once} and marker.exists()):
            marker.touch()
            {deed}
    return simulate(order, group)
work._simulate = faulty
"""


KILL = "os.kill(os.getpid(), signal.SIGKILL)"
HANG = "os.kill(os.getpid(), signal.SIGSTOP)"


def children(pid):
    """Processes below `pid`, at any depth."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children(int(child))]
    return found


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


class Cluster:
    """A Dask scheduler and workers, each a process that a test may kill."""

    def __init__(self, folder, workers=2, env=None, options=()):
        self.folder = Path(folder)
        self.env = env
        contact = self.folder / "scheduler.json"
        contact.unlink(missing_ok=True)
        listen = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
        self.scheduler = self._dask("scheduler", *listen, "--scheduler-file", contact)
        self.processes = [self.scheduler]
        self.address = wait_for("scheduler", lambda: _address(contact))
        self.options = options
        self.workers = [self.add_worker() for _ in range(workers)]

    def add_worker(self, env=None):
        here = ["--nthreads", "1", "--local-directory", self.folder, "--no-dashboard"]
        worker = self._dask("worker", self.address, *here, *self.options, env=env)
        self.processes.append(worker)
        return worker

    def _dask(self, *arguments, env=None):
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | (env or self.env or {}),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            for pid in [*children(process.pid), process.pid]:
                if alive(pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def _address(contact):
    try:
        return json.loads(contact.read_text())["address"]
    except (FileNotFoundError, ValueError):
        return None
