#!/usr/bin/env python3
"""Check the models of journals and their lock by SPIN: spin.py [--planted | --log FILE].

Every model must hold in all its states; with --planted every fault that can be planted in a model
must be found. With --log each state that a test of kills has found (`kernel-guest attach` prints
them) must be one of the model's. docs/proofs.md says what that shows and what not.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: What `-DPLANT=` of each model stands for, from 1 on.
PLANTS = {
    "device": (
        "the journal is forgotten before what it says is put back",
        "what another attached device needs is put back as well",
        "the qdisc is put in place before that is noted",
        "a refused qdisc leaves what was noted for it",
        "a refused replacement leaves more noted than is switched",
    ),
    "lock": (
        "whether the directory is still the one that was locked is not looked at",
        "the lock goes before the directory does",
    ),
}


#: What a test prints of a device that a killed command has left.
LEFT = re.compile(
    r"left: root=(standard|configured|ours) written=(true|false) former=(standard|configured)"
    r" switched=(true|false) offload=(true|false)"
)


def check(model: str, plant: int, *defined: str) -> tuple[str | None, int, float]:
    """The first violation, if any; the states that were seen; seconds."""
    with tempfile.TemporaryDirectory() as folder:

        def call(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
            return done.stdout

        # One kill is enough to find what is planted, and has a tenth of the states.
        kills = ["-DKILLS=1"] if plant else []
        call("spin", "-a", f"-DPLANT={plant}", *kills, *defined, str(HERE / f"{model}.pml"))
        call("cc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c")
        began = time.monotonic()
        said = call("./pan", "-m1000000")
        took = time.monotonic() - began
    states = re.search(r"(\d+) states, stored", said)
    errors = re.search(r"errors: (\d+)", said)
    incomplete = re.search(r"error: .*|Search not completed", said)
    violation = re.search(r"pan:\d+: (.*?) \(at depth", said)
    if states is None or errors is None or (incomplete and not violation):
        sys.exit(f"{model}: it did not finish: {said}")
    found = violation[1] if violation else None
    if found is None and errors[1] != "0":
        found = "an error"
    return found, int(states[1]), took


def held_against(log: Path) -> None:
    """Look for each state of a log in the model, with its bounds."""
    found = Counter(LEFT.findall(log.read_text(errors="replace")))
    if not found:
        sys.exit(f"{log}: no 'left: root=...', which `kernel-guest attach` prints")
    failed = 0
    for (root, written, former, switched, offload), times in sorted(found.items()):
        state = (
            f"root[0] == {root} && journal[0].written == {written} && journal[0].former == {former}"
            f" && journal[0].switched == {switched} && offload == {offload}"
        )
        reached = check("device", 0, "-DKILLS=1", f"-DSEEN='({state})'")[0]
        failed += reached is None
        said = "a state of the model" if reached else "NOT a state of the model"
        print(f"{times:4} times {state}: {said}", flush=True)
    if failed:
        sys.exit(f"{failed} of {len(found)} states are not the model's")


def main() -> None:
    """Check all models, or find all plants, or hold a log against a model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--planted", action="store_true", help="find every planted fault")
    parser.add_argument("--log", type=Path, help="look for what a test printed in the model")
    arguments = parser.parse_args()
    if arguments.log:
        held_against(arguments.log)
        return
    planted = arguments.planted
    failed = 0
    for model, plants in PLANTS.items():
        for plant in range(1, len(plants) + 1) if planted else (0,):
            found, states, took = check(model, plant)
            if (found is not None) != planted:
                failed += 1
            what = plants[plant - 1] if planted else "holds in every state"
            result = f"found: {found[:60]}" if found else "not found" if planted else "yes"
            if not planted and found:
                result = f"NO: {found}"
            print(f"{model}: {what}: {result} ({states:,} states, {took:.1f} s)", flush=True)
    if failed:
        sys.exit(f"{failed} models or plants came out wrong")


if __name__ == "__main__":
    main()
