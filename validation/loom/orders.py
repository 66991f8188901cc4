#!/usr/bin/env python3
"""Every interleaving of what the userspace engine's threads share: orders.py [--planted].

Runs the tests of this crate, each under every order that the memory model allows; with --planted
every fault of plants.txt must make the test fail that it names.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENGINE = ROOT / "crates" / "engine" / "src"
sys.path.insert(0, str(HERE.parent))

import faults  # noqa: E402


def run(engine: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of these names, or all, on these sources."""
    cargo = os.environ.get("CARGO", "cargo")
    call = [cargo, "test", "--locked", "--quiet", "--lib", *tests]
    environment = {**os.environ, "SHORTLANE_ENGINE": str(engine)}
    environment["CARGO_TARGET_DIR"] = str(ROOT / "target" / "loom")
    return subprocess.run(
        call, cwd=HERE, env=environment, check=False, capture_output=True, text=True
    )


def planted() -> int:
    """Plant every fault; returns how many are missed."""
    missed = 0
    plants = faults.listed(HERE / "plants.txt")
    if wrong := faults.misplaced(plants, ENGINE):
        sys.exit("\n".join(wrong))
    for fault in plants:
        with fault.planted(ENGINE) as copy:
            done = run(copy, fault.by)
        # A fault that does not compile shows nothing.
        refuted = "test result: FAILED" in done.stdout
        print(f"{fault}: {'refuted' if refuted else 'MISSED'}", flush=True)
        if not refuted:
            print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        missed += not refuted
    return missed


def main() -> int:
    """Run, or plant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planted", action="store_true", help="plant faults instead")
    if parser.parse_args().planted:
        return planted() > 0
    done = run(ENGINE)
    print(done.stdout, done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
