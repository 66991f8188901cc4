#!/usr/bin/env python3
"""Turns what `kernel-guest compare` has measured into the tables of docs/benchmarks/kernel.md.

    compare.py target/kernel-runs/compare/*/compare.json --into docs/benchmarks/kernel.md

Each of ours is judged against the better of `tbf+fq_codel` and `cake`, cell by cell. A ratio is
the geometric mean of the rounds' ratios; its interval (95 %, Student's t over the logarithms)
says how far rounds differ. A block in which the guest was late or its CPU busy is void and left
out, which the tables say.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measured import Estimate, Results, Rounds, difference, quantile, ratio, read

BEGIN = "<!-- tables: validation/kernel/compare.py -->"
END = "<!-- end of tables -->"

OURS = ("fq-lanes", "marks+cake", "marks+prio", "marks+htb", "efd")
# Whose better one ours are judged against, and the letters that stand for them in cells.
PEERS = {"tbf+fq_codel": "f", "cake": "c"}
# A difference that nobody would notice, in the unit of the column.
LITTLE = {"ratio": 0.02, "ms": 0.5, "points": 0.5}
# In the order of the program's own table, which the rounds shuffle.
ORDER = (
    "tbf+pfifo", "tbf+sfq", "tbf+fq_codel", "tbf+fq_pie", "tbf+hhf", "cake", "cake besteffort",
    "cake diffserv4", "cake flows", "hfsc+sfq", "hfsc+fq_codel", "fq-lanes", "marks+cake",
    "marks+prio", "marks+htb", "efd",
)  # fmt: skip
OTHER_HOST = "other host, share of the link"


@dataclass(frozen=True)
class Column:
    """What a column of the map compares; one figure a round."""

    name: str
    of: Callable[[Results, str, str], Rounds]
    unit: str
    more_is_better: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell of the map, and who wins it."""

    text: str
    verdict: str = ""


def mean_of(metric: str) -> Callable[[Results, str, str], Rounds]:
    """Each round's mean."""
    return lambda results, workload, setting: results.means(workload, setting, metric)


def tail_of(name: str) -> Callable[[Results, str, str], Rounds]:
    """Each round's 99th percentile of a delay."""
    return lambda results, workload, setting: results.tails(workload, setting, f"{name}, ms")


def part_of(suffix: str) -> Callable[[Results, str, str], Rounds]:
    """What part of the packets was lost, or of the fetches not finished, in percent."""

    def parts(results: Results, workload: str, setting: str) -> Rounds:
        found: dict[int, list[float]] = {}
        for metric in results.metrics(workload):
            if metric.endswith(suffix):
                for at, values in results.rounds.get((workload, setting, metric), {}).items():
                    found.setdefault(at, []).extend(values)
        return {at: statistics.fmean(values) * 100 for at, values in found.items() if values}

    return parts


MAP = (
    Column("5 kB", mean_of("fetch 5000 B, ms"), "ratio"),
    Column("20 kB", mean_of("fetch 20000 B, ms"), "ratio"),
    Column("100 kB", mean_of("fetch 100000 B, ms"), "ratio"),
    Column("1 MB", mean_of("fetch 1000000 B, ms"), "ratio"),
    Column("5 MB", mean_of("fetch 5000000 B, ms"), "ratio"),
    Column("unfinished", part_of(", unfinished"), "points"),
    Column("ping p99", tail_of("ping"), "ms"),
    Column("voice p99", tail_of("voice"), "ms"),
    Column("video p99", tail_of("video"), "ms"),
    Column("lost", part_of(", lost"), "points"),
    Column("long flows", mean_of("download, all, Mbit/s"), "ratio", more_is_better=True),
    Column("link", mean_of("link, used"), "ratio", more_is_better=True),
    Column("other host", mean_of(OTHER_HOST), "share"),
)


def judged(results: Results, workload: str, ours: str, column: Column) -> Cell:
    """One of ours against the better of the peers."""
    own = column.of(results, workload, ours)
    peers = {peer: column.of(results, workload, peer) for peer in PEERS}
    peers = {peer: rounds for peer, rounds in peers.items() if rounds}
    if not own or not peers:
        return Cell("")
    better = max if column.more_is_better else min
    best = better(peers, key=lambda peer: statistics.fmean(peers[peer].values()))
    theirs, letter = peers[best], PEERS[best]
    if column.unit == "share":
        # Both are to have half of it: less is no merit, so this is told and not judged.
        return Cell(f"{statistics.fmean(own.values()):.2f}")
    if column.unit == "points" and not any((*own.values(), *theirs.values())):
        return Cell("")
    is_ratio = column.unit == "ratio"
    estimate = ratio(own, theirs) if is_ratio else difference(own, theirs)
    rounds = len(own.keys() & theirs.keys())
    verdict = verdict_of(estimate, 1.0 if is_ratio else 0.0, column) if rounds > 1 else "one round"
    sign = "" if is_ratio else "+"
    mark = {"better": "**", "worse": "_", "worse by little": "_"}.get(verdict, "")
    interval = ""
    if rounds > 1:
        interval = f" ({estimate.low:{sign}.2f} to {estimate.high:{sign}.2f})"
    return Cell(f"{mark}{estimate.value:{sign}.2f}{mark}{interval} {letter}", verdict)


def verdict_of(estimate: Estimate, even: float, column: Column) -> str:
    """Whether ours is better or worse beyond the interval; worse by little is said."""
    above, below = estimate.low > even, estimate.high < even
    if above if column.more_is_better else below:
        return "better"
    if below if column.more_is_better else above:
        little = abs(estimate.value - even) <= LITTLE[column.unit]
        return "worse by little" if little else "worse"
    return "no difference"


def map_of(results: Results, ours: str) -> list[list[Cell]]:
    """All cells of one of ours."""
    return [[judged(results, w, ours, column) for column in MAP] for w in results.workloads]


def map_table(results: Results, ours: str) -> list[str]:
    """One of ours against the better peer, workload by workload."""
    cells = map_of(results, ours)
    used = [at for at in range(len(MAP)) if any(row[at].text for row in cells)]
    lines = [
        f"| {ours} | " + " | ".join(MAP[at].name for at in used) + " |",
        "|---|" + "---|" * len(used),
    ]
    for workload, row in zip(results.workloads, cells, strict=True):
        lines.append(f"| {workload} | " + " | ".join(row[at].text for at in used) + " |")
    return [*lines, ""]


def summary(results: Results, ours: list[str]) -> list[str]:
    """How many cells each of ours wins and loses."""
    heads = ("better", "no difference", "worse by little", "worse", "one round")
    lines = ["| cells | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for name in ours:
        verdicts = Counter(cell.verdict for row in map_of(results, name) for cell in row)
        counts = " | ".join(str(verdicts[verdict]) for verdict in heads)
        lines.append(f"| {name} | {counts} |")
    return [*lines, ""]


def number(value: float) -> str:
    """Three digits that matter."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def workload_table(results: Results, workload: str) -> list[str]:
    """One workload's figures, scheduler by scheduler."""
    metrics = results.metrics(workload)
    fetches = sorted(
        (m for m in metrics if m.startswith("fetch") and m.endswith("ms")),
        key=lambda m: int(m.split()[1]),
    )
    directions = [d for d in ("download", "upload") if f"{d}, all, Mbit/s" in metrics]
    heads = [*(size_name(metric) for metric in fetches), "ping", "voice", "video"]
    heads += ["down, Mbit/s" if d == "download" else "up, Mbit/s" for d in directions]
    heads += ["link used", "resent"] + ["other host"] * (OTHER_HOST in metrics) + ["rounds"]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for setting in sorted(results.settings, key=place_of):
        used = results.means(workload, setting, "link, used")
        if not used:
            continue
        cells = [fetch_cell(results, workload, setting, metric) for metric in fetches]
        cells += [
            delay_cell(results, workload, setting, name) for name in ("ping", "voice", "video")
        ]
        cells += [rate_cell(results, workload, setting, d) for d in directions]
        cells += [f"{statistics.fmean(used.values()) * 100:.1f} %"]
        cells += [resent_cell(results, workload, setting, fetches)]
        if OTHER_HOST in metrics:
            shares = results.values(workload, setting, OTHER_HOST)
            cells += [f"{statistics.fmean(shares) * 100:.1f} %"]
        lines.append(f"| {setting} | " + " | ".join([*cells, str(len(used))]) + " |")
    return [f"#### {workload}", "", *lines, ""]


def place_of(setting: str) -> tuple[int, str]:
    """Where a setting stands; those with parameters come last."""
    return (ORDER.index(setting) if setting in ORDER else len(ORDER), setting)


def size_name(metric: str) -> str:
    """Such as 20 kB."""
    size = int(metric.split()[1])
    return f"{size // 1_000_000} MB" if size >= 1_000_000 else f"{size // 1_000} kB"


def fetch_cell(results: Results, workload: str, setting: str, metric: str) -> str:
    """Median, 90th percentile, and how many were not finished."""
    times = results.values(workload, setting, metric)
    lost = results.values(workload, setting, metric.replace(", ms", ", unfinished"))
    if not times:
        return f"none of {len(lost)}"
    tail = f" / {number(quantile(times, 0.9))}" if len(times) >= 20 else ""
    unfinished = f", {sum(lost):.0f} of {len(lost)} unfinished" if sum(lost) else ""
    return f"{number(statistics.median(times))}{tail}{unfinished}"


def resent_cell(results: Results, workload: str, setting: str, fetches: list[str]) -> str:
    """Segments sent again, by the mean of the fetches of each size."""
    of_sizes = [
        results.values(workload, setting, metric.replace(", ms", ", resent")) for metric in fetches
    ]
    return ", ".join(f"{statistics.fmean(sent):.1f}" if sent else "-" for sent in of_sizes)


def delay_cell(results: Results, workload: str, setting: str, name: str) -> str:
    """Mean, 99th percentile, and loss."""
    times = results.values(workload, setting, f"{name}, ms")
    lost = results.values(workload, setting, f"{name}, lost")
    if not times:
        return "all lost"
    loss = statistics.fmean(lost) * 100 if lost else 0.0
    text = f"{number(statistics.fmean(times))} / {number(quantile(times, 0.99))}"
    return text + (f", {loss:.1f} % lost" if loss else "")


def rate_cell(results: Results, workload: str, setting: str, direction: str) -> str:
    """All long flows together, and the least and the most of one."""
    everything = results.values(workload, setting, f"{direction}, all, Mbit/s")
    each = results.values(workload, setting, f"{direction}, Mbit/s")
    spread = f" ({number(min(each))} to {number(max(each))})" if len(each) > len(everything) else ""
    return f"{number(statistics.fmean(everything))}{spread}"


def document(kernels: list[Results]) -> str:
    """All tables, one kernel after the other."""
    lines = []
    for results in kernels:
        ours = [name for name in OURS if name in results.settings]
        blocks = f"{results.blocks} blocks, {results.void} void."
        lines += [f"### Linux {results.kernel}", "", blocks, "", *summary(results, ours)]
        for name in ours:
            lines += map_table(results, name)
    lines += [f"### Every figure, Linux {kernels[0].kernel}", ""]
    for workload in kernels[0].workloads:
        lines += workload_table(kernels[0], workload)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Print the tables, or put them into a document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", nargs="+", type=Path, help="what the guest has left in /out")
    parser.add_argument(
        "--into", type=Path, metavar="FILE", help="replace the tables in a document"
    )
    arguments = parser.parse_args()
    tables = document(read(arguments.measured))
    if arguments.into is None:
        print(tables)
        return 0
    text = arguments.into.read_text()
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        print(f"{arguments.into}: no lines '{BEGIN}' and '{END}'", file=sys.stderr)
        return 1
    arguments.into.write_text(f"{head}{BEGIN}\n\n{tables}\n{END}{tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
