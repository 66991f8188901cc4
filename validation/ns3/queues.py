#!/usr/bin/env python3
"""Queues against ns-3's on the same arrivals, both alone in front of a link.

    validation/ns3/queues.py --ns3 target/ns3/queue --shortlane target/debug/examples/behind_a_link

RED: the dice differ, so a run cannot be the same; what is compared is how often each packet is
dropped (or marked) over many runs with the same arrivals. Spells of load 0.5 to 1.3 fill the queue
and leave it idle in turn. For each case the table has the packets signalled to in all runs by
either, the ratio of the two with a 95 % interval (binomial, over-dispersed by what the runs of
blocks of packets show), and the statistic of a chi-square test over blocks of 50 packets.

CoDel and FQ-CoDel throw no dice, but small differences grow: ns-3 counts time in units of 1.024 us.
Over many arrival processes the table has the part of packets that fare alike (sent, dropped,
marked), and the ratios of what was dropped, what was marked and of the mean wait with 95 %
intervals.
"""

import argparse
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence

RATE = 10_000_000
LIMIT = 300
RUNS = 100
PACKETS = 4_000
BLOCK = 50

#: min, max, max-probability, averaging, gentle, wait, ecn, part of the packets that are capable.
RED = {
    "slides": (45, 150, 0.1, 1 / 512, 1, 1, 0, 0.0),
    "ns-2, 1993": (5, 15, 0.1, 0.002, 0, 0, 0, 0.0),
    "gentle, no wait": (5, 15, 0.1, 0.02, 1, 0, 0, 0.0),
    "gentle, wait": (5, 15, 0.1, 0.02, 1, 1, 0, 0.0),
    "fast average": (10, 60, 0.5, 0.25, 1, 1, 0, 0.0),
    "ECN, half of them": (10, 140, 0.3, 0.02, 1, 1, 1, 0.5),
}

#: Our discipline, ns-3's with its attributes, flows, part of the packets that are ECN-capable.
CODEL = {
    "codel": ("codel", ("CoDel", "MaxSize=1000p"), 1, 0.0),
    "codel, short interval": (
        "codel:target=2ms,interval=20ms",
        ("CoDel", "MaxSize=1000p", "Target=2ms", "Interval=20ms"),
        1,
        0.0,
    ),
    "codel, small buffer": ("codel:limit=40packets", ("CoDel", "MaxSize=40p"), 1, 0.0),
    "codel, ECN, half of them": (
        "codel:ecn=yes",
        ("CoDel", "MaxSize=1000p", "UseEcn=true"),
        1,
        0.5,
    ),
    "fq-codel, 20 flows": (
        "fq-codel:ecn=no",
        ("FqCoDel", "MaxSize=10240p", "UseEcn=false"),
        20,
        0.0,
    ),
    "fq-codel, ECN": (
        "fq-codel:ecn=yes",
        ("FqCoDel", "MaxSize=10240p", "UseEcn=true"),
        20,
        0.5,
    ),
    "fq-codel, small buffer": (
        "fq-codel:ecn=no,limit=100packets",
        ("FqCoDel", "MaxSize=100p", "UseEcn=false"),
        20,
        0.0,
    ),
}
#: RFC 8289 leaves a queue alone with up to 1500 bytes behind the head, ns-3 with less than this.
MTU = "ns3::CoDelQueueDisc::MinBytes=1501"
CODEL_PACKETS = 12_000
SEEDS = range(1, 31)
#: What means may differ by, of themselves.
TOLERANCE = 0.05

#: How often a packet was dropped and marked, and how long it waited in ns.
Fate = tuple[int, int, int]


def arrivals(seed: int, packets: int, capable: float, flows: int) -> str:
    """Packets of 500 and 1500 bytes, in spells of 0.5 to 1.3 times the link's rate."""
    dice = random.Random(seed)
    lines, now, load = [], 0.0, 1.0
    for index in range(packets):
        if index % 200 == 0:
            load = dice.choice([0.5, 0.9, 1.1, 1.3])
        size = dice.choice([500, 1500, 1500])
        now += dice.expovariate(load * RATE / 8 / 1167)
        can = int(dice.random() < capable)
        # The first flows have most of the packets.
        flow = min(dice.randrange(flows), dice.randrange(flows)) if flows > 1 else 0
        lines.append(f"{round(now * 1e9)} {size} {can} {flow}\n")
    return "".join(lines)


def fates(command: Sequence[str], text: str) -> list[Fate]:
    """Run a side; give what became of each packet."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return [(int(dropped), int(marked), int(waited)) for dropped, marked, waited in lines]


def main() -> None:
    """Both tables; fails if a case differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ns3", required=True, help="queue.cc, compiled")
    parser.add_argument("--shortlane", required=True, help="the example behind_a_link")
    options = parser.parse_args()
    differ = red(options) + codel(options)
    if differ:
        sys.exit(f"differ: {', '.join(differ)}")


def red(options: argparse.Namespace) -> list[str]:
    """Print the table of RED; give the cases that differ."""
    print("| case | ours: dropped, marked | ns-3 | ratio | chi-square / blocks |")
    print("|---|---:|---:|---:|---:|")
    differ = []
    for name, case in RED.items():
        low, high, most, weight, gentle, wait, ecn, capable = case
        text = arrivals(1, PACKETS, capable, 1)
        word = ["no", "yes"]
        spec = (
            f"red:limit={LIMIT}packets,min={low}packets,max={high}packets,max-probability={most},"
            f"averaging={weight:.9f},gentle={word[gentle]},wait={word[wait]},ecn={word[ecn]}"
        )
        ours = fates([options.shortlane, spec, str(RUNS), str(RATE)], text)
        attributes = {
            "MaxSize": f"{LIMIT}p",
            "MinTh": low,
            "MaxTh": high,
            "LInterm": 1 / most,
            "QW": weight,
            "MeanPktSize": 500,
            "IdlePktSize": 0,
            "LinkBandwidth": f"{RATE}bps",
            "LinkDelay": "20ms",
            "Gentle": gentle,
            "Wait": wait,
            "UseEcn": ecn,
        }
        words = [f"{key}={value}" for key, value in attributes.items()]
        theirs = fates([options.ns3, "ns3::RedQueueDisc", str(RUNS), str(RATE), *words], text)
        sums = [[sum(column) for column in zip(*side, strict=True)] for side in (ours, theirs)]
        statistic, blocks = chi_square(ours, theirs)
        all_ours, all_theirs = (side[0] + side[1] for side in sums)
        ratio = all_ours / all_theirs
        # Signals of a run hang together: so much more than counts by chance alone.
        error = math.sqrt(max(statistic / blocks, 1) * (1 / all_ours + 1 / all_theirs))
        if abs(math.log(ratio)) > 1.96 * error or statistic > blocks + 4 * math.sqrt(2 * blocks):
            differ.append(name)
        print(
            f"| {name} | {sums[0][0]}, {sums[0][1]} | {sums[1][0]}, {sums[1][1]} "
            f"| {ratio:.3f} [{ratio * math.exp(-1.96 * error):.3f}, "
            f"{ratio * math.exp(1.96 * error):.3f}] | {statistic:.0f} / {blocks} |"
        )
    return differ


def chi_square(ours: list[Fate], theirs: list[Fate]) -> tuple[float, int]:
    """Compare signals block by block; a block with few of them is left out."""
    statistic, blocks = 0.0, 0
    for start in range(0, PACKETS, BLOCK):
        for kind in (0, 1):
            a, b = (sum(p[kind] for p in side[start : start + BLOCK]) for side in (ours, theirs))
            if a + b >= 20:
                statistic += (a - b) ** 2 / (a + b)
                blocks += 1
    return statistic, max(blocks, 1)


def codel(options: argparse.Namespace) -> list[str]:
    """Print the table of CoDel and FQ-CoDel; give the cases that differ."""
    print("\n| case | dropped, marked | alike | dropped, ratio | marked | mean wait |")
    print("|---|---:|---:|---:|---:|---:|")
    differ = []
    for name, (spec, (kind, *attributes), flows, capable) in CODEL.items():
        sides: tuple[list[list[Fate]], list[list[Fate]]] = ([], [])
        for seed in SEEDS:
            text = arrivals(seed, CODEL_PACKETS, capable, flows)
            sides[0].append(fates([options.shortlane, spec, "1", str(RATE)], text))
            command = [options.ns3, f"ns3::{kind}QueueDisc", "1", str(RATE), *attributes, MTU]
            sides[1].append(fates(command, text))
        pairs = [pair for runs in zip(*sides, strict=True) for pair in zip(*runs, strict=True)]
        alike = sum(a[:2] == b[:2] for a, b in pairs) / len(pairs)
        columns, counts = [], []
        for column in range(3):
            ours, theirs = ([sum(p[column] for p in run) for run in side] for side in sides)
            counts.append(sum(ours))
            if not sum(ours) and not sum(theirs):
                columns.append("-")
                continue
            ratio, low, high = ratio_of_sums(ours, theirs)
            columns.append(f"{ratio:.3f} [{low:.3f}, {high:.3f}]")
            if low > 1 + TOLERANCE or high < 1 - TOLERANCE:
                differ.append(f"{name}, {('dropped', 'marked', 'wait')[column]}")
        told = f"{counts[0]}, {counts[1]} | {alike * 100:.2f} %"
        print(f"| {name} | {told} | {' | '.join(columns)} |", flush=True)
    return differ


def ratio_of_sums(ours: list[int], theirs: list[int]) -> tuple[float, float, float]:
    """The ratio of two sums over paired runs, and its 95 % interval (delta method)."""
    ratio = sum(ours) / sum(theirs)
    rest = [a - ratio * b for a, b in zip(ours, theirs, strict=True)]
    error = statistics.stdev(rest) / math.sqrt(len(rest)) / statistics.fmean(theirs)
    return ratio, ratio - 2.05 * error, ratio + 2.05 * error


if __name__ == "__main__":
    main()
