"""The statistics of what no paper has published on, beside the shared ones.

All are of flows that start after the first tenth and before four fifths of a run: the queue has
then filled, and what is not complete by the end has had its time.
"""

from collections.abc import Sequence

import polars as pl
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import (
    PerSeed,
    Sample,
    Statistic,
    Tables,
    by_seed,
    ratio,
    statistic,
)

__all__ = ["STATISTICS"]

#: By name, for `paper.toml`.
STATISTICS: dict[str, Statistic] = dict(SHARED)

#: What transfers are chosen by.
CHOSEN = ("kind", "traffic", "size_bytes", "start_ns")
#: The Poisson transfers of every scenario here.
LOAD = "transfers"
NEVER = float("inf")


#: Tables with the rows of each scheduler of them: thousands of values are taken of a few tables.
_SPLIT: list[tuple[pl.DataFrame, dict[str, pl.DataFrame]]] = []


def _of(frame: pl.DataFrame, scheduler: str) -> pl.LazyFrame:
    """The rows of one scheduler; the latest few tables are split once."""
    parts = next((parts for known, parts in _SPLIT if known is frame), None)
    if parts is None:
        parts = {
            str(name): part
            for (name,), part in frame.partition_by("scheduler", as_dict=True).items()
        }
        _SPLIT.append((frame, parts))
        del _SPLIT[:-4]
    return parts.get(scheduler, frame.clear()).lazy()


def settled(
    flows: pl.DataFrame, scheduler: str, between: Sequence[int] | None = None
) -> pl.LazyFrame:
    """The transfers of the load that count, of sizes in bytes if given."""
    chosen = _of(flows, scheduler).filter(pl.col("traffic") == LOAD)
    part = pl.col("start_ns") / pl.col("start_ns").max().over("seed")
    settled_ones = chosen.filter(part.is_between(0.1, 0.8))
    if between is None:
        return settled_ones
    return settled_ones.filter(pl.col("size_bytes").is_between(between[0], between[1]))


def _mean_or_quantile(values: pl.Expr, quantile: float | None) -> pl.Expr:
    """What never came is excluded from the mean, and lies beyond every quantile."""
    if quantile is None:
        return values.mean()
    return values.fill_null(NEVER).quantile(quantile, "higher")


@statistic(STATISTICS, "slowdown", scale="ratio", unit="x idle", flows=(*CHOSEN, "slowdown"))
def slowdown(
    tables: Tables, scheduler: str, between: Sequence[int], quantile: float | None = None
) -> Sample:
    """Completion time over that on an idle link: the mean, or a quantile."""
    chosen = settled(tables["flows"], scheduler, between)
    return PerSeed(by_seed(chosen, _mean_or_quantile(pl.col("slowdown"), quantile)))


@statistic(STATISTICS, "slowdown-ratio", scale="ratio", unit="x", flows=(*CHOSEN, "slowdown"))
def slowdown_ratio(tables: Tables, scheduler: str, to: str, between: Sequence[int]) -> Sample:
    """Mean slowdown under one scheduler over that under another."""
    chosen = (settled(tables["flows"], one, between) for one in (scheduler, to))
    return ratio(*(by_seed(one, pl.col("slowdown").mean()) for one in chosen))


@statistic(STATISTICS, "incomplete", scale="plain", unit="%", flows=(*CHOSEN, "complete"))
def incomplete(tables: Tables, scheduler: str, between: Sequence[int] | None = None) -> Sample:
    """Transfers that are not complete at the end of the run, in percent."""
    chosen = settled(tables["flows"], scheduler, between)
    return PerSeed(by_seed(chosen, 100 * (~pl.col("complete")).mean()))


@statistic(STATISTICS, "connect-wait", scale="plain", unit="ms", flows=(*CHOSEN, "connect_ns"))
def connect_wait(tables: Tables, scheduler: str, quantile: float | None = None) -> Sample:
    """How much longer a handshake takes than the fastest one at this point did."""
    took = (pl.col("connect_ns") - pl.col("start_ns")) / 1e6
    least = tables["flows"].lazy().filter(pl.col("traffic") == LOAD).select(took.min())
    wait = took - least.collect().item()
    return PerSeed(by_seed(settled(tables["flows"], scheduler), _mean_or_quantile(wait, quantile)))


@statistic(STATISTICS, "ping-wait", scale="plain", unit="ms", probes=["stream", "delay_ns"])
def ping_wait(tables: Tables, scheduler: str, quantile: float | None = None) -> Sample:
    """How much longer a packet of the ping takes than the fastest one at this point did."""
    probes = tables["probes"]
    least = probes["delay_ns"].min()
    mine = _of(probes, scheduler).filter(pl.col("stream") == "ping")
    wait = (pl.col("delay_ns") - pl.lit(least)) / 1e6
    return PerSeed(by_seed(mine, _mean_or_quantile(wait, quantile)))


@statistic(
    STATISTICS,
    "reordered",
    scale="plain",
    unit="%",
    flows=(*CHOSEN, "reordered_packets", "sent_short_lane", "sent_long_lane"),
)
def reordered(tables: Tables, scheduler: str, between: Sequence[int] | None = None) -> Sample:
    """Packets that left behind a later one of their flow, in percent of those sent."""
    sent = pl.col("sent_short_lane").sum() + pl.col("sent_long_lane").sum()
    part = 100 * pl.col("reordered_packets").sum() / sent
    return PerSeed(by_seed(settled(tables["flows"], scheduler, between), part))


@statistic(
    STATISTICS, "reordered-flows", scale="plain", unit="%", flows=(*CHOSEN, "reordered_packets")
)
def reordered_flows(tables: Tables, scheduler: str, between: Sequence[int] | None = None) -> Sample:
    """Transfers with at least one such packet, in percent."""
    part = 100 * (pl.col("reordered_packets") > 0).mean()
    return PerSeed(by_seed(settled(tables["flows"], scheduler, between), part))


@statistic(
    STATISTICS,
    "resent",
    scale="plain",
    unit="%",
    flows=(*CHOSEN, "packets", "dropped_packets", "retransmissions"),
)
def resent(
    tables: Tables,
    scheduler: str,
    between: Sequence[int] | None = None,
    *,
    beyond_drops: bool = False,
) -> Sample:
    """Segments that TCP sent again, in percent of what arrived; or less what had been dropped."""
    again = pl.col("retransmissions").sum()
    if beyond_drops:
        again = again.cast(pl.Int64) - pl.col("dropped_packets").sum().cast(pl.Int64)
    part = 100 * again / pl.col("packets").sum()
    return PerSeed(by_seed(settled(tables["flows"], scheduler, between), part))


@statistic(
    STATISTICS, "dropped", scale="plain", unit="%", flows=(*CHOSEN, "packets", "dropped_packets")
)
def dropped(tables: Tables, scheduler: str, between: Sequence[int] | None = None) -> Sample:
    """Packets that the bottleneck dropped, in percent of those that arrived."""
    part = 100 * pl.col("dropped_packets").sum() / pl.col("packets").sum()
    return PerSeed(by_seed(settled(tables["flows"], scheduler, between), part))


@statistic(
    STATISTICS,
    "short-lane",
    scale="plain",
    unit="%",
    flows=(*CHOSEN, "sent_short_lane", "sent_long_lane"),
)
def short_lane(tables: Tables, scheduler: str, between: Sequence[int] | None = None) -> Sample:
    """Packets that left by the short lane, in percent of those sent."""
    short, long = pl.col("sent_short_lane").sum(), pl.col("sent_long_lane").sum()
    chosen = settled(tables["flows"], scheduler, between)
    return PerSeed(by_seed(chosen, 100 * short / (short + long)))


@statistic(
    STATISTICS, "short-packets", scale="plain", unit="packets", flows=(*CHOSEN, "sent_short_lane")
)
def short_packets(tables: Tables, scheduler: str, between: Sequence[int]) -> Sample:
    """Packets of a transfer that left by the short lane: of a large one, its threshold."""
    chosen = settled(tables["flows"], scheduler, between)
    return PerSeed(by_seed(chosen, pl.col("sent_short_lane").mean()))


@statistic(
    STATISTICS, "fragments", scale="plain", unit="", flows=(*CHOSEN, "complete", "fragments")
)
def fragments(tables: Tables, scheduler: str, between: Sequence[int]) -> Sample:
    """Entries that a complete transfer had in the flow table, one after another."""
    chosen = settled(tables["flows"], scheduler, between).filter(pl.col("complete"))
    return PerSeed(by_seed(chosen, pl.col("fragments").mean()))


@statistic(STATISTICS, "stall-quantile", scale="plain", unit="s", flows=(*CHOSEN, "stall_max_ns"))
def stall_quantile(
    tables: Tables, scheduler: str, between: Sequence[int], quantile: float
) -> Sample:
    """A quantile of the longest wait of a transfer for a new byte."""
    chosen = settled(tables["flows"], scheduler, between)
    return PerSeed(by_seed(chosen, pl.col("stall_max_ns").quantile(quantile, "higher") / 1e9))


#: What downloads in pieces are told by.
PIECES = ("traffic", "start_ns", "planned_ns", "end_ns")


@statistic(STATISTICS, "download-time", scale="ratio", unit="s", flows=PIECES)
def download_time(tables: Tables, scheduler: str, traffic: str) -> Sample:
    """From the start of a download to the end of its last piece, on average."""
    return PerSeed(_download_times(tables, scheduler, traffic))


@statistic(STATISTICS, "download-ratio", scale="ratio", unit="x", flows=PIECES)
def download_ratio(tables: Tables, scheduler: str, traffic: str, whole: str) -> Sample:
    """The same over that at the point `whole`, where nothing comes in pieces."""
    split = _download_times(tables, scheduler, traffic)
    return ratio(split, _download_times(tables.at(whole), scheduler, traffic))


def _download_times(tables: Tables, scheduler: str, traffic: str) -> dict[int, float]:
    pieces = _of(tables["flows"], scheduler).filter(pl.col("traffic") == traffic)
    last = pl.when(pl.col("end_ns").is_null().any()).then(None).otherwise(pl.col("end_ns").max())
    rounds = pieces.group_by("seed", "planned_ns").agg(took=(last - pl.col("start_ns").min()) / 1e9)
    return by_seed(rounds, pl.col("took").mean())


@statistic(STATISTICS, "bytes-share", scale="plain", unit="%", flows=["traffic", "received_bytes"])
def bytes_share(tables: Tables, scheduler: str, traffic: str, other: str) -> Sample:
    """What one traffic received of what two did, in percent."""
    flows = _of(tables["flows"], scheduler)
    both = flows.filter(pl.col("traffic").is_in([traffic, other]))
    received = pl.col("received_bytes")
    mine = received.filter(pl.col("traffic") == traffic).sum()
    return PerSeed(by_seed(both, 100 * mine / received.sum()))
