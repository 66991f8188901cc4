"""The bench against itself: faults are planted in guests, and each must be noticed.

A bench that calls a dead guest a success is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qemu import Outcome


@dataclass(frozen=True)
class Plant:
    """A command for the guest, and what must be said of its run."""

    name: str
    script: str
    # Part of what must be said of the run; empty if it must be good.
    expected: str
    seconds: float = 300


PLANTS = (
    Plant("no fault", "echo fine; echo kept > /out/kept", ""),
    Plant("a command that fails", "exit 7", "the command ended with status 7"),
    Plant("a program that is not there", "no-such-program", "the command ended with status 127"),
    Plant("a panic", "echo c > /proc/sysrq-trigger; sleep 60", "the guest panicked"),
    Plant("a reboot", "reboot -f; sleep 60", "rebooted or powered off"),
    Plant("a hang", "while :; do :; done", "was not done within 20 s", seconds=20),
    Plant("a complaint of the kernel's", "echo BUG: planted > /dev/kmsg", "BUG: planted"),
    Plant("a lost status", "mkdir /result/status", "what the guest sent cannot be read"),
)


def selftest(run: Callable[..., Outcome]) -> int:
    """Run every plant; 1 if any was not noticed or was taken for something else."""
    missed = 0
    for plant in PLANTS:
        outcome = run(plant.script, seconds=plant.seconds)
        fine = noticed(plant, outcome)
        missed += not fine
        said = "; ".join(outcome.failures) or "passed"
        print(f"{'ok    ' if fine else 'MISSED'} {plant.name}: {said}", flush=True)
    return 1 if missed else 0


def noticed(plant: Plant, outcome: Outcome) -> bool:
    """Whether the run's verdict is the one that the plant must get."""
    if not plant.expected:
        kept = outcome.folder / "kept"
        good = outcome.exit_status == 0 and not outcome.failures
        return good and kept.exists() and kept.read_text() == "kept\n"
    said = any(plant.expected in failure for failure in outcome.failures)
    return said and outcome.exit_status != 0
