#!/usr/bin/env python3
"""Proofs of the engine's C: prove.py [--planted] [--only NAME] [--operations N].

Every harness of harnesses/ must be proved by CBMC; those of states/ are compiled, and try every
sequence of a few operations. With --planted every fault of plants.txt must be refuted by the
harness that it names. docs/proofs.md says what that shows and what not.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import faults  # noqa: E402

SOURCES = ROOT / "crates" / "engine" / "bpf"
#: Where setup.sh unpacks CBMC on a system without it, with libraries of its own.
UNPACKED = ROOT / "target" / "prove" / "root"
#: What CBMC returns, and what is compiled here does.
PROVED, REFUTED = 0, 10
SECONDS = 600
#: What is out of bounds ends a program with this: it is refuted as well.
SANITIZED = {"ASAN_OPTIONS": "exitcode=10", "UBSAN_OPTIONS": "exitcode=10"}
COMPILE = ["-std=gnu11", "-O2", "-Wall", "-Werror", "-Wno-attributes", "-Wno-unused"]
COMPILE += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def cbmc() -> list[str]:
    """How CBMC is called here."""
    if found := shutil.which("cbmc"):
        return [found]
    libraries = UNPACKED / "usr/lib/x86_64-linux-gnu"
    program = UNPACKED / "usr/bin/cbmc"
    if not program.exists():
        sys.exit("prove: there is no cbmc; scripts/setup.sh prove installs it")
    loader = libraries / "ld-linux-x86-64.so.2"
    return [str(loader), "--library-path", f"{libraries}:{UNPACKED / 'usr/lib'}", str(program)]


def is_walked(harness: Path) -> bool:
    """Whether it is compiled and tries every sequence, and is nothing for CBMC."""
    return harness.parent.name == "states"


def check(harness: Path, sources: Path, operations: int | None) -> tuple[int, str, float]:
    """What a harness comes to, what is said of it, and the processor seconds that it takes."""
    options = re.search(r"^ \* Options: (.*)$", harness.read_text(), re.MULTILINE)
    given = options[1].split() if options else ["--unwind", "4"]
    include = [f"-I{HERE / 'stubs'}", f"-I{HERE / 'stubs' / 'bpf'}", f"-I{sources}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        with tempfile.TemporaryDirectory() as into:
            if is_walked(harness):
                program = Path(into) / harness.stem
                make = ["cc", *COMPILE, *include, str(harness), "-o", str(program)]
                subprocess.run(make, check=True)
                call = [str(program), str(operations) if operations else given[0]]
            else:
                call = [*cbmc(), str(harness), *include, *given]
            done = subprocess.run(
                call,
                check=False,
                capture_output=True,
                text=True,
                timeout=None if operations else SECONDS,
                env=os.environ | SANITIZED,
            )
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = -1, f"not done in {SECONDS} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return code, said, used


def walk(harnesses: list[Path], operations: int | None) -> int:
    """Try every sequence; returns how many harnesses do not hold."""
    failed = 0
    if harnesses:
        print("| qdisc | operations | states | steps |\n|---|---|---|---|")
    for harness in harnesses:
        code, said, used = check(harness, SOURCES, operations)
        print(said, end="", flush=True)
        print(f"{harness.stem}: {used:.1f} s", file=sys.stderr)
        failed += code != PROVED
    return failed


def prove(harnesses: list[Path]) -> int:
    """Prove all; returns how many are not."""
    failed = 0
    if harnesses:
        print("| harness | bounds | properties | seconds | result |\n|---|---|---|---|---|")
    for harness in harnesses:
        code, said, used = check(harness, SOURCES, None)
        bounds = re.search(r"^ \* Bounds: (.*)$", harness.read_text(), re.MULTILINE)
        count = re.search(r"\*\* \d+ of (\d+) failed", said)
        proved = code == PROVED and bounds and count
        result = "proved" if proved else "refuted" if code == REFUTED else "FAILED"
        cells = [harness.stem, bounds[1] if bounds else "?", count[1] if count else "?"]
        print(f"| {' | '.join(cells)} | {used:.1f} | {result} |", flush=True)
        if not proved:
            failed += 1
            bad = [line for line in said.splitlines() if "FAILURE" in line or "error" in line]
            print("\n".join(bad or said.splitlines()[-5:]), file=sys.stderr)
    return failed


def planted(harnesses: list[Path]) -> int:
    """Plant every fault; returns how many are not refuted."""
    missed = 0
    by_name = {harness.stem: harness for harness in harnesses}
    plants = [fault for fault in faults.listed(HERE / "plants.txt") if fault.by in by_name]
    if wrong := faults.misplaced(plants, SOURCES):
        sys.exit("\n".join(wrong))
    for fault in plants:
        with fault.planted(SOURCES) as copy:
            code, _, used = check(by_name[fault.by], copy, None)
        print(f"{fault}: {'refuted' if code == REFUTED else 'MISSED'} ({used:.1f} s)", flush=True)
        missed += code != REFUTED
    return missed


def main() -> int:
    """Prove, or plant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planted", action="store_true", help="plant faults instead")
    parser.add_argument("--only", action="append", help="this harness (repeatable)")
    parser.add_argument("--operations", type=int, metavar="N", help="of a sequence, up to 15")
    asked = parser.parse_args()
    found = [*sorted((HERE / "harnesses").glob("*.c")), *sorted((HERE / "states").glob("*.c"))]
    harnesses = [path for path in found if not asked.only or path.stem in asked.only]
    if not harnesses:
        sys.exit("prove: no such harness")
    if asked.planted:
        failed = planted(harnesses)
    else:
        failed = prove([path for path in harnesses if not is_walked(path)])
        failed += walk([path for path in harnesses if is_walked(path)], asked.operations)
    if failed:
        print(f"prove: {failed} failed", file=sys.stderr)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
