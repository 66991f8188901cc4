#!/usr/bin/env python3
"""Every interleaving of what the userspace engine's threads share: orders.py [--planted].

Runs the tests of this crate, each under every order that the memory model allows; with --planted
every fault of plants.txt must make the test fail that it names.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENGINE = ROOT / "crates" / "engine" / "src"


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
    text = (HERE / "plants.txt").read_text()
    for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        title, file, *lines = block.rstrip("\n").split("\n")
        old = "\n".join(line[1:] for line in lines if line.startswith("-"))
        new = "\n".join(line[1:] for line in lines if line.startswith("+"))
        with tempfile.TemporaryDirectory() as into:
            copy = Path(into) / "src"
            shutil.copytree(ENGINE, copy)
            source = (copy / file).read_text()
            if source.count(old) != 1:
                print(f"{title}: its lines are {source.count(old)} times in {file}")
                missed += 1
                continue
            (copy / file).write_text(source.replace(old, new))
            done = run(copy, title.partition(":")[0])
        # A fault that does not compile shows nothing.
        refuted = "test result: FAILED" in done.stdout
        print(f"{title}: {'refuted' if refuted else 'MISSED'}", flush=True)
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
