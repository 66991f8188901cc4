"""The statistics of the LAS paper's claims, beside the shared ones.

What a connection gets is what its receiver has in order, from table `progress`; of a stream, the
packets that arrive, from table `probes`.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, pstdev

import polars as pl
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import (
    PerSeed,
    Sample,
    Statistic,
    Tables,
    by_seed,
    combine,
    ratio,
    statistic,
)

__all__ = ["STATISTICS", "received"]

#: By name, for `paper.toml`.
STATISTICS: dict[str, Statistic] = dict(SHARED)

#: What is known of a connection over time.
PROGRESS = ("traffic", "t_ns", "received_bytes")
#: Bytes of a packet, and of its payload.
PACKET, PAYLOAD = 1000, 960

#: What connections have received by each of some times.
Curves = dict[str, list[int]]


def received(
    progress: pl.DataFrame, scheduler: str, names: Sequence[str], times: Sequence[float]
) -> dict[int, Curves]:
    """The bytes that each connection has received by each time (in seconds), by seed."""
    chosen = progress.filter(
        pl.col("scheduler") == scheduler, pl.col("traffic").is_in(list(names))
    ).sort("t_ns")
    found: dict[int, Curves] = {}
    for (seed, name), rows in chosen.group_by("seed", "traffic", maintain_order=True):
        at, amount = rows["t_ns"].to_list(), [0, *rows["received_bytes"].to_list()]
        curve = [amount[bisect_right(at, time * 1e9)] for time in times]
        found.setdefault(int(str(seed)), {})[str(name)] = curve
    nothing = [0] * len(times)
    return {seed: {name: one.get(name, nothing) for name in names} for seed, one in found.items()}


#: Two connections, the one that is spoken of first.
Pair = Sequence[str]
#: From when to when, in seconds.
Span = Sequence[float]


@statistic(STATISTICS, "share", scale="plain", unit="", progress=PROGRESS)
def share(tables: Tables, scheduler: str, pair: Pair, span: Span) -> Sample:
    """What the first of two connections receives in a span, as part of what both do."""
    return PerSeed(_share(tables, scheduler, pair, span))


@statistic(STATISTICS, "share-distance", scale="plain", unit="", progress=PROGRESS)
def share_distance(tables: Tables, scheduler: str, pair: Pair, to: Pair, span: Span) -> Sample:
    """How far the share of the first of a pair is from that in another pair."""
    shares = (_share(tables, scheduler, one, span) for one in (pair, to))
    return PerSeed(combine(lambda a, b: abs(a - b), *shares))


def _share(tables: Tables, scheduler: str, pair: Pair, span: Span) -> dict[int, float]:
    def part(curves: Curves) -> float | None:
        own, other = (curves[name][1] - curves[name][0] for name in pair)
        return own / (own + other) if own + other else None

    return combine(part, received(tables["progress"], scheduler, pair, span))


@statistic(STATISTICS, "imbalance", scale="plain", unit="%", progress=PROGRESS)
def imbalance(tables: Tables, scheduler: str, pair: Pair, end: float) -> Sample:
    """By how much two connections differ in all that they have received, in percent of both."""

    def part(curves: Curves) -> float | None:
        own, other = (curves[name][0] for name in pair)
        return 100 * abs(own - other) / (own + other) if own + other else None

    return PerSeed(combine(part, received(tables["progress"], scheduler, pair, (end,))))


@statistic(STATISTICS, "ahead", scale="plain", unit="%", progress=PROGRESS)
def ahead(tables: Tables, scheduler: str, pair: Pair, span: Span) -> Sample:
    """Part of the seconds of a span after which the first has received more in all."""
    return PerSeed(combine(lambda leads: 100 * fmean(leads), _leads(tables, scheduler, pair, span)))


@statistic(STATISTICS, "meetings", scale="plain", unit="times", progress=PROGRESS)
def meetings(tables: Tables, scheduler: str, pair: Pair, span: Span) -> Sample:
    """How often in a span the one that has received more in all changes."""

    def count(leads: Sequence[bool]) -> float:
        return sum(before != after for before, after in pairwise(leads))

    return PerSeed(combine(count, _leads(tables, scheduler, pair, span)))


def _leads(tables: Tables, scheduler: str, pair: Pair, span: Span) -> dict[int, list[bool]]:
    """Whether the first of two has received more in all, second by second."""
    curves = received(tables["progress"], scheduler, pair, _steps(span, 1))
    return {
        seed: [own > other for own, other in zip(*one.values(), strict=True)]
        for seed, one in curves.items()
    }


@statistic(STATISTICS, "reversals", scale="plain", unit="times", progress=PROGRESS)
def reversals(
    tables: Tables, scheduler: str, pair: Pair, span: Span, *, window: float, part: float
) -> Sample:
    """How often the faster of two becomes the slower: from a share of at least `part` to the rest.

    Shares are of windows of so many seconds; those in between are passed over.
    """

    def count(curves: Curves) -> float:
        own, other = ([after - before for before, after in pairwise(curves[name])] for name in pair)
        shares = [a / (a + b) if a + b else 0.5 for a, b in zip(own, other, strict=True)]
        faster = [one >= part for one in shares if not 1 - part < one < part]
        return sum(before != after for before, after in pairwise(faster))

    return PerSeed(
        combine(count, received(tables["progress"], scheduler, pair, _steps(span, window)))
    )


def _steps(span: Span, step: float) -> list[float]:
    return [span[0] + place * step for place in range(int((span[1] - span[0]) / step) + 1)]


@statistic(STATISTICS, "variation-ratio", scale="ratio", unit="x", progress=PROGRESS)
def variation_ratio(tables: Tables, scheduler: str, to: str, of: str, span: Span) -> Sample:
    """Coefficient of variation of throughput by the second, over that under another scheduler."""
    return ratio(*(_variation(tables, one, of, span) for one in (scheduler, to)))


@statistic(STATISTICS, "variation", scale="plain", unit="", progress=PROGRESS)
def variation(tables: Tables, scheduler: str, of: str, span: Span) -> Sample:
    """Coefficient of variation of throughput by the second."""
    return PerSeed(_variation(tables, scheduler, of, span))


def _variation(tables: Tables, scheduler: str, of: str, span: Span) -> dict[int, float]:
    def coefficient(curves: Curves) -> float | None:
        rates = [after - before for before, after in pairwise(curves[of])]
        return pstdev(rates) / fmean(rates) if any(rates) else None

    return combine(coefficient, received(tables["progress"], scheduler, [of], _steps(span, 1)))


#: What is known of a stream over time.
PROBES = ("stream", "sent_ns", "delay_ns")


@statistic(STATISTICS, "stream-goodput", scale="ratio", unit="of its rate", probes=PROBES)
def stream_goodput(tables: Tables, scheduler: str, of: str, rate: float, span: Span) -> Sample:
    """What arrives of a stream in a span, over its rate in bit/s."""
    sent = rate * (span[1] - span[0]) / (8 * PACKET)
    arrived = _stream_packets(tables, scheduler, of, span)
    return PerSeed(combine(lambda packets: packets / sent, arrived))


@statistic(
    STATISTICS, "connection-to-stream", scale="ratio", unit="x", progress=PROGRESS, probes=PROBES
)
def connection_to_stream(tables: Tables, scheduler: str, of: str, to: str, span: Span) -> Sample:
    """What a connection receives in a span over what a stream does, in packets of one size."""
    curves = received(tables["progress"], scheduler, [of], span)
    own = combine(lambda one: (one[of][1] - one[of][0]) / PAYLOAD, curves)
    return ratio(own, _stream_packets(tables, scheduler, to, span))


def _stream_packets(tables: Tables, scheduler: str, of: str, span: Span) -> dict[int, float]:
    arrived = pl.col("sent_ns") + pl.col("delay_ns")
    chosen = (
        tables["probes"]
        .lazy()
        .filter(
            pl.col("scheduler") == scheduler,
            pl.col("stream") == of,
            arrived.is_between(span[0] * 1e9, span[1] * 1e9, closed="left"),
        )
    )
    return by_seed(chosen, pl.len())


#: What is known of a connection's packets.
PACKETS = ("traffic", "packets", "dropped_packets")


@statistic(STATISTICS, "lost-ratio", scale="ratio", unit="x", flows=PACKETS)
def lost_ratio(tables: Tables, scheduler: str, to: str, of: Sequence[str]) -> Sample:
    """Packets that some connections lose, over those under another scheduler."""
    return ratio(*(_sum(tables, one, of, "dropped_packets") for one in (scheduler, to)))


@statistic(STATISTICS, "lost", scale="plain", unit="packets", flows=PACKETS)
def lost(tables: Tables, scheduler: str, of: Sequence[str]) -> Sample:
    """Packets that some connections lose."""
    return PerSeed(_sum(tables, scheduler, of, "dropped_packets"))


@statistic(STATISTICS, "sent", scale="plain", unit="packets", flows=PACKETS)
def sent(tables: Tables, scheduler: str, of: Sequence[str]) -> Sample:
    """Packets that some connections send."""
    return PerSeed(_sum(tables, scheduler, of, "packets"))


def _sum(tables: Tables, scheduler: str, of: Sequence[str], column: str) -> dict[int, float]:
    flows = tables["flows"].lazy()
    chosen = flows.filter(pl.col("scheduler") == scheduler, pl.col("traffic").is_in(list(of)))
    return by_seed(chosen, pl.col(column).sum())


@statistic(
    STATISTICS, "throughput-ratio", scale="ratio", unit="x", flows=["traffic", "received_bytes"]
)
def throughput_ratio(
    tables: Tables, scheduler: str, to: str, of: str, to_point: str = ""
) -> Sample:
    """What a connection receives, over that under another scheduler, or at another point."""
    there = tables.at(to_point) if to_point else tables
    amounts = [
        _sum(at, one, [of], "received_bytes") for at, one in ((tables, scheduler), (there, to))
    ]
    return ratio(*amounts)


@statistic(
    STATISTICS,
    "throughput",
    scale="plain",
    unit="kbit/s",
    flows=["traffic", "received_bytes", "start_ns"],
    blocks=["duration_ns"],
)
def throughput(tables: Tables, scheduler: str, of: str) -> Sample:
    """What a connection receives, from its start to the end of the run."""
    ends, flows = (
        tables[name].lazy().filter(pl.col("scheduler") == scheduler) for name in ("blocks", "flows")
    )
    own = flows.filter(pl.col("traffic") == of).join(ends, on="seed")
    lasts = (pl.col("duration_ns") - pl.col("start_ns")).sum()
    return PerSeed(by_seed(own, pl.col("received_bytes").sum() * 8e6 / lasts))


#: What is known of a connection's losses over time.
LOSSES = ("traffic", "t_ns", "packets", "dropped_packets")


@statistic(STATISTICS, "loss-ratio", scale="ratio", unit="x", flows=PACKETS)
def loss_ratio(tables: Tables, scheduler: str, to: str, of: str) -> Sample:
    """The part of its packets that a connection loses, over that under another scheduler."""
    return ratio(*(_loss(tables, one, of) for one in (scheduler, to)))


@statistic(STATISTICS, "loss", scale="plain", unit="%", flows=PACKETS)
def loss(tables: Tables, scheduler: str, of: str) -> Sample:
    """The part of its packets that a connection loses, in percent."""
    return PerSeed(combine(lambda part: 100 * part, _loss(tables, scheduler, of)))


def _loss(tables: Tables, scheduler: str, of: str) -> dict[int, float]:
    parts = [_sum(tables, scheduler, [of], name) for name in ("dropped_packets", "packets")]
    return combine(lambda dropped, packets: dropped / packets if packets else None, *parts)


@statistic(STATISTICS, "window-loss-difference", scale="plain", unit="points", progress=LOSSES)
def window_loss_difference(
    tables: Tables, scheduler: str, other: str, of: str, *, window: float, start: float
) -> Sample:
    """How much two schedulers differ in a connection's loss in a window, on average over windows.

    In percentage points, whichever is more.
    """
    parts = [
        window_losses(tables["progress"], one, of, window, start) for one in (scheduler, other)
    ]

    def mean(ours: Mapping[int, float], others: Mapping[int, float]) -> float | None:
        both = [abs(ours[place] - others[place]) for place in ours if place in others]
        return fmean(both) if both else None

    return PerSeed(combine(mean, *parts))


def window_losses(
    progress: pl.DataFrame, scheduler: str, of: str, window: float, start: float
) -> dict[int, dict[int, float]]:
    """The loss of a connection in percent in each window of so many seconds, by seed and window."""
    place = ((pl.col("t_ns") / 1e9 - start) // window).cast(pl.Int64)
    counts = (
        progress.lazy()
        .filter(pl.col("scheduler") == scheduler, pl.col("traffic") == of)
        .group_by("seed", place.alias("place"))
        .agg(pl.col("packets", "dropped_packets").max())
        .sort("seed", "place")
        .with_columns(
            pl.col(name).diff().over("seed").fill_null(pl.col(name))
            for name in ("packets", "dropped_packets")
        )
        .filter(pl.col("place") >= 0, pl.col("packets") > 0)
        .collect()
    )
    found: dict[int, dict[int, float]] = {}
    columns = counts.select("seed", "place", "packets", "dropped_packets")
    for seed, at, packets, dropped in columns.iter_rows():
        found.setdefault(seed, {})[at] = 100 * dropped / packets
    return found
