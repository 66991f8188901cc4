"""What was found, as a line, as a table and as RESULTS.md."""

from __future__ import annotations

from collections import Counter

import cases
import causes
import verdict
from cases import Case
from results import Results, Row

METRICS = (*(name for name, _ in cases.CLASSES), "drops")


def line(case: Case, rows: list[Row]) -> str:
    cells = [f"{row.metric} {cell(row)}" for row in rows]
    return f"{case.name()}: {', '.join(cells)}"


def cell(row: Row) -> str:
    if row.ratio is None:
        return "few"
    mark = {"holds": "", "open": " ?", "differs": " (!)"}[row.verdict]
    return f"{row.ratio.value:.2f} [{row.ratio.low:.2f}, {row.ratio.high:.2f}]{mark}"


def summary(results: Results) -> str:
    count = Counter(row.verdict for row in results.rows)
    return (
        f"{len(results.rows)} comparisons: {count['holds']} hold, {count['open']} are open, "
        f"{count['differs']} differ, {count['few']} have too few drops to compare"
    )


def table(results: Results) -> list[list[str]]:
    head = ["queue", "tcp", "load", "buffer_packets", "rtt_ms", "against", "metric"]
    rows = [[*head, "theirs", "ours", "ratio", "low", "high", "verdict"]]
    for against, group in (("ns-3", results.rows), ("ns-3 jittered", results.control)):
        for row in group:
            c, r = row.case, row.ratio
            start = [c.queue, c.tcp, str(c.load), str(c.buffer), str(c.rtt_ms), against, row.metric]
            numbers = (r.theirs, r.ours, r.value, r.low, r.high) if r else ()
            texts = [f"{number:.6g}" for number in numbers] or [""] * 5
            rows.append([*start, *texts, row.verdict])
    return rows


def grid(rows: list[Row]) -> list[str]:
    lines = [
        f"| queue | TCP | load | buffer | RTT, ms | {' | '.join(METRICS)} |",
        f"|{' --- |' * (5 + len(METRICS))}",
    ]
    for start in range(0, len(rows), len(METRICS)):
        group = rows[start : start + len(METRICS)]
        c = group[0].case
        cells = " | ".join(cell(row) for row in group)
        lines.append(f"| {c.queue} | {c.tcp} | {c.load} | {c.buffer} | {c.rtt_ms} | {cells} |")
    return lines


HEAD = """\
# Shortlane's simulator against ns-{release}

`make validate-ns3{target}` writes this file; [README.md](README.md) says what is run and how it is
judged.

{summary}.

Each cell is ours / ns-3's over {replicates} lists of transfers, of {seconds:g} s of arrivals each,
with a 95 % interval: mean completion time of transfers of up to {sizes} packets
(tolerance {fct:g} %), and packets dropped of those that reached the bottleneck ({drops:g} %).
Unmarked: the whole interval is within the tolerance. `?`: the interval reaches beyond it, so
these lists do not decide. `(!)`: the whole interval is outside.
"""

CONTROL = """\
## ns-3 against itself

The same lists with every start moved by less than 100 us: what chaos alone does to these
figures.
"""


def markdown(results: Results, release: str, target: str) -> str:
    head = HEAD.format(
        release=release,
        target=target,
        summary=summary(results),
        replicates=results.replicates,
        seconds=results.seconds,
        sizes=", ".join(str(largest) for _, largest in cases.CLASSES),
        fct=100 * verdict.FCT_TOLERANCE,
        drops=100 * verdict.DROP_TOLERANCE,
    )
    lines = [head, *grid(results.rows), "", "## Differences and their causes", ""]
    for cause in causes.CAUSES:
        explained = [row for row in results.rows if cause in causes.of(row, release)]
        rows = [row for row in explained if row.verdict != "holds"]
        if rows:
            lines += [f"**{cause.name}** ({len(rows)} cells). {cause.text}", ""]
    without = [r for r in results.rows if r.verdict == "differs" and not causes.of(r, release)]
    lines += [f"Cells that differ and have no known cause: {len(without)}.", ""]
    if results.control:
        lines += [CONTROL, *grid(results.control), ""]
    lines += ["## Transfers that did not complete", ""]
    failed = [(case, ours, theirs) for case, ours, theirs in results.failures if ours or theirs]
    lines += [f"- {case.name()}: ours {o}, ns-3 {t}" for case, o, t in failed] or ["None."]
    return "\n".join(lines) + "\n"
