#!/usr/bin/env python3
"""Turns what `kernel-guest compare` has measured into the tables of docs/benchmarks/kernel.md.

    compare.py target/kernel-runs/6.17.13/compare.json --into docs/benchmarks/kernel.md

Every figure is of all rounds that count. A ratio is the geometric mean of the rounds' ratios, its
interval (95 %, Student's t over the logarithms) says how far rounds differ. A round is left out
where the guest was late or its CPU busy, which the tables say.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

BEGIN = "<!-- tables: validation/kernel/compare.py -->"
END = "<!-- end of tables -->"
# Students' t, two-sided 95 %, by degrees of freedom.
T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}

OURS = "efd"
REFERENCE = "tbf+fq_codel"
TARGET = "2 cubic, no delay"
OF_US = ("efd", "efd:low-share=0.1", "sb-sh", "run2c", "efd:threshold=inf")
# What the map compares, by the mean of each round; less is better but for rates.
DELAYS = ("ping, ms", "video, ms")
MAP = (
    ("fetch 5000 B, ms", "5 kB"),
    ("fetch 20000 B, ms", "20 kB"),
    ("fetch 100000 B, ms", "100 kB"),
    ("fetch 1000000 B, ms", "1 MB"),
    ("fetch 5000000 B, ms", "5 MB"),
    ("ping, ms", "ping"),
    ("video, ms", "video"),
    ("download, all, Mbit/s", "long flows"),
)


@dataclass
class Results:
    """The rows, by workload, setting and metric; each round's values."""

    kernel: str
    rounds: dict[tuple[str, str, str], dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    workloads: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    void: int = 0
    blocks: int = 0

    def values(self, workload: str, setting: str, metric: str) -> list[float]:
        """All rounds' values together."""
        rounds = self.rounds.get((workload, setting, metric), {})
        return [value for _, values in sorted(rounds.items()) for value in values]

    def means(self, workload: str, setting: str, metric: str) -> dict[int, float]:
        """Each round's mean."""
        rounds = self.rounds.get((workload, setting, metric), {})
        return {at: statistics.fmean(values) for at, values in rounds.items() if values}

    def pairs(self, workload: str, metric: str, a: str, b: str) -> list[tuple[float, float]]:
        """The means of rounds that both have."""
        ours, theirs = self.means(workload, a, metric), self.means(workload, b, metric)
        return [(ours[at], theirs[at]) for at in sorted(ours.keys() & theirs.keys())]

    def ratio(self, workload: str, metric: str, a: str, b: str) -> Estimate:
        """The rounds' means of `a` over those of `b`."""
        pairs = self.pairs(workload, metric, a, b)
        logs = estimate_of([math.log(x / y) for x, y in pairs if x > 0 and y > 0])
        return Estimate(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), logs.rounds)

    def difference(self, workload: str, metric: str, a: str, b: str) -> Estimate:
        """The rounds' means of `a` less those of `b`."""
        return estimate_of([x - y for x, y in self.pairs(workload, metric, a, b)])


@dataclass(frozen=True)
class Estimate:
    """A figure, its interval, and the rounds it is of; without an interval for one round."""

    value: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        """The figure, and in brackets the interval."""
        if self.rounds < 2:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def estimate_of(values: list[float]) -> Estimate:
    """The mean of one value a round."""
    mean = statistics.fmean(values) if values else math.nan
    if len(values) < 2:
        return Estimate(mean, -math.inf, math.inf, len(values))
    error = statistics.stdev(values) / math.sqrt(len(values)) * T.get(len(values) - 1, 2.0)
    return Estimate(mean, mean - error, mean + error, len(values))


def read(paths: list[Path]) -> Results:
    """The documents as one; rounds that are void do not come along."""
    documents = [json.loads(path.read_text()) for path in paths]
    results = Results(", ".join(sorted({document["kernel"] for document in documents})))
    for document in documents:
        rows = document["rows"]
        key = ("workload", "setting", "round")
        void = {tuple(r[k] for k in key) for r in rows if r["metric"] == "void" and r["value"]}
        results.void += len(void)
        for row in rows:
            if row["metric"] == "void":
                results.blocks += 1
            if tuple(row[k] for k in key) in void:
                continue
            values = row.get("values") or [row["value"]] * min(row["n"], 1)
            at = results.rounds[row["workload"], row["setting"], row["metric"]]
            at[row["round"]] = values
            for name, known in ((row["workload"], results.workloads),
                                (row["setting"], results.settings)):  # fmt: skip
                if name not in known:
                    known.append(name)
    # In the order of the program's own tables, which the rounds shuffle.
    order = [*PEERS_FIRST, *results.settings]
    results.settings.sort(key=order.index)
    return results


PEERS_FIRST = (
    "tbf+pfifo", "tbf+sfq", "tbf+fq_codel", "tbf+hhf", "cake", "hfsc+sfq", "hfsc+fq_codel", *OF_US
)  # fmt: skip


def quantile(values: list[float], part: float) -> float:
    """The least value that this part of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]


def number(value: float) -> str:
    """Three digits that matter."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def target_table(results: Results) -> list[str]:
    """The figures that were asked for."""
    lines = ["| | efd | tbf + fq_codel | |", "|---|---:|---:|---|"]
    for metric, name in (
        ("fetch 20000 B, ms", "fetch of 20 kB, mean, ms"),
        ("ping, ms", "ping, mean, ms"),
        ("download, all, Mbit/s", "long flows, Mbit/s"),
    ):
        ours, theirs = (
            list(results.means(TARGET, setting, metric).values()) for setting in (OURS, REFERENCE)
        )
        if not ours or not theirs:
            return []
        n = len(results.values(TARGET, OURS, metric))
        a, b = statistics.fmean(ours), statistics.fmean(theirs)
        if metric == "ping, ms":
            verdict = f"difference {results.difference(TARGET, metric, OURS, REFERENCE)} ms"
        else:
            verdict = f"ratio {results.ratio(TARGET, metric, OURS, REFERENCE)}"
        counts = f"rounds: {len(ours)}, n = {n}"
        lines.append(f"| {name} | {number(a)} | {number(b)} | {verdict}; {counts} |")
    return [f"### The target: {TARGET}", "", *lines, ""]


def map_table(results: Results) -> list[str]:
    """EFD against the best of the kernel's own, cell by cell."""
    columns = [
        (metric, name)
        for metric, name in MAP
        if any(results.means(w, OURS, metric) for w in results.workloads)
    ]
    lines = [
        "| | " + " | ".join(name for _, name in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for workload in results.workloads:
        cells = [against_best(results, workload, metric) for metric, _ in columns]
        lines.append(f"| {workload} | " + " | ".join(cells) + " |")
    return ["### Who wins where", "", *lines, ""]


def against_best(results: Results, workload: str, metric: str) -> str:
    """One cell: the ratio to the best peer, and which that is."""
    more = metric.endswith("Mbit/s")
    if not results.means(workload, OURS, metric):
        return ""
    peers = {}
    for setting in results.settings:
        means = results.means(workload, setting, metric)
        # One that lets fetches unfinished has no time to compare.
        unfinished = metric.startswith("fetch") and any(
            results.values(workload, setting, metric.replace(", ms", ", unfinished"))
        )
        if setting not in OF_US and means and not unfinished:
            peers[setting] = statistics.fmean(means.values())
    if not peers:
        return ""
    best = (max if more else min)(peers, key=lambda setting: peers[setting])
    best_name = best.removeprefix("tbf+")
    if metric in DELAYS:
        difference = results.difference(workload, metric, OURS, best)
        return f"{marked(f'{difference.value:+.1f} ms', difference, 0, more)} {best_name}"
    ratio = results.ratio(workload, metric, OURS, best)
    return f"{marked(f'{ratio.value:.2f}', ratio, 1, more)} {best_name}"


def marked(text: str, estimate: Estimate, even: float, more: bool) -> str:
    """Bold where ours is better beyond the interval, in italics where it is worse."""
    above, below = estimate.low > even, estimate.high < even
    if above if more else below:
        return f"**{text}**"
    return f"_{text}_" if above or below else text


def workload_tables(results: Results) -> list[str]:
    """Every workload's figures, scheduler by scheduler."""
    return [line for workload in results.workloads for line in workload_table(results, workload)]


def workload_table(results: Results, workload: str) -> list[str]:
    """One workload's."""
    metrics = {metric for at, _, metric in results.rounds if at == workload}
    fetches = sorted(
        (m for m in metrics if m.startswith("fetch") and m.endswith("ms")),
        key=lambda m: int(m.split()[1]),
    )
    heads = [size_name(metric) for metric in fetches] + ["ping", "voice", "video"]
    directions = [d for d in ("download", "upload") if f"{d}, all, Mbit/s" in metrics]
    heads += ["down, Mbit/s" if d == "download" else "up, Mbit/s" for d in directions]
    heads += ["link used", "resent", "rounds"]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for setting in results.settings:
        if not results.means(workload, setting, "ping, ms"):
            continue
        cells = [fetch_cell(results, workload, setting, metric) for metric in fetches]
        cells += [
            delay_cell(results, workload, setting, name) for name in ("ping", "voice", "video")
        ]
        cells += [rate_cell(results, workload, setting, d) for d in directions]
        used = results.means(workload, setting, "link, used")
        cells += [f"{statistics.fmean(used.values()) * 100:.1f} %"]
        cells += [resent_cell(results, workload, setting, fetches), str(len(used))]
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    return [f"#### {workload}", "", *lines, ""]


def size_name(metric: str) -> str:
    """Such as 20 kB, ms."""
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


def document(results: Results) -> str:
    """All tables."""
    lines = [
        f"Linux {results.kernel}, {results.blocks} blocks, {results.void} void.",
        "",
        *target_table(results),
        *map_table(results),
        "### Every figure",
        "",
        *workload_tables(results),
    ]
    return "\n".join(lines).rstrip() + "\n"


def workloads_document(paths: list[Path]) -> str:
    """Every workload's figures, kernel by kernel."""
    lines = []
    for path in paths:
        results = read([path])
        lines += [f"**Linux {results.kernel}**, {results.blocks} blocks, {results.void} void.", ""]
        lines += workload_tables(results)
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
    parser.add_argument(
        "--workloads", action="store_true", help="every figure of each file, and nothing else"
    )
    arguments = parser.parse_args()
    tables = (
        workloads_document(arguments.measured)
        if arguments.workloads
        else document(read(arguments.measured))
    )
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
