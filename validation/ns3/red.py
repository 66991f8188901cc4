#!/usr/bin/env python3
"""RED against ns-3's RedQueueDisc on the same arrivals, both alone in front of a link.

    validation/ns3/red.py --ns3 target/ns3/red --shortlane target/debug/examples/behind_a_link

The dice differ, so a run cannot be the same; what is compared is how often each packet is dropped
(or marked) over many runs with the same arrivals. Bursts of a Poisson process with load 0.7 to 1.3
fill the queue and leave it idle in turn. For each case the table has the packets signalled to in
all runs by either, the ratio of the two with a 95 % interval (binomial, over-dispersed by what the
runs of blocks of packets show), and the statistic of a chi-square test over blocks of 50 packets.
"""

import argparse
import math
import random
import subprocess
import sys

RATE = 10_000_000
LIMIT = 300
RUNS = 100
PACKETS = 4_000
BLOCK = 50

#: min, max, max-probability, averaging, gentle, wait, ecn, part of the packets that are capable.
CASES = {
    "slides": (45, 150, 0.1, 1 / 512, 1, 1, 0, 0.0),
    "ns-2, 1993": (5, 15, 0.1, 0.002, 0, 0, 0, 0.0),
    "gentle, no wait": (5, 15, 0.1, 0.02, 1, 0, 0, 0.0),
    "gentle, wait": (5, 15, 0.1, 0.02, 1, 1, 0, 0.0),
    "fast average": (10, 60, 0.5, 0.25, 1, 1, 0, 0.0),
    "ECN, half of them": (10, 140, 0.3, 0.02, 1, 1, 1, 0.5),
}


def arrivals(seed: int, capable: float) -> list[tuple[int, int, int]]:
    """Give packets of 500 and 1500 bytes, in spells of 0.7 to 1.3 times the link's rate."""
    dice = random.Random(seed)
    packets, now, load = [], 0.0, 1.0
    for index in range(PACKETS):
        if index % 200 == 0:
            load = dice.choice([0.5, 0.9, 1.1, 1.3])
        size = dice.choice([500, 1500, 1500])
        now += dice.expovariate(load * RATE / 8 / 1167)
        packets.append((round(now * 1e9), size, int(dice.random() < capable)))
    return packets


def fates(command: list[str], text: str) -> list[tuple[int, int]]:
    """Run a side; give how often each packet was dropped and marked."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return [(int(dropped), int(marked)) for dropped, marked in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ns3", required=True, help="red.cc, compiled")
    parser.add_argument("--shortlane", required=True, help="the example behind_a_link")
    options = parser.parse_args()
    print("| case | ours: dropped, marked | ns-3 | ratio | chi-square / blocks |")
    print("|---|---:|---:|---:|---:|")
    differ = []
    for name, case in CASES.items():
        low, high, most, weight, gentle, wait, ecn, capable = case
        packets = arrivals(1, capable)
        text = "".join(f"{time} {size} {can}\n" for time, size, can in packets)
        word = ["no", "yes"]
        spec = (
            f"red:limit={LIMIT}packets,min={low}packets,max={high}packets,max-probability={most},"
            f"averaging={weight:.9f},gentle={word[gentle]},wait={word[wait]},ecn={word[ecn]}"
        )
        ours = fates([options.shortlane, spec, str(RUNS), str(RATE)], text)
        flags = [str(flag) for flag in (gentle, wait, ecn)]
        numbers = [RUNS, RATE, LIMIT, low, high, most, weight, 500]
        theirs = fates([options.ns3, *map(str, numbers), *flags], text)
        sums = [[sum(column) for column in zip(*side, strict=True)] for side in (ours, theirs)]
        statistic, blocks = chi_square(ours, theirs)
        all_ours, all_theirs = (sum(side) for side in sums)
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
    if differ:
        sys.exit(f"differ: {', '.join(differ)}")


def chi_square(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> tuple[float, int]:
    """Compare signals block by block; a block with few of them is left out."""
    statistic, blocks = 0.0, 0
    for start in range(0, PACKETS, BLOCK):
        for kind in (0, 1):
            a, b = (sum(p[kind] for p in side[start : start + BLOCK]) for side in (ours, theirs))
            if a + b >= 20:
                statistic += (a - b) ** 2 / (a + b)
                blocks += 1
    return statistic, max(blocks, 1)


if __name__ == "__main__":
    main()
