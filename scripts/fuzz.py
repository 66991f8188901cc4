#!/usr/bin/env python3
"""Fuzz what reads bytes of others, and keep a record of how much was tried.

    scripts/fuzz.py --seconds 60                 every target for a minute
    scripts/fuzz.py --until 1e9 web captures     go on until these have that many executions in all

What is found is kept in fuzz/target/corpus-TARGET and is where the next run begins; fuzz/record.csv
has a line for each run. A finding ends it: cargo-fuzz says where it is.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "fuzz/record.csv"
HEADER = ["target", "date", "seconds", "executions", "coverage"]
# A run of many executions is split, so that little is lost when it is stopped.
SLICE_S = 300


@dataclass(frozen=True)
class Target:
    """A fuzzer, how long its inputs are, and where else to begin."""

    name: str
    longest: int
    also: tuple[str, ...] = ()


TARGETS = (
    Target("captures", 8192),
    Target("configuration", 512, ("packaging",)),
    Target("control", 4096),
    Target("disciplines", 4096),
    Target("frames", 256),
    Target("path", 8192),
    Target("scenarios", 4096, ("scenarios",)),
    Target("tables", 512),
    Target("web", 1024),
)


def run(target: Target, seconds: int) -> tuple[int, int]:
    """Fuzz one target; its executions, and the counters it has reached."""
    found = ROOT / f"fuzz/target/corpus-{target.name}"
    found.mkdir(parents=True, exist_ok=True)
    corpora = [found, ROOT / f"fuzz/corpus/{target.name}", *(ROOT / name for name in target.also)]
    command = ["cargo-fuzz", "run", "--sanitizer", "none", target.name, *map(str, corpora), "--",
               f"-max_total_time={seconds}", f"-max_len={target.longest}", "-print_final_stats=1",
               "-timeout=10", "-rss_limit_mb=4096"]  # fmt: skip
    ran = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        print(ran.stderr[-8000:], file=sys.stderr)
        sys.exit(f"{target.name}: a finding, or it could not run")
    executions = re.search(r"stat::number_of_executed_units:\s+(\d+)", ran.stderr)
    coverage = re.findall(r"cov: (\d+)", ran.stderr)
    if executions is None:
        sys.exit(f"{target.name}: it did not say how much it had tried")
    return int(executions[1]), int(coverage[-1]) if coverage else 0


def recorded(targets: list[Target]) -> int:
    """Executions on record of these targets."""
    names = {target.name for target in targets}
    with RECORD.open(newline="") as file:
        return sum(int(row["executions"]) for row in csv.DictReader(file) if row["target"] in names)


def keep(target: Target, seconds: int, executions: int, coverage: int) -> None:
    """Put a run on record."""
    with RECORD.open("a", newline="") as file:
        today = datetime.now(tz=UTC).date().isoformat()
        csv.writer(file, lineterminator="\n").writerow(
            [target.name, today, seconds, executions, coverage]
        )


def main() -> None:
    """Fuzz what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [target.name for target in TARGETS]
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(names))
    parser.add_argument("--seconds", type=int, default=60, help="how long each target runs")
    parser.add_argument(
        "--until", type=float, metavar="EXECUTIONS",
        help=f"run each for {SLICE_S} s in turn until so many are on record, of all together",
    )  # fmt: skip
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(names)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    targets = [t for t in TARGETS if not arguments.targets or t.name in arguments.targets]
    if not RECORD.exists():
        RECORD.write_text(",".join(HEADER) + "\n")
    seconds = arguments.seconds if arguments.until is None else SLICE_S
    while True:
        for target in targets:
            if arguments.until is not None and recorded(targets) >= arguments.until:
                break
            executions, coverage = run(target, seconds)
            keep(target, seconds, executions, coverage)
            print(f"{target.name:13} {executions:11,} in {seconds} s, {coverage:,} counters",
                  flush=True)  # fmt: skip
        if arguments.until is None or recorded(targets) >= arguments.until:
            break
    print(f"{recorded(targets):,} executions on record")


if __name__ == "__main__":
    main()
