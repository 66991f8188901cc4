#!/usr/bin/env python3
"""Proofs of the engine's C by CBMC: prove.py [--planted] [--only NAME].

Every harness of harnesses/ must be proved; with --planted every fault of plants.txt must be refuted
by the harness that it names. docs/proofs.md says what that shows and what not.
"""

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "crates" / "engine" / "bpf"
#: Where setup.sh unpacks CBMC on a system without it, with libraries of its own.
UNPACKED = ROOT / "target" / "prove" / "root"
#: What CBMC returns.
PROVED, REFUTED = 0, 10
SECONDS = 600


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


def check(harness: Path, sources: Path) -> tuple[int, str, float]:
    """What CBMC returns and says of a harness, and the processor seconds that it takes."""
    options = re.search(r"^ \* Options: (.*)$", harness.read_text(), re.MULTILINE)
    call = [*cbmc(), str(harness), f"-I{HERE / 'stubs'}", f"-I{HERE / 'stubs' / 'bpf'}"]
    call += [f"-I{sources}", *(options[1].split() if options else ["--unwind", "4"])]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(call, check=False, capture_output=True, text=True, timeout=SECONDS)
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = -1, f"not done in {SECONDS} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return code, said, used


def prove(harnesses: list[Path]) -> int:
    """Prove all; returns how many are not."""
    failed = 0
    print("| harness | bounds | properties | seconds | result |\n|---|---|---|---|---|")
    for harness in harnesses:
        code, said, used = check(harness, SOURCES)
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


def planted(names: set[str]) -> int:
    """Plant every fault; returns how many are not refuted."""
    missed = 0
    text = (HERE / "plants.txt").read_text()
    for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        title, file, *lines = block.rstrip("\n").split("\n")
        harness = title.partition(":")[0]
        if harness not in names:
            continue
        old = "\n".join(line[1:] for line in lines if line.startswith("-"))
        new = "\n".join(line[1:] for line in lines if line.startswith("+"))
        with tempfile.TemporaryDirectory() as into:
            copy = Path(into) / "bpf"
            shutil.copytree(SOURCES, copy)
            source = (copy / file).read_text()
            if source.count(old) != 1:
                print(f"{title}: its lines are {source.count(old)} times in {file}")
                missed += 1
                continue
            (copy / file).write_text(source.replace(old, new))
            code, _, used = check(HERE / "harnesses" / f"{harness}.c", copy)
        print(f"{title}: {'refuted' if code == REFUTED else 'MISSED'} ({used:.1f} s)", flush=True)
        missed += code != REFUTED
    return missed


def main() -> int:
    """Prove, or plant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planted", action="store_true", help="plant faults instead")
    parser.add_argument("--only", action="append", help="this harness (repeatable)")
    asked = parser.parse_args()
    harnesses = [
        path
        for path in sorted((HERE / "harnesses").glob("*.c"))
        if not asked.only or path.stem in asked.only
    ]
    if not harnesses:
        sys.exit("prove: no such harness")
    failed = planted({path.stem for path in harnesses}) if asked.planted else prove(harnesses)
    if failed:
        print(f"prove: {failed} failed", file=sys.stderr)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
