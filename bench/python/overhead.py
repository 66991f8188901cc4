#!/usr/bin/env python3
"""What `simulate()` adds to the command `shortlane sim --out`.

    PYTHONPATH=python bench/python/overhead.py --command target/release/shortlane [--rounds 15]

Both run the same scenario on one processor, in turns, so that what else goes on meets both.
The command writes Parquet files; `simulate()` leaves all tables in memory. The figure is the ratio
of the medians of the processor times, which other processes do not lengthen as they do the time on
the clock; the latter is printed beside it.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import shortlane


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", type=Path, required=True, help="the binary")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scenario", default="efd-paper-8mbit")
    parser.add_argument("--seeds", default="1..10")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    measured: dict[str, list[tuple[float, float]]] = {"command": [], "simulate()": []}
    shortlane.simulate(options.scenario, seeds=1)
    with tempfile.TemporaryDirectory() as directory:
        words: list[str | Path] = [options.command, "sim", options.scenario, "--jobs", "1"]
        words += ["--seeds", options.seeds, "--out", directory, "--json"]
        for _ in range(options.rounds):
            measured["command"].append(timed(lambda: quietly(words)))
            measured["simulate()"].append(
                timed(lambda: shortlane.simulate(options.scenario, seeds=options.seeds, jobs=1))
            )
    medians = {}
    for name, times in measured.items():
        medians[name] = [statistics.median(kind) for kind in zip(*times, strict=True)]
        print(f"{name:12} {medians[name][0]:.3f} s of processor, {medians[name][1]:.3f} s")
    ratios = [a / b for a, b in zip(medians["simulate()"], medians["command"], strict=True)]
    print(f"simulate() to command: {ratios[0]:.3f} of processor time, {ratios[1]:.3f} on the clock")


def quietly(words: Sequence[str | Path]) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Processor time and time on the clock, of this process and of those it waits for."""
    before, start = processor_time(), time.perf_counter()
    call()
    return processor_time() - before, time.perf_counter() - start


def processor_time() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


if __name__ == "__main__":
    main()
