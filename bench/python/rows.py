#!/usr/bin/env python3
"""How long ten million rows of results take to reach polars.

    PYTHONPATH=python bench/python/rows.py [--rows 10_000_000]

Simulates until some table has so many rows, then times the way from the native table to a polars
frame, and a sum over all its numbers, which shows that they are there.
"""

import argparse
import resource
import statistics
import time

import polars
import shortlane
from shortlane.scenario import Bottleneck, Cbr, Dumbbell, Link, Scenario


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    # Every packet of a stream has a row: 1000 streams, 100 packets a second each.
    seconds = rows / 100_000
    scenario = Scenario(
        title="Streams",
        duration=f"{seconds}s",
        seeds=1,
        bound=10_000_000,
        schedulers=["fifo"],
        topology=Dumbbell(
            access=Link(rate="10gbit"),
            bottleneck=Bottleneck(rate="1gbit"),
        ),
        traffic=[Cbr(rate="128kbit", packet="160b", flows=1000)],
    )
    start = time.perf_counter()
    results = shortlane.simulate(scenario, tables=["probes"])
    took = time.perf_counter() - start
    table = results["probes"]
    print(f"simulated {len(table):,} rows of {len(table.columns)} columns in {took:.1f} s")

    times, sums = [], []
    for _ in range(7):
        start = time.perf_counter()
        frame = polars.DataFrame(table)
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
        frame.select(polars.col(polars.Int64).sum(), polars.col(polars.String).n_unique())
        sums.append(time.perf_counter() - start)
    print(f"to polars: median {1e3 * statistics.median(times):.2f} ms of {len(times)}")
    print(f"then sums and counts over all columns: median {1e3 * statistics.median(sums):.0f} ms")
    print(f"{frame.n_chunks()} chunks, {frame.estimated_size() / 1e6:.0f} MB in the frame")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory of the process: {peak / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
