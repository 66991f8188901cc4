#!/usr/bin/env python3
"""What each mechanism of fq-lanes is good for: runs it with and without, and writes the table.

Every setting runs fq-codel, cake, las, fq-lanes, fq-lanes with another target, and fq-lanes without
one mechanism after another, on the same seeds. Rows are ratios to fq-codel's figures, except
delays, stalls and link use.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from settings import Setting, Settings

REFERENCE = "fq-codel"
PEERS = ("cake", "las")
OURS = "fq-lanes"
WITHOUT = (
    "ages",
    "new",
    "patience",
    "part",
    "floor",
    "half-life",
    "clock",
    "ahead",
    "idle",
)
#: With the target of RFC 8290.
OTHERWISE = ("fq-lanes:target=5ms",)
CLASSES = ("<=20", "20-100", "100-1000")
BEGIN, END = "<!-- ablation: begin -->", "<!-- ablation: end -->"


@dataclass(frozen=True)
class Row:
    """What a discipline did in a setting."""

    scheduler: str
    #: Ratios of mean completion times; None where too few were complete under both.
    completion: tuple[float | None, ...]
    #: Transfers not complete, less those under the reference.
    incomplete: int
    #: Of all downloads together, and of the slowest; None without any.
    bulk: tuple[float, float] | None
    stall_ms: float | None
    voice: tuple[float | None, float]
    video: tuple[float | None, float]
    used: float

    def cells(self) -> list[str]:
        def ratio(value: float | None) -> str:
            return "-" if value is None else f"{value:.2f}"

        def stream(of: tuple[float | None, float]) -> str:
            delay = "-" if of[0] is None else f"{of[0]:.1f}"
            return delay if of[1] < 0.05 else f"{delay} ({of[1]:.1f} % lost)"

        return [
            f"`{self.scheduler}`",
            *(ratio(value) for value in self.completion),
            f"{self.incomplete:+d}",
            "-" if self.bulk is None else f"{self.bulk[0]:.2f} ({self.bulk[1]:.2f})",
            "-" if self.stall_ms is None else f"{self.stall_ms:.0f}",
            stream(self.voice),
            stream(self.video),
            f"{self.used:.3f}",
        ]


HEAD = (
    "scheduler",
    *(f"{size} packets" for size in CLASSES),
    "incomplete",
    "downloads (slowest)",
    "longest stall, ms",
    "voice p99, ms",
    "video p99, ms",
    "link used",
)


def run(binary: Path, setting: Setting, schedulers: Sequence[str], seeds: str, into: Path) -> None:
    """Simulates a setting; its tables are in `into` then."""
    file = into.with_suffix(".toml")
    file.write_text(setting.scenario(seeds))
    named = [part for spec in schedulers for part in ("--scheduler", spec)]
    command: list[str | Path] = [binary, "sim", file, "--seeds", seeds, "--out", into, *named]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ablation: {setting.title}: {done.stderr.strip().splitlines()[-1]}")


def rows(tables: Path) -> list[Row]:
    """A row for each scheduler, the reference first."""

    def of(table: pl.DataFrame, name: str) -> pl.DataFrame:
        return table.filter(pl.col("scheduler") == name)

    flows = pl.read_parquet(tables / "flows.parquet")
    probes = pl.read_parquet(tables / "probes.parquet")
    links = pl.read_parquet(tables / "links.parquet").filter(pl.col("link") == "bottleneck")
    reference = of(flows, REFERENCE)
    return [
        row(name, of(flows, name), of(probes, name), of(links, name), reference)
        for name in flows["scheduler"].unique(maintain_order=True)
    ]


def row(
    name: str,
    flows: pl.DataFrame,
    probes: pl.DataFrame,
    links: pl.DataFrame,
    reference: pl.DataFrame,
) -> Row:
    def transfers(of: pl.DataFrame) -> pl.DataFrame:
        return of.filter(pl.col("kind") == "transfer").select(
            "seed", "index", "size_class", "complete", "completion_ns"
        )

    def downloads(of: pl.DataFrame) -> pl.DataFrame:
        return of.filter(pl.col("traffic") == "downloads")

    def received(of: pl.DataFrame) -> float:
        return float(downloads(of)["received_bytes"].sum())

    def slowest(of: pl.DataFrame) -> float:
        least = downloads(of).group_by("seed").agg(pl.col("received_bytes").min())
        return float(least["received_bytes"].sum())

    pairs = transfers(flows).join(transfers(reference), on=["seed", "index"], suffix="_reference")
    both = pairs.filter(pl.col("complete") & pl.col("complete_reference"))

    def ratio(size: str) -> float | None:
        of_size = both.filter(pl.col("size_class") == size)
        if of_size.height < 20:
            return None
        ours, theirs = of_size["completion_ns"], of_size["completion_ns_reference"]
        return float(ours.sum()) / float(theirs.sum())

    def incomplete(of: pl.DataFrame) -> int:
        return of.filter((pl.col("kind") == "transfer") & ~pl.col("complete")).height

    def stream(of: str) -> tuple[float | None, float]:
        delays = probes.filter(pl.col("stream") == of)["delay_ns"]
        p99 = delays.quantile(0.99)
        return (None if p99 is None else p99 / 1e6, 100 * delays.null_count() / len(delays))

    bulk = None
    if received(reference) > 0:
        bulk = (
            received(flows) / received(reference),
            slowest(flows) / max(1.0, slowest(reference)),
        )
    stall = downloads(flows).select(pl.col("stall_max_ns").max()).item()

    return Row(
        scheduler=name,
        completion=tuple(ratio(size) for size in CLASSES),
        incomplete=incomplete(flows) - incomplete(reference),
        bulk=bulk,
        stall_ms=stall / 1e6 if bulk else None,
        voice=stream("voice"),
        video=stream("video"),
        used=links.select(pl.col("utilisation").mean()).item(),
    )


def table(title: str, of: list[Row]) -> str:
    lines = [f"**{title}**", "", f"| {' | '.join(HEAD)} |", f"|---|{'---:|' * (len(HEAD) - 1)}"]
    lines += [f"| {' | '.join(row.cells())} |" for row in of]
    return "\n".join(lines)


def put(text: str, into: Path) -> None:
    """Replaces what stands between the marks of a page."""
    page = into.read_text()
    before, rest = page.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    into.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, help="the program")
    parser.add_argument("--seeds", default="101..120", help="default: %(default)s")
    parser.add_argument("--only", action="append", metavar="SETTING", help="one of the settings")
    parser.add_argument("--into", type=Path, help="the page to write the tables into")
    options = parser.parse_args()
    without = [f"{OURS}:without={what}" for what in WITHOUT]
    schedulers = [REFERENCE, *PEERS, OURS, *OTHERWISE, *without]
    settings = Settings().all
    unknown = set(options.only or ()) - set(settings)
    if unknown:
        parser.error(f"no setting is named {', '.join(unknown)}; there are {', '.join(settings)}")
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.only or settings:
            into = Path(scratch) / name.replace(" ", "-")
            run(options.shortlane, settings[name], schedulers, options.seeds, into)
            tables.append(table(settings[name].title, rows(into)))
            print(tables[-1], flush=True)
    if options.into:
        put("\n\n".join(tables), options.into)


if __name__ == "__main__":
    main()
