#!/usr/bin/env python3
"""Real TCP through fq-codel and fq-lanes on many links: writes one table, and says what was lost.

Each cell is a run of `shortlane lab`, the same traffic through each discipline in turn, in private
namespaces. A row is what a discipline did beside fq-codel in the same rounds: ratios of completion
times with the interval that the lab gives, and pairs `its / fq-codel's` for the rest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

REFERENCE = "fq-codel"
OURS = "fq-lanes"
CLASSES = ("<=20", "20-100", "100-1000")
STREAMS = ("voice", "video", "ping")
BEGIN, END = "<!-- cells: begin -->", "<!-- cells: end -->"

# What is wanted of a cell.
SLOWEST, USED, JAIN, LATER_MS, TIMEOUTS = 0.85, 0.99, 0.95, 0.5, 2


def grid() -> dict[str, tuple[str, ...]]:
    """The cells by name: rate by downloads, and the rest at some rates."""
    cells: dict[str, tuple[str, ...]] = {}
    for rate in (2, 10, 50, 100):
        for downloads in (1, 2, 4, 16):
            name = f"{rate} Mbit/s, {downloads} downloads".replace(" 1 downloads", " 1 download")
            cells[name] = ("--rate", f"{rate}mbit", "--downloads", str(downloads))
    for rate in (2, 10, 50, 100):
        for rtt in (5, 80):
            cells[f"{rate} Mbit/s, RTT {rtt} ms"] = ("--rate", f"{rate}mbit", "--delay", f"{rtt}ms")
    rest: dict[str, tuple[str, ...]] = {
        "Reno": ("--tcp", "reno"),
        "BBR": ("--tcp", "bbr"),
        "BBR beside CUBIC": ("--tcp", "bbr,cubic"),
        "an upload": ("--uploads", "1"),
        "4 uploads": ("--uploads", "4"),
        "ECN": ("--ecn",),
        "load 0.9": ("--load", "0.9"),
    }
    for what, options in rest.items():
        for rate in (10, 50):
            cells[f"{rate} Mbit/s, {what}"] = ("--rate", f"{rate}mbit", *options)
    return cells


@dataclass(frozen=True)
class Figures:
    """What a discipline did in a cell."""

    #: Shortest, mean of the rounds of a cell, in bytes.
    slowest: float
    #: Part of the link.
    used: float
    jain: float
    p99_ms: dict[str, float | None]
    lost: dict[str, float]
    incomplete: int
    timeouts: int


def figures(tables: Path, scheduler: str) -> Figures:
    """From the rounds in which no block was void."""
    blocks = pl.read_parquet(tables / "blocks.parquet")
    void = blocks.filter(pl.col("void"))["round"].unique().to_list()

    def rows(table: str) -> pl.DataFrame:
        of = pl.read_parquet(tables / f"{table}.parquet")
        return of.filter((pl.col("scheduler") == scheduler) & ~pl.col("round").is_in(void))

    flows, probes = rows("flows"), rows("probes")
    used: Any = rows("links").filter(pl.col("link") == "down")["utilisation"].mean()
    requests = flows.filter((pl.col("kind") == "request") & pl.col("complete"))
    long = flows.filter(pl.col("kind") == "download").group_by("round")
    received = pl.col("received_bytes").cast(pl.Float64)
    per_round = long.agg(
        received.min().alias("slowest"),
        (received.sum().pow(2) / (pl.len() * received.pow(2).sum())).alias("jain"),
    )

    def mean(column: str) -> float:
        value: Any = per_round[column].mean()
        return float(value or 0.0)

    def p99(values: pl.Series) -> float | None:
        value = values.quantile(0.99)
        return None if value is None else value / 1e6

    delays = {stream: probes.filter(pl.col("stream") == stream)["delay_ns"] for stream in STREAMS}
    return Figures(
        slowest=mean("slowest"),
        used=float(used or 0.0),
        jain=mean("jain"),
        p99_ms={stream: p99(of) for stream, of in delays.items()}
        | {"requests": p99(requests["completion_ns"])},
        lost={stream: of.null_count() / max(1, len(of)) for stream, of in delays.items()},
        incomplete=flows.filter((pl.col("kind") == "transfer") & ~pl.col("complete")).height,
        timeouts=int(flows["timeouts"].sum()),
    )


def measure(
    binary: Path, options: tuple[str, ...], schedulers: list[str], duration: str, into: Path
) -> dict[str, Any]:
    named = [part for spec in schedulers for part in ("--scheduler", spec)]
    command = [str(binary), "lab", "--json", "--duration", duration, "--out", str(into)]
    command += [*named, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cells: {' '.join(options)}: {done.stderr.strip().splitlines()[-1]}")
    summary: dict[str, Any] = json.loads(done.stdout)["summary"]
    return summary


class Row:
    """A discipline beside the reference in a cell."""

    HEAD = (
        "link",
        "scheduler",
        *(f"{size} packets" for size in CLASSES),
        "incomplete",
        "slowest download",
        "link used",
        "Jain's index",
        *(f"{stream} p99, ms" for stream in (*STREAMS, "requests")),
        "timeouts",
    )

    def __init__(self, cell: str, scheduler: str, summary: dict[str, Any], tables: Path) -> None:
        self.cell, self.scheduler = cell, scheduler
        of_cell = {row["scheduler"]: row for row in summary["schedulers"]}[scheduler]
        self.completion = {row["packets"]: row["vs_fq_codel"] for row in of_cell["classes"]}
        self.own, self.reference = (figures(tables, name) for name in (scheduler, REFERENCE))
        self.slowest = self.own.slowest / max(1.0, self.reference.slowest)

    def line(self) -> str:
        cells = [self.cell, f"`{self.scheduler}`", *map(self.ratio, CLASSES)]
        cells.append(f"{self.own.incomplete} / {self.reference.incomplete}")
        cells.append(f"{self.slowest:.2f}")
        cells.append(f"{self.own.used:.3f} / {self.reference.used:.3f}")
        cells.append(f"{self.own.jain:.2f} / {self.reference.jain:.2f}")
        cells += [
            f"{self.delay(self.own, stream)} / {self.delay(self.reference, stream)}"
            for stream in (*STREAMS, "requests")
        ]
        cells.append(f"{self.own.timeouts} / {self.reference.timeouts}")
        return f"| {' | '.join(cells)} |"

    def ratio(self, size: str) -> str:
        ratio = self.completion.get(size)
        if ratio is None:
            return "-"
        between = "" if ratio["interval"] is None else "[{:.2f}, {:.2f}]".format(*ratio["interval"])
        return f"{ratio['value']:.2f} {between}".strip()

    @staticmethod
    def delay(of: Figures, stream: str) -> str:
        delay, lost = of.p99_ms[stream], 100 * of.lost.get(stream, 0.0)
        text = "-" if delay is None else f"{delay:.1f}"
        return text if lost < 0.05 else f"{text} ({lost:.1f} % lost)"

    def losses(self) -> list[str]:
        """Where it is not what is wanted."""
        found = [
            f"{size} packets {self.ratio(size)}"
            for size in CLASSES
            if (ratio := self.completion.get(size)) is not None
            and ratio["interval"] is not None
            and ratio["interval"][0] > 1
        ]
        for stream in (*STREAMS, "requests"):
            own, reference = self.own.p99_ms[stream], self.reference.p99_ms[stream]
            if own is not None and reference is not None and own > reference + LATER_MS:
                found.append(f"{stream} {own:.1f} ms, {reference:.1f} ms")
        if self.slowest < SLOWEST:
            found.append(f"slowest download {self.slowest:.2f}")
        if self.own.used < USED * self.reference.used:
            found.append(f"link used {self.own.used:.3f}, {self.reference.used:.3f}")
        if self.own.jain < min(JAIN, self.reference.jain):
            found.append(f"Jain's index {self.own.jain:.2f}, {self.reference.jain:.2f}")
        if self.own.timeouts > self.reference.timeouts + TIMEOUTS:
            found.append(f"{self.own.timeouts} timeouts, {self.reference.timeouts}")
        return found


def main() -> None:
    cells = grid()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, help="the program")
    parser.add_argument("--duration", default="2min", help="of each cell; default: %(default)s")
    parser.add_argument("--only", action="append", metavar="CELL", help="one of the cells")
    parser.add_argument("--peer", action="append", default=[], help="another discipline, as cake")
    parser.add_argument("--into", type=Path, help="the page to write the table into")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(cells)
    if unknown:
        parser.error(f"no cell is named {', '.join(unknown)}; there are {', '.join(cells)}")
    lines = [f"| {' | '.join(Row.HEAD)} |", f"|---|---|{'---:|' * (len(Row.HEAD) - 2)}"]
    print("\n".join(lines), flush=True)
    lost = []
    for name in options.only or cells:
        with tempfile.TemporaryDirectory() as scratch:
            schedulers = [REFERENCE, *options.peer, OURS]
            tables = Path(scratch) / "tables"
            summary = measure(options.shortlane, cells[name], schedulers, options.duration, tables)
            rows = [Row(name, scheduler, summary, tables) for scheduler in schedulers[1:]]
        lines += [row.line() for row in rows]
        print("\n".join(row.line() for row in rows), flush=True)
        lost += [f"* {name}: {'; '.join(found)}" for row in rows if (found := row.losses())]
    wanted = [f"{len(cells)} cells; not as wanted (`fq-lanes`, `fq-codel`):", "", *lost]
    print("\n".join(["", *wanted]))
    if options.into:
        page = options.into.read_text()
        before, rest = page.split(BEGIN, 1)
        _, after = rest.split(END, 1)
        table = "\n".join([*lines, "", *wanted])
        options.into.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


if __name__ == "__main__":
    main()
