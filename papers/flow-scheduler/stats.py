"""The statistics of the flow scheduler paper's claims, beside the shared ones.

Sizes are in packets of 1000 bytes, begun ones counted; "small" is up to 20 of them. Only transfers
that start after the first 10 s count.
"""

from collections.abc import Sequence

import polars as pl
from shortlane.paper.shared import BOTTLENECK, SHARED
from shortlane.paper.statistics import (
    PerSeed,
    Sample,
    Statistic,
    Tables,
    by_seed,
    combine,
    ratio,
    statistic,
    transfers,
)

__all__ = [
    "PACKET",
    "SMALL",
    "STATISTICS",
    "WAITS",
    "WARM_UP",
    "counted",
    "occupancies",
    "size",
]

#: By name, for `paper.toml`.
STATISTICS: dict[str, Statistic] = dict(SHARED)

#: Payload of a full packet in bytes.
PACKET = 1000
#: What starts before this is in no statistic, in ns.
WARM_UP = 10_000_000_000
#: First and last size in packets of what the paper calls small.
SMALL = (1, 20)
#: What completion times are told by.
COMPLETION = ("kind", "index", "start_ns", "size_bytes", "completion_ns")


def size() -> pl.Expr:
    """The size of a transfer in packets."""
    return ((pl.col("size_bytes") + (PACKET - 1)) // PACKET).cast(pl.Int64)


def counted(
    flows: pl.DataFrame, scheduler: str, sizes: Sequence[int] | None = None
) -> pl.LazyFrame:
    """Transfers of one scheduler that start after the warm-up, of sizes in `[first, last]`."""
    chosen = transfers(flows, scheduler).filter(pl.col("start_ns") >= WARM_UP)
    return chosen if sizes is None else chosen.filter(size().is_between(sizes[0], sizes[1]))


def _complete(tables: Tables, scheduler: str, sizes: Sequence[int] | None) -> pl.LazyFrame:
    return counted(tables["flows"], scheduler, sizes).filter(pl.col("completion_ns").is_not_null())


def _complete_under_both(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int] | None
) -> pl.LazyFrame:
    """Completion times under one scheduler, and as `other_ns` those under another."""
    keys = ["seed", "index"]
    ours, others = (
        _complete(tables, one, sizes).select(*keys, "completion_ns") for one in (scheduler, to)
    )
    return ours.join(others.rename({"completion_ns": "other_ns"}), on=keys)


@statistic(STATISTICS, "completion-ratio", scale="ratio", unit="x", flows=COMPLETION)
def completion_ratio(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int] | None = None
) -> Sample:
    """Mean completion time under one scheduler over that under another.

    Of the transfers that are complete under both.
    """
    both = _complete_under_both(tables, scheduler, to, sizes)
    return PerSeed(by_seed(both, pl.col("completion_ns").mean() / pl.col("other_ns").mean()))


@statistic(STATISTICS, "completed-under-both", scale="plain", unit="transfers", flows=COMPLETION)
def completed_under_both(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int] | None = None
) -> Sample:
    """How many transfers of a run a ratio of completion times is over."""
    return PerSeed(by_seed(_complete_under_both(tables, scheduler, to, sizes), pl.len()))


@statistic(STATISTICS, "completion", scale="plain", unit="s", flows=COMPLETION)
def completion(tables: Tables, scheduler: str, sizes: Sequence[int] | None = None) -> Sample:
    """Mean completion time of a scheduler's complete transfers."""
    own = _complete(tables, scheduler, sizes)
    return PerSeed(by_seed(own, pl.col("completion_ns").mean() / 1e9))


@statistic(STATISTICS, "worst-completion-ratio", scale="ratio", unit="x", flows=COMPLETION)
def worst_completion_ratio(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int] = SMALL
) -> Sample:
    """Longest completion time under one scheduler over that under another."""
    longest = pl.col("completion_ns").max()
    return ratio(*(by_seed(_complete(tables, one, sizes), longest) for one in (scheduler, to)))


@statistic(STATISTICS, "worst-completion-at-some-size", scale="ratio", unit="x", flows=COMPLETION)
def worst_completion_at_some_size(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int] = SMALL
) -> Sample:
    """The same ratio for each size in packets by itself: the largest of them."""
    longest = [
        _complete(tables, one, sizes)
        .group_by("seed", size().alias("packets"))
        .agg(pl.col("completion_ns").max().alias(name))
        for one, name in ((scheduler, "ours"), (to, "others"))
    ]
    both = longest[0].join(longest[1], on=["seed", "packets"])
    return PerSeed(by_seed(both, (pl.col("ours") / pl.col("others")).max()))


#: What timeouts are counted of.
TIMEOUTS = ("kind", "start_ns", "size_bytes", "timeouts", "handshake_timeouts")


@statistic(STATISTICS, "small-timeouts-ratio", scale="ratio", unit="x", flows=TIMEOUTS)
def small_timeouts_ratio(
    tables: Tables, scheduler: str, to: str, *, handshake: bool = True
) -> Sample:
    """Timeouts of small transfers over those under another scheduler; none counts as one."""
    least_one = [
        combine(lambda count: max(count, 1.0), _small_timeouts(tables, one, handshake=handshake))
        for one in (scheduler, to)
    ]
    return ratio(*least_one)


@statistic(STATISTICS, "small-timeouts", scale="plain", unit="timeouts", flows=TIMEOUTS)
def small_timeouts(tables: Tables, scheduler: str, *, handshake: bool = True) -> Sample:
    """Timeouts of small transfers in a run, with or without those of SYN and SYN-ACK."""
    return PerSeed(_small_timeouts(tables, scheduler, handshake=handshake))


def _small_timeouts(tables: Tables, scheduler: str, *, handshake: bool) -> dict[int, float]:
    each = pl.col("timeouts")
    if handshake:
        each = each + pl.col("handshake_timeouts")
    return by_seed(counted(tables["flows"], scheduler, SMALL), each.sum())


#: What a lane's share of the packets is told by.
SERVED = ("kind", "start_ns", "sent_short_lane", "sent_long_lane")


@statistic(STATISTICS, "high-lane-share-ratio", scale="ratio", unit="x", flows=SERVED)
def high_lane_share_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Part of the packets that the high lane served, over that under another scheduler."""
    high = pl.col("sent_short_lane").sum()
    part = high / (high + pl.col("sent_long_lane").sum())
    return ratio(*(by_seed(counted(tables["flows"], one), part) for one in (scheduler, to)))


#: What the high lane's occupancy is told by.
WAITS = (*SERVED, "queueing_mean_ns")


@statistic(STATISTICS, "occupancy-ratio", scale="ratio", unit="x", flows=WAITS)
def occupancy_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Mean packets in the high lane over those under another scheduler.

    By Little's law, as for `occupancy`.
    """
    return ratio(*(_waiting(tables, one) for one in (scheduler, to)))


@statistic(STATISTICS, "largest-occupancy-ratio", scale="ratio", unit="x", flows=WAITS)
def largest_occupancy_ratio(tables: Tables, schedulers: Sequence[str], to: str) -> Sample:
    """The largest such ratio of some schedulers to one."""
    ratios = [ratio(_waiting(tables, one), _waiting(tables, to)) for one in schedulers]
    return PerSeed(combine(max, *(one.values for one in ratios)))


@statistic(
    STATISTICS,
    "occupancy",
    scale="plain",
    unit="packets",
    flows=WAITS,
    blocks=["duration_ns"],
)
def occupancy(tables: Tables, scheduler: str) -> Sample:
    """Mean packets in the high lane, by Little's law.

    What the lane sent a second, times the mean wait of the flows that were in no other lane: of a
    flow in both, the wait in one is not known.
    """
    return PerSeed(occupancies(tables, scheduler))


def occupancies(tables: Tables, scheduler: str) -> dict[int, float]:
    """The values of `occupancy` by seed."""
    ends = tables["blocks"].lazy().filter(pl.col("scheduler") == scheduler)
    lasts = by_seed(ends, pl.col("duration_ns").first() - WARM_UP)
    return combine(lambda waits, time: waits / time, _waiting(tables, scheduler), lasts)


def _waiting(tables: Tables, scheduler: str) -> dict[int, float]:
    """Packets times ns that the high lane's packets waited."""
    sent = pl.col("sent_short_lane")
    here = (pl.col("sent_long_lane") == 0) & (sent > 0)
    wait = (pl.col("queueing_mean_ns") * sent).filter(here).sum() / sent.filter(here).sum()
    return by_seed(counted(tables["flows"], scheduler), sent.sum() * wait)


@statistic(
    STATISTICS,
    "loss",
    scale="plain",
    unit="%",
    links=["link", "arrived_packets", "dropped_packets"],
)
def loss(tables: Tables, scheduler: str) -> Sample:
    """Part of the packets that the bottleneck dropped over the whole run, in percent."""
    own = tables["links"].lazy()
    own = own.filter(pl.col("scheduler") == scheduler, pl.col("link") == BOTTLENECK)
    lost = 100 * pl.col("dropped_packets").sum() / pl.col("arrived_packets").sum()
    return PerSeed(by_seed(own, lost))


@statistic(STATISTICS, "small-share", scale="plain", unit="", flows=COMPLETION)
def small_share(tables: Tables, scheduler: str) -> Sample:
    """Part of the complete transfers that is small."""
    return PerSeed(by_seed(_complete(tables, scheduler, None), (size() <= SMALL[1]).mean()))


@statistic(STATISTICS, "largest", scale="plain", unit="packets", flows=COMPLETION)
def largest(tables: Tables, scheduler: str) -> Sample:
    """The largest complete transfer."""
    return PerSeed(by_seed(_complete(tables, scheduler, None), size().max()))
