"""What a campaign costs over bare calls of `simulate()`, and how fast its tables are read.

    python bench/python/campaign.py [--runs 1000] [--repeat 3] [--duration 200s]

Takes turns at the same short runs: two plain processes that call `simulate()` for each and keep
nothing; `shortlane campaign run` with two workers; the same on a Dask cluster of two worker
processes. Prints medians of wall-clock time and of the processor time of all processes involved.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SWEEP = """
[campaign]
title = "Short runs"
scenario = "efd-paper-8mbit"
seeds = "1..{seeds}"
[set]
scenario.duration = "{duration}"
[grid]
traffic.0.rate = {{ from = "5mbit", to = "8mbit", step = "1mbit" }}
[schedulers]
run = ["efd"]
"""

BARE = """
import sys, tomllib
import shortlane
from shortlane.campaign import Campaign
for run in Campaign.load(sys.argv[1]).runs()[int(sys.argv[2])::2]:
    shortlane.simulate(tomllib.loads(run.scenario), seeds=run.seed, jobs=1)
"""

Cost = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--duration", default="200s", help="simulated time of a run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sweep = Path(folder, "sweep.toml")
        text = SWEEP.format(seeds=options.runs // 4, duration=options.duration)
        sweep.write_text(text)
        with Cluster(Path(folder)) as cluster:
            costs = measure(sweep, cluster, Path(folder, "out"), options.repeat)
        show(costs, options.runs)
        read(Path(folder, "out"))


def measure(sweep: Path, cluster: "Cluster", out: Path, repeat: int) -> dict[str, list[Cost]]:
    """Wall-clock and processor time in seconds, in turn."""
    ways: dict[str, Callable[[], Cost]] = {
        "bare `simulate()`, two processes": lambda: bare(sweep),
        "campaign, two local workers": lambda: local(sweep, out),
        "campaign, Dask cluster of two": lambda: cluster.run(sweep, out),
    }
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for turn in range(repeat):
        for way, run in ways.items():
            shutil.rmtree(out, ignore_errors=True)
            costs[way].append(run())
            wall, cpu = costs[way][-1]
            print(f"turn {turn + 1}, {way}: {wall:.1f} s, CPU {cpu:.1f} s", file=sys.stderr)
    return costs


def timed(*commands: list[str]) -> Cost:
    """Of processes side by side, and of all their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    if any([process.wait() for process in processes]):
        sys.exit("a command has failed")
    wall = time.perf_counter() - start
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime


def bare(sweep: Path) -> Cost:
    return timed(*([sys.executable, "-c", BARE, str(sweep), str(part)] for part in range(2)))


def local(sweep: Path, out: Path, *options: str) -> Cost:
    run = [sys.executable, "-m", "shortlane", "campaign", "run", str(sweep), "--out", str(out)]
    return timed([*run, *(options or ("--jobs", "2"))])


class Cluster:
    """A Dask scheduler and two workers, as separate processes."""

    def __init__(self, folder: Path) -> None:
        contact = folder / "scheduler.json"
        listen = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.processes = [self._dask("scheduler", *listen, "--scheduler-file", contact)]
        while not contact.exists():
            time.sleep(0.1)
        time.sleep(0.5)
        self.address = json.loads(contact.read_text())["address"]
        here = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder]
        self.processes += [self._dask("worker", self.address, *here) for _ in range(2)]

    def _dask(self, *arguments: object) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        environment = os.environ | {"POLARS_MAX_THREADS": "1"}
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)

    def run(self, sweep: Path, out: Path) -> Cost:
        before = sum(map(self._cpu, self.processes))
        wall, client = local(sweep, out, "--cluster", self.address)
        return wall, client + sum(map(self._cpu, self.processes)) - before

    @staticmethod
    def _cpu(process: "subprocess.Popen[bytes]") -> float:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def show(costs: dict[str, list[Cost]], runs: int) -> None:
    walls = {way: statistics.median(wall for wall, _ in each) for way, each in costs.items()}
    cpus = {way: statistics.median(cpu for _, cpu in each) for way, each in costs.items()}
    base = next(iter(costs))
    print(f"{runs} runs, {1e3 * cpus[base] / runs:.0f} ms of processor time each\n")
    print("| | wall-clock | | processor time | |\n|---|---|---|---|---|")
    for way in costs:
        wall = f"{walls[way]:.1f} s | {walls[way] / walls[base] - 1:+.1%}"
        cpu = f"{cpus[way]:.1f} s | {cpus[way] / cpus[base] - 1:+.1%}"
        print(f"| {way} | {wall} | {cpu} |")


READ = """
import sys, time
from shortlane import campaign
start = time.perf_counter()
flows = campaign.open(sys.argv[1]).table("flows", columns=["size_bytes", "completion_ns"]).collect()
print(time.perf_counter() - start, flows.height)
"""


def read(out: Path) -> None:
    seconds, rows = [], ""
    for _ in range(5):
        found = subprocess.run(
            [sys.executable, "-c", READ, str(out)], capture_output=True, text=True, check=True
        )
        taken, rows = found.stdout.split()
        seconds.append(float(taken))
    number = len(list(out.glob("runs/*")))
    size = sum(path.stat().st_size for path in out.glob("runs/*"))
    print(
        f"\nTwo columns of {int(rows):,} flows from {number:,} files of {size // number:,} bytes: "
        f"{statistics.median(seconds):.2f} s"
    )


if __name__ == "__main__":
    main()
