#!/usr/bin/env python3
"""Lists every planted fault and what must refute it: writes docs/planted.md.

    validation/plants.py [--into PAGE]

Nothing is planted: that do prove.py, orders.py and spin.py with --planted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(HERE / "journal")]

import faults  # noqa: E402
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


def listed(folder: str) -> list[tuple[str, str, str]]:
    """The faults of a proof: what is wrong, in which file, and what must refute it."""
    plants = faults.listed(HERE / folder / "plants.txt")
    return [(fault.wrong, fault.file, fault.by) for fault in plants]


def modelled() -> Iterator[tuple[str, str, str]]:
    """The same of the models of journals."""
    for model, plants in spin.PLANTS.items():
        for wrong in plants:
            yield wrong, f"{model}.pml", model


def section(introduction: str, found: list[tuple[str, str, str]]) -> str:
    """A table of faults below what is said of it."""
    rows = [
        f"| {wrong.replace('|', chr(92) + '|')} | `{file}` | `{by}` |" for wrong, file, by in found
    ]
    return "\n".join([introduction.format(count=len(found)), HEAD, *rows, ""])


def page() -> str:
    """The whole page."""
    parts = [
        (C, listed("prove")),
        (THREADS, listed("loom")),
        (JOURNALS, list(modelled())),
    ]
    introduction = INTRODUCTION.format(count=sum(len(found) for _, found in parts))
    return "\n".join([introduction, *(section(said, found) for said, found in parts)])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=PAGE, help="default: %(default)s")
    parser.parse_args().into.write_text(page())


if __name__ == "__main__":
    main()
