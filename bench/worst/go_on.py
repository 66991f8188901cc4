#!/usr/bin/env python3
"""Goes on searching a discipline's worst cases until so many processor hours are on record.

The next search is of the harm that has had the least time, with a seed that it has not had. The
record has a line for each search; several of these commands may run at a time, each with a
first seed of its own.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import json
import resource
import subprocess
import sys
from pathlib import Path

HARMS = ("wait", "starvation", "unfairness", "memory")
HEADER = ["discipline", "harm", "seed", "attacks", "cpu_seconds", "worst", "reached", "traffic"]


def rows(record: Path, discipline: str) -> list[dict[str, str]]:
    """What is on record of a discipline."""
    if not record.exists():
        return []
    with record.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["discipline"] == discipline]


def spent(found: list[dict[str, str]]) -> float:
    """Seconds of a processor."""
    return sum(float(row["cpu_seconds"]) for row in found)


def cpu_time() -> float:
    """Seconds that processors have spent on what this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def search(binary: Path, discipline: str, harm: str, seed: int, attacks: int) -> dict[str, str]:
    """One search, as a line of the record."""
    began = cpu_time()
    command: list[str | Path] = [binary, "worst", discipline, "--of", harm, "--json"]
    command += ["--runs", str(attacks), "--seed", str(seed), "--jobs", "1"]
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {ran.returncode}")
    document = json.loads(ran.stdout)
    reached = document["reached"]
    return {
        "discipline": discipline,
        "harm": harm,
        "seed": str(seed),
        "attacks": str(document["tried"]),
        "cpu_seconds": f"{cpu_time() - began:.0f}",
        "worst": f"{document['harm']:.4g}",
        "reached": "" if reached is None else f"{reached:.3f}",
        "traffic": "; ".join(document["traffic"]),
    }


def keep(record: Path, row: dict[str, str]) -> None:
    """Put a search on record."""
    record.parent.mkdir(parents=True, exist_ok=True)
    with record.open("a", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writer = csv.DictWriter(file, HEADER, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(row)


def main() -> int:
    """Search until enough is on record, or a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, metavar="FILE", help="the command")
    parser.add_argument("--record", type=Path, required=True, metavar="FILE", help="what was found")
    parser.add_argument("--discipline", default="fq-lanes", help="what is searched (fq-lanes)")
    parser.add_argument("--hours", type=float, required=True, help="processor hours, in all")
    parser.add_argument("--attacks", type=int, default=10_000, help="of one search (10000)")
    parser.add_argument("--first-seed", type=int, default=2, help="that of the first search (2)")
    arguments = parser.parse_args()
    while spent(found := rows(arguments.record, arguments.discipline)) < 3600 * arguments.hours:
        of = {harm: [row for row in found if row["harm"] == harm] for harm in HARMS}
        harm = min(HARMS, key=lambda harm: spent(of[harm]))
        had = {int(row["seed"]) for row in of[harm]}
        seed = next(seed for seed in range(arguments.first_seed, 1 << 32) if seed not in had)
        row = search(arguments.shortlane, arguments.discipline, harm, seed, arguments.attacks)
        keep(arguments.record, row)
        part = f", {row['reached']} of its bound at most" if row["reached"] else ""
        print(f"{harm}, seed {seed}: {row['worst']}{part}", flush=True)
        if float(row["reached"] or 0) > 1:
            print(f"{harm}, seed {seed}: the bound does not hold", file=sys.stderr)
            return 1
    print(f"{spent(found) / 3600:.1f} processor hours on record")
    return 0


if __name__ == "__main__":
    sys.exit(main())
