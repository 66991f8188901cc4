#!/usr/bin/env python3
"""Fuzz what reads bytes of others, and keep a record of how much was tried.

    scripts/fuzz.py --seconds 60                 every target for a minute
    scripts/fuzz.py --until 1e9                  go on until so many executions are on record
    scripts/fuzz.py --until 1e8 web captures     the same, of these two

What is found is kept in fuzz/target/corpus-TARGET and is where the next run begins; fuzz/record.csv
has a line for each target and day. A finding ends the runs of its target, and is told at the end.
Several of these commands may run at a time: no two run the same target.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import os
import re
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
BUILT = FUZZ / "target"
RECORD = FUZZ / "record.csv"
# Seconds are those of a clock, and those that a processor gave: on a busy machine a fuzzer at a
# low priority has few of these. Counters are edges of the program, of which so many are reached.
HEADER = ["target", "date", "seconds", "cpu_seconds", "executions", "coverage", "counters"]
# A run of many executions is split, so that little is lost when it is stopped.
SLICE_S = 300
# By the clock, and the machine may be busy: what takes a processor longer is seen by the speed.
TIMEOUT_S = 120


@dataclass(frozen=True)
class Target:
    """A fuzzer, how long its inputs are, what of the sources it is for, and where else to begin."""

    name: str
    longest: int
    reader: tuple[str, ...]
    also: tuple[str, ...] = ()


TARGETS = (
    Target("captures", 8192, ("crates/replay/src/capture",)),
    Target("configuration", 512, ("crates/cli/src/config.rs",), ("packaging",)),
    Target(
        "control", 4096,
        ("crates/engine/src/control/protocol.rs", "crates/engine/src/kernel/journal.rs"),
    ),
    Target("disciplines", 4096, ("crates/sched/src",)),
    Target("document", 2048, ("crates/responsiveness/src/document.rs",)),
    Target("frames", 256, ("crates/frame/src",)),
    Target("path", 8192, ("crates/engine/src/datapath",)),
    Target("probes", 256, ("crates/engine/src/control/prober.rs", "crates/autorate/src/path.rs")),
    Target("scenarios", 4096, ("crates/scenario/src",), ("scenarios",)),
    Target("segments", 512, ("crates/frame/src/tcp.rs", "crates/engine/src/datapath/trips.rs")),
    Target(
        "tables", 512,
        ("crates/workload/src/csv_table.rs", "crates/workload/src/transfers_csv.rs",
         "crates/workload/src/datagrams.rs", "crates/scenario/src/rate_trace.rs"),
    ),
    Target("web", 1024, ("crates/cli/src/http.rs", "crates/cli/src/top/web")),
)  # fmt: skip


@dataclass(frozen=True)
class Tried:
    """What a run has tried, and how much of the program it reached."""

    seconds: int
    cpu_seconds: int
    executions: int
    coverage: int
    counters: int


class Finding(Exception):
    """An input that must not do what it does, or a target that does not run."""


@contextmanager
def locked(name: str, *, wait: bool) -> Iterator[bool]:
    """Whether this process is the one that holds the lock of that name."""
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def build(targets: list[Target]) -> None:
    """Build once: what changes meanwhile is for the next time."""
    one = [targets[0].name] if len(targets) == 1 else []
    command = ["cargo-fuzz", "build", "--sanitizer", "none", *one]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        sys.exit("the targets could not be built")


def program(target: Target) -> Path:
    """What `build` has made."""
    found = sorted(BUILT.glob(f"*/release/{target.name}"))
    if len(found) != 1:
        sys.exit(f"{target.name}: {len(found)} programs below fuzz/target, not one")
    return found[0]


def corpora(target: Target) -> list[Path]:
    """Where a target begins; what it finds goes into the first of them."""
    found = BUILT / f"corpus-{target.name}"
    found.mkdir(parents=True, exist_ok=True)
    committed = [FUZZ / f"corpus/{target.name}", *(ROOT / name for name in target.also)]
    return [found, *filter(Path.exists, committed)]


def run(target: Target, seconds: int) -> Tried:
    """Fuzz one target."""
    artifacts = BUILT / f"artifacts-{target.name}"
    artifacts.mkdir(parents=True, exist_ok=True)
    command = [str(program(target)), *map(str, corpora(target)), f"-max_total_time={seconds}",
               f"-max_len={target.longest}", f"-timeout={TIMEOUT_S}", "-rss_limit_mb=4096",
               "-print_final_stats=1", f"-artifact_prefix={artifacts}/"]  # fmt: skip
    began, cpu_began = time.monotonic(), cpu_time()
    ran = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    took, cpu_took = time.monotonic() - began, cpu_time() - cpu_began
    # An input that is told of may be any bytes.
    said = ran.stderr.decode(errors="replace")
    if ran.returncode != 0:
        print(said[-8000:], file=sys.stderr)
        raise Finding(f"{target.name}: an input in {artifacts.relative_to(ROOT)}, "
                      "or it could not run")  # fmt: skip
    executions = re.search(r"stat::number_of_executed_units:\s+(\d+)", said)
    coverage = re.findall(r"cov: (\d+)", said)
    counters = re.search(r"\((\d+) inline 8-bit counters\)", said)
    if executions is None or counters is None or not coverage:
        raise Finding(f"{target.name}: it did not say how much it had tried")
    return Tried(
        round(took), round(cpu_took), int(executions[1]), int(coverage[-1]), int(counters[1])
    )


def cpu_time() -> float:
    """Seconds that processors have spent on what this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows() -> list[dict[str, str]]:
    """The record."""
    if not RECORD.exists():
        return []
    with RECORD.open(newline="") as file:
        return list(csv.DictReader(file))


def recorded(targets: list[Target], column: str = "executions") -> int:
    """What is on record of these targets."""
    names = {target.name for target in targets}
    return sum(int(row[column] or 0) for row in rows() if row["target"] in names)


def keep(target: Target, tried: Tried) -> None:
    """Put a run on record: in the line of its target and day."""
    today = datetime.now(tz=UTC).date().isoformat()
    with locked("record", wait=True):
        lines = {(row["target"], row["date"]): row for row in rows()}
        line = lines.setdefault((target.name, today), {"target": target.name, "date": today})
        for column in ("seconds", "cpu_seconds", "executions"):
            line[column] = str(int(line.get(column) or 0) + getattr(tried, column))
        line.update(coverage=str(tried.coverage), counters=str(tried.counters))
        written = RECORD.with_suffix(".csv.tmp")
        with written.open("w", newline="") as file:
            writer = csv.DictWriter(file, HEADER, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines[key] for key in sorted(lines))
        os.replace(written, RECORD)


def fuzz(target: Target, seconds: int) -> None:
    """Fuzz one target, and say so."""
    tried = run(target, seconds)
    keep(target, tried)
    speed = tried.executions / max(tried.cpu_seconds, 1)
    print(f"{target.name:13} {tried.executions:11,} in {tried.seconds} s ({tried.cpu_seconds} s of "
          f"a processor, {speed:,.0f}/s), {tried.coverage:,} of {tried.counters:,} counters",
          flush=True)  # fmt: skip


def each(targets: list[Target], seconds: int) -> list[str]:
    """Fuzz one target after the other; what was found."""
    findings = []
    for target in targets:
        with locked(f"run-{target.name}", wait=True):
            try:
                fuzz(target, seconds)
            except Finding as finding:
                findings.append(str(finding))
    return findings


def go_on(targets: list[Target], until: float) -> list[str]:
    """Fuzz until so many executions are on record; what was found.

    The next target is the one that has had the least time, of those that no other command runs.
    """
    sound, findings = list(targets), []
    while sound and recorded(targets) < until:
        for target in sorted(sound, key=lambda target: recorded([target], "cpu_seconds")):
            with locked(f"run-{target.name}", wait=False) as is_mine:
                if not is_mine:
                    continue
                try:
                    fuzz(target, SLICE_S)
                except Finding as finding:
                    findings.append(str(finding))
                    sound.remove(target)
                break
        else:
            time.sleep(10)
    return findings


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
        help=f"run for {SLICE_S} s whichever has had the least time, until so many are on record, "
        "of all together",
    )  # fmt: skip
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(names)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    asked = [t for t in TARGETS if not arguments.targets or t.name in arguments.targets]
    build(asked)
    findings = go_on(asked, arguments.until) if arguments.until else each(asked, arguments.seconds)
    print(f"{recorded(asked):,} executions on record")
    if findings:
        sys.exit("\n".join(findings))


if __name__ == "__main__":
    main()
