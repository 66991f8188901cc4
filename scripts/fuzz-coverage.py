#!/usr/bin/env python3
"""How much of each reader the corpora of its fuzz target reach.

    scripts/fuzz-coverage.py                 of all targets, as a table
    scripts/fuzz-coverage.py --left frames   and the lines of this one's reader that nothing reaches

Counted are edges of the control flow, each once for every copy of it that the compiler made, and
the lines that they begin at. By these they belong to a file: the rest of a program (the target, the
standard library, libraries that a reader calls) does not count. It takes `scripts/fuzz.py` to have
built the targets, and `addr2line`.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from fuzz import ROOT, TARGETS, Target, corpora, program

# The table of libFuzzer in a program: an address and flags for each edge.
TABLE = "__sancov_pcs"
ENTRY = struct.Struct("<QQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
RELOCATION = struct.Struct("<QQq")
RELOCATIONS = 4


def edges(path: Path) -> list[int]:
    """The addresses of all edges of a program, an ELF file of 64 bits, in their order."""
    data = path.read_bytes()
    (at,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [SECTION.unpack_from(data, at + size * number) for number in range(count)]
    names_at = sections[names][4]

    def name(section: tuple[int, ...]) -> str:
        begin = names_at + section[0]
        return data[begin : data.index(b"\0", begin)].decode()

    table = next(section for section in sections if name(section) == TABLE)
    address, offset, length = table[3:6]
    found = {
        number: ENTRY.unpack_from(data, offset + number)[0]
        for number in range(0, length, ENTRY.size)
    }
    # A program that may lie anywhere has its addresses where it is told of where they go.
    for section in (section for section in sections if section[1] == RELOCATIONS):
        begin, end = section[4], section[4] + section[5]
        for target, _, value in RELOCATION.iter_unpack(data[begin:end]):
            if target - address in found:
                found[target - address] = value
    return list(found.values())


def reached(target: Target) -> set[int]:
    """The numbers of the edges that the corpora of a target reach."""
    with tempfile.TemporaryDirectory() as folder:
        kept, told = Path(folder) / "kept", Path(folder) / "told"
        kept.mkdir()
        command = [str(program(target)), "-merge=1", f"-merge_control_file={told}",
                   f"-max_len={target.longest}", str(kept), *map(str, corpora(target))]  # fmt: skip
        ran = subprocess.run(command, capture_output=True, check=False)
        if ran.returncode != 0:
            sys.exit(ran.stderr.decode(errors="replace")[-4000:])
        lines = (line.split() for line in told.read_text().splitlines())
        return {int(edge) for line in lines if line[:1] == ["COV"] for edge in line[2:]}


def lines_of(path: Path, addresses: list[int]) -> list[str]:
    """The file and line of each address, below the root."""
    command = ["addr2line", "--exe", str(path)]
    asked = "\n".join(map(hex, addresses))
    told = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    return [line.split(" ")[0].removeprefix(f"{ROOT}/") for line in told.stdout.splitlines()]


def part(hits: list[bool]) -> str:
    """How many of all are reached."""
    return f"{sum(hits):,} of {len(hits):,}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--left", action="store_true", help="lines of which no edge is reached")
    arguments = parser.parse_args()
    print("| Target | Its reader | Edges | Lines |\n|---|---|---:|---:|")
    for target in TARGETS:
        if arguments.targets and target.name not in arguments.targets:
            continue
        path = program(target)
        places, hit = lines_of(path, edges(path)), reached(target)
        by_line: dict[str, list[bool]] = defaultdict(list)
        for edge, place in enumerate(places):
            if place.rsplit(":", 1)[0].startswith(target.reader):
                by_line[place].append(edge in hit)
        every = [hit for hits in by_line.values() for hit in hits]
        reader = ", ".join(f"`{prefix.removeprefix('crates/')}`" for prefix in target.reader)
        lines = list(map(any, by_line.values()))
        print(f"| `{target.name}` | {reader} | {part(every)} | {part(lines)} |", flush=True)
        if arguments.left:
            print("\n".join(sorted(line for line, hits in by_line.items() if not any(hits))))


if __name__ == "__main__":
    main()
