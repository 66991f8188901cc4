"""What is simulated: the cases, and the lists of transfers they share."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

RATE_BPS = 10_000_000
ACCESS_BPS = 100_000_000
ACCESS_DELAY_MS = 1
PAIRS = 5
MSS = 1448
# IPv4 and TCP headers with timestamps, and the 2 bytes of PPP that ns-3 sends with every packet.
HEADER = 54
# Full segments: 64 kB. Above that, ns-3.37's proportional rate reduction overflows.
WINDOW = 44
ZIPF = 1.1
LARGEST = 1000  # packets
# Time for the last transfers to end after the last arrival, SYN timeouts of 3+6+12+24 s included.
DRAIN_S = 200

# Name and largest size in packets of each class of transfers.
CLASSES = (("short", 20), ("medium", 200), ("long", LARGEST))


@dataclass(frozen=True)
class Case:
    queue: str  # fifo, codel or fq-codel
    tcp: str  # newreno, newreno-sack, cubic, or newreno-unlimited: without limited transmit
    load: float
    buffer: int  # packets
    rtt_ms: int

    def delay_ms(self) -> int:
        """Of the bottleneck: the rest of the way there and back is four access links."""
        return self.rtt_ms // 2 - 2 * ACCESS_DELAY_MS

    def name(self) -> str:
        return f"{self.queue}-{self.tcp}-load{self.load}-buffer{self.buffer}-rtt{self.rtt_ms}"


TCPS = ("newreno", "newreno-sack", "cubic")


def full() -> list[Case]:
    axes = [
        *itertools.product(["fifo"], TCPS, [0.8], [50, 300], [6, 40]),
        *itertools.product(["fifo"], TCPS, [0.5], [50], [40]),
        *itertools.product(["fifo"], TCPS, [1.2], [50], [6]),
        *itertools.product(["codel", "fq-codel"], TCPS, [0.8], [300], [6, 40]),
    ]
    return [Case(*values) for values in axes]


def control() -> list[Case]:
    return [
        Case("fifo", "newreno-sack", 0.8, 50, 6),
        Case("codel", "newreno-sack", 0.8, 300, 6),
    ]


# Offered loads beyond those of full(), where connections back off for as long as the list lasts.
OVERLOADS = (1.5, 2.0)


def overload() -> list[Case]:
    """The TCPs, and NewReno once more with limited transmit off on both sides (see causes.py)."""
    axes = itertools.product(OVERLOADS, (*TCPS, "newreno-unlimited"))
    return [Case("fifo", tcp, load, 300, 6) for load, tcp in axes]


def overload_control() -> list[Case]:
    return [Case("fifo", tcp, OVERLOADS[0], 300, 6) for tcp in TCPS]


def quick() -> list[Case]:
    return [
        Case("fifo", "newreno-sack", 0.8, 50, 6),
        Case("fifo", "newreno-sack", 0.8, 300, 40),
        Case("fifo", "newreno", 0.8, 50, 40),
        Case("fifo", "cubic", 1.2, 50, 6),
        Case("codel", "newreno-sack", 0.8, 300, 6),
        Case("fq-codel", "cubic", 0.8, 300, 40),
    ]


@dataclass(frozen=True)
class Transfer:
    start_ns: int
    packets: int


def transfers(load: float, seconds: float, seed: int) -> list[Transfer]:
    """Poisson arrivals of transfers whose size in packets is Zipf on 1..LARGEST."""
    chance = random.Random(seed)
    weights = [size**-ZIPF for size in range(1, LARGEST + 1)]
    cumulative = list(itertools.accumulate(weights))
    mean = sum(size * w for size, w in enumerate(weights, 1)) / cumulative[-1]
    per_second = load * RATE_BPS / (mean * (MSS + HEADER) * 8)
    result: list[Transfer] = []
    now = chance.expovariate(per_second)
    while now < seconds:
        (size,) = chance.choices(range(1, LARGEST + 1), cum_weights=cumulative)
        result.append(Transfer(round(now * 1e9), size))
        now += chance.expovariate(per_second)
    return result


def write_transfers(path: Path, listed: list[Transfer]) -> None:
    rows = [f"{t.start_ns / 1e9:.9f},{t.packets * MSS}\n" for t in listed]
    path.write_text("start_s,size_bytes\n" + "".join(rows), encoding="utf-8")
