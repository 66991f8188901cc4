"""Faults that a proof must refute, as files named plants.txt list them.

A block is `== by: what is wrong then`, the file, its lines behind `-` as they are and behind `+` as
they become. `by` is the harness or the test that must refute it.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """A change of one file that a proof must refute."""

    by: str
    wrong: str
    file: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.by}: {self.wrong}"

    def misplaced(self, sources: Path) -> str | None:
        """What is wrong with its place, unless its lines are exactly once in the file."""
        times = (sources / self.file).read_text().count(self.old)
        return None if times == 1 else f"{self}: its lines are {times} times in {self.file}"

    @contextmanager
    def planted(self, sources: Path) -> Iterator[Path]:
        """A copy of the sources that has the fault, as long as the context lasts."""
        with tempfile.TemporaryDirectory() as into:
            copy = Path(into) / sources.name
            shutil.copytree(sources, copy)
            file = copy / self.file
            file.write_text(file.read_text().replace(self.old, self.new))
            yield copy


def listed(plants: Path) -> list[Fault]:
    """The faults of a file."""
    faults = []
    for block in re.split(r"^== ", plants.read_text(), flags=re.MULTILINE)[1:]:
        title, file, *lines = block.rstrip("\n").split("\n")
        by, _, wrong = title.partition(": ")
        old, new = ("\n".join(line[1:] for line in lines if line[:1] == sign) for sign in "-+")
        faults.append(Fault(by, wrong, file, old, new))
    return faults


def misplaced(faults: list[Fault], sources: Path) -> list[str]:
    """What is wrong with the places of faults: none can be planted before that is put right."""
    return [said for fault in faults if (said := fault.misplaced(sources))]
