#!/usr/bin/env python3
"""Lists every planted fault and what must refute it: writes docs/planted.md.

    validation/plants.py [--into PAGE]

Nothing is planted: that do prove.py, orders.py and spin.py with --planted.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "journal"))

import spin  # noqa: E402

PAGE = ROOT / "docs" / "planted.md"
HEAD = "| fault | file | refuted by |\n|---|---|---|"
INTRODUCTION = """\
# Planted faults

`validation/plants.py` writes this page. A proof that cannot fail shows nothing. So `make prove` and
`make loom` plant each of these {count} faults, one at a time, and fail unless what is named beside
it refutes it. What the proofs show, and what not, is on [their page](proofs.md).

Not among these are the [mutants of the disciplines' rules](testing.md#mutants), which the
conformance suite must catch (`make mutants`), and the faults that `make kernel-test-planted` plants
in programs that real kernels run.
"""
C = """\
## The engine's C

{count} faults of `validation/prove/plants.txt`, in copies of `crates/engine/bpf`. Harnesses are
[CBMC's](proofs.md#what-is-proved), except `lanes` and `fq_lanes`, which try [every short
sequence](proofs.md#every-sequence-on-the-c).
"""
THREADS = """\
## Threads of the userspace engine

{count} faults of `validation/loom/plants.txt`, in copies of `crates/engine/src`. The tests run in
[every order](proofs.md#threads-of-the-userspace-engine-in-every-order).
"""
JOURNALS = """\
## Journals

{count} faults of `validation/journal/spin.py`, in [its models](proofs.md#journals-in-every-order).
SPIN must find a state in which a model does not hold.
"""


def listed(plants: Path) -> Iterator[tuple[str, str, str]]:
    """The faults of a file of plants: what is wrong, in which file, and what must refute it."""
    for block in re.split(r"^== ", plants.read_text(), flags=re.MULTILINE)[1:]:
        title, file = block.split("\n")[:2]
        by, _, wrong = title.partition(": ")
        yield wrong, file, by


def modelled() -> Iterator[tuple[str, str, str]]:
    """The same of the models of journals."""
    for model, plants in spin.PLANTS.items():
        for wrong in plants:
            yield wrong, f"{model}.pml", model


def section(introduction: str, faults: list[tuple[str, str, str]]) -> str:
    """A table of faults below what is said of it."""
    rows = [
        f"| {wrong.replace('|', chr(92) + '|')} | `{file}` | `{by}` |" for wrong, file, by in faults
    ]
    return "\n".join([introduction.format(count=len(faults)), HEAD, *rows, ""])


def page() -> str:
    """The whole page."""
    parts = [
        (C, list(listed(HERE / "prove" / "plants.txt"))),
        (THREADS, list(listed(HERE / "loom" / "plants.txt"))),
        (JOURNALS, list(modelled())),
    ]
    introduction = INTRODUCTION.format(count=sum(len(faults) for _, faults in parts))
    return "\n".join([introduction, *(section(said, faults) for said, faults in parts)])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=PAGE, help="default: %(default)s")
    parser.parse_args().into.write_text(page())


if __name__ == "__main__":
    main()
