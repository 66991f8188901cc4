#!/usr/bin/env python3
"""Compares Shortlane's simulator with ns-3 on the same lists of transfers.

Runs every case of cases.py through both, ten lists each (`--quick`: a few cases), prints the
ratios of mean completion time by size class and of drop rate, and writes RESULTS.md and
results.csv. `--overload`: loads of 1.5 and 2. The status is 1 if a difference beyond the tolerance
has no cause in causes.py.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cases
import causes
import report
from cases import Case, Transfer
from results import Results, Row
from simulators import Ns3, Run, Shortlane, Simulator, SimulatorError
from verdict import DROP_TOLERANCE, FCT_TOLERANCE, FEW_DROPS, ratio, verdict

JITTER_NS = 100_000


@dataclass(frozen=True)
class Plan:
    cases: list[Case]
    control: list[Case]
    replicates: int
    seconds: float


FULL = Plan(cases.full(), cases.control(), replicates=10, seconds=100)
OVERLOAD = Plan(cases.overload(), cases.overload_control(), replicates=10, seconds=100)
QUICK = Plan(cases.quick(), [], replicates=6, seconds=60)


class Lists:
    """The lists of transfers, as files: one for each load and seed, and its jittered copy."""

    def __init__(self, work: Path, seconds: float) -> None:
        self.work = work
        self.seconds = seconds

    def plain(self, load: float, seed: int) -> Path:
        return self.write(f"flows-{load}-{seed}.csv", cases.transfers(load, self.seconds, seed))

    def jittered(self, load: float, seed: int) -> Path:
        chance = random.Random(seed)
        moved = [
            Transfer(t.start_ns + chance.randrange(JITTER_NS), t.packets)
            for t in cases.transfers(load, self.seconds, seed)
        ]
        return self.write(f"jittered-{load}-{seed}.csv", moved)

    def write(self, name: str, listed: list[Transfer]) -> Path:
        path = self.work / name
        cases.write_transfers(path, listed)
        return path


def metrics(case: Case, ours: list[Run], theirs: list[Run]) -> list[Row]:
    rows: list[Row] = []
    for name, _ in cases.CLASSES:
        found = ratio([run.fct_s[name] for run in ours], [run.fct_s[name] for run in theirs])
        rows.append(Row(case, name, found, verdict(found, FCT_TOLERANCE)))
    drops = [run.drop_rate() for run in ours], [run.drop_rate() for run in theirs]
    if max(sum(rates) / len(rates) for rates in drops) < FEW_DROPS:
        rows.append(Row(case, "drops", None, "few"))
    else:
        found = ratio(*drops)
        rows.append(Row(case, "drops", found, verdict(found, DROP_TOLERANCE)))
    return rows


def compare(plan: Plan, ns3: Ns3, shortlane: Shortlane, work: Path, jobs: int) -> Results:
    lists = Lists(work, plan.seconds)
    seeds = range(1, plan.replicates + 1)
    for load in {case.load for case in plan.cases}:
        for seed in seeds:
            lists.plain(load, seed)
            lists.jittered(load, seed)

    with ThreadPoolExecutor(jobs) as pool:

        def start(simulator: Simulator, case: Case, kind: str) -> list[Run]:
            def one(seed: int) -> Run:
                return simulator.run(case, work / f"{kind}-{case.load}-{seed}.csv", plan.seconds)

            return list(pool.map(one, seeds))

        rows: list[Row] = []
        failures: list[tuple[Case, int, int]] = []
        for done, case in enumerate(plan.cases, 1):
            theirs = start(ns3, case, "flows")
            ours = start(shortlane, case, "flows")
            found = metrics(case, ours, theirs)
            rows += found
            failures.append((
                case,
                sum(run.incomplete for run in ours),
                sum(run.incomplete for run in theirs),
            ))  # fmt: skip
            print(f"[{done}/{len(plan.cases)}] {report.line(case, found)}", flush=True)
        control: list[Row] = []
        for case in plan.control:
            found = metrics(case, start(ns3, case, "jittered"), start(ns3, case, "flows"))
            control += found
            print(f"[ns-3 against itself] {report.line(case, found)}", flush=True)
    return Results(rows, control, failures, plan.replicates, plan.seconds)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--ns3", type=Path, required=True, help="the program of dumbbell.cc")
    options.add_argument(
        "--shortlane", type=Path, required=True, help="the example dumbbell of crates/sim"
    )
    options.add_argument("--work", type=Path, required=True, help="directory for runs")
    options.add_argument("--out", type=Path, help="directory for the results")
    options.add_argument("--into", default="results", help="their name; results, if not given")
    options.add_argument("--release", default="3.37", help="of ns-3, for the results; 3.37")
    chosen_cases = options.add_mutually_exclusive_group()
    chosen_cases.add_argument("--quick", action="store_true", help="a few cases, two minutes")
    chosen_cases.add_argument(
        "--overload", action="store_true", help="loads of 1.5 and 2, ten minutes"
    )
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    chosen = options.parse_args()

    chosen.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        ns3 = Ns3("ns3", chosen.ns3, chosen.work)
        shortlane = Shortlane("shortlane", chosen.shortlane, chosen.work)
        plan = QUICK if chosen.quick else OVERLOAD if chosen.overload else FULL
        results = compare(plan, ns3, shortlane, chosen.work, chosen.jobs)
    except (OSError, SimulatorError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    if chosen.out:
        name = chosen.into
        target = "" if name == "results" else f"-{name}"
        text = report.markdown(results, chosen.release, target)
        (chosen.out / f"{name.upper()}.md").write_text(text, encoding="utf-8")
        with (chosen.out / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(report.table(results))
    differing = [row for row in results.rows if row.verdict == "differs"]
    unexplained = [row for row in differing if not causes.of(row, chosen.release)]
    print(f"{report.summary(results)} ({time.monotonic() - began:.0f} s)")
    for row in unexplained:
        print(f"no cause is known: {row.case.name()} {row.metric} {row.ratio}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
