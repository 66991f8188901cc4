#!/usr/bin/env python3
"""Instructions and cache misses a packet, counted by callgrind, so that load does not matter.

Builds the example `cost` of the core, which feeds disciplines as their benchmark does, and counts
what an enqueue and a dequeue take, net of the loop around them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# As on the machine of docs/benchmarks/disciplines.md; what runs elsewhere is counted alike.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64")
NAMES = ("instructions", "misses of the first cache", "of the last")


def count(binary: Path, pattern: str, flows: int, spec: str, packets: int) -> tuple[float, ...]:
    """Instructions, and data misses of the first and the last cache, a packet."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", *CACHES]
        command += ["--collect-atstart=no", "--toggle-collect=cost::measured"]
        command += [f"--callgrind-out-file={scratch}/counts"]
        command += [str(binary), pattern, str(flows), spec, str(packets)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"instructions: {spec}: {done.stderr.strip().splitlines()[-1]}")
        lines = (Path(scratch) / "counts").read_text().splitlines()

    def numbers(key: str) -> list[str]:
        return next(line for line in lines if line.startswith(key)).split()[1:]

    events = dict(zip(numbers("events:"), map(int, numbers("totals:")), strict=False))
    first = events.get("D1mr", 0) + events.get("D1mw", 0)
    last = events.get("DLmr", 0) + events.get("DLmw", 0)
    return tuple(of / packets for of in (events["Ir"], first, last))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="+", help="disciplines, the reference first")
    parser.add_argument("--flows", type=int, nargs="+", default=[300, 10_000, 100_000])
    parser.add_argument("--packets", type=int, default=30_000, help="default: %(default)s")
    parser.add_argument("--binary", type=Path, help="the example, built before")
    options = parser.parse_args()
    binary = options.binary
    if binary is None:
        build = ["cargo", "build", "--locked", "--release", "--package", "shortlane-sched"]
        # As benchmarks are built.
        profile = {"CARGO_PROFILE_RELEASE_LTO": "fat", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "1"}
        command = [*build, "--example", "cost"]
        subprocess.run(command, check=True, cwd=ROOT, env=os.environ | profile)
        binary = ROOT / "target/release/examples/cost"
    print(f"| pattern | flows | discipline | {' | '.join(NAMES)} | ratio |")
    print(f"|---|---:|---|{'---:|' * (len(NAMES) + 1)}")
    for pattern in ("steady", "churn"):
        for flows in options.flows:
            loop = count(binary, pattern, flows, "nothing", options.packets)
            least = None
            for spec in options.specs:
                gross = count(binary, pattern, flows, spec, options.packets)
                net = [own - of_loop for own, of_loop in zip(gross, loop, strict=True)]
                least = least or net[0]
                cells = [f"{net[0]:.0f}", f"{net[1]:.2f}", f"{net[2]:.2f}", f"{net[0] / least:.2f}"]
                print(f"| {pattern} | {flows} | `{spec}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
