"""Statistics that claims of several papers are judged by."""

import math
from collections.abc import Sequence

import polars as pl

from shortlane.paper.statistics import (
    PerSeed,
    Sample,
    Statistic,
    Tables,
    by_seed,
    combine,
    ratio,
    size_between,
    statistic,
    transfers,
)

__all__ = ["SHARED"]

#: By name, for `paper.toml`.
SHARED: dict[str, Statistic] = {}

#: The link that schedulers are compared at.
BOTTLENECK = "bottleneck"


@statistic(
    SHARED,
    "response-ratio",
    scale="ratio",
    unit="x",
    flows=["kind", "size_bytes", "completion_ns"],
)
def response_ratio(tables: Tables, scheduler: str, to: str, sizes: Sequence[int]) -> Sample:
    """Mean response time of one scheduler's complete transfers over that of another's.

    Each mean is over what is complete under that scheduler, as in the paper's figures.
    """
    return ratio(*(_response(tables["flows"], one, sizes) for one in (scheduler, to)))


@statistic(
    SHARED,
    "response-distance",
    scale="plain",
    unit="",
    flows=["kind", "size_bytes", "completion_ns"],
)
def response_distance(
    tables: Tables, scheduler: str, other: str, to: str, sizes: Sequence[int]
) -> Sample:
    """How much further than `other` a scheduler's mean response is from that of `to`.

    In units of the natural logarithm; below 0 it is closer.
    """
    means = [_response(tables["flows"], one, sizes) for one in (scheduler, other, to)]
    return PerSeed(combine(lambda a, b, c: abs(math.log(a / c)) - abs(math.log(b / c)), *means))


def _response(flows: pl.DataFrame, scheduler: str, sizes: Sequence[int]) -> dict[int, float]:
    chosen = transfers(flows, scheduler).filter(size_between(sizes))
    return by_seed(chosen, pl.col("completion_ns").mean())


@statistic(
    SHARED, "completed-ratio", scale="ratio", unit="x", flows=["kind", "size_bytes", "complete"]
)
def completed_ratio(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int] | None = None
) -> Sample:
    """Transfers completed under one scheduler over those under another."""
    counts = [
        by_seed(
            transfers(tables["flows"], one).filter(size_between(sizes)), pl.col("complete").sum()
        )
        for one in (scheduler, to)
    ]
    return ratio(*counts)


@statistic(SHARED, "utilisation-ratio", scale="ratio", unit="x", links=["link", "utilisation"])
def utilisation_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """The bottleneck's utilisation under one scheduler over that under another."""
    return ratio(*(_of_link(tables, one, "utilisation") for one in (scheduler, to)))


@statistic(SHARED, "table-ratio", scale="ratio", unit="x", links=["link", "flow_entries_mean"])
def table_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Time-mean entries of one scheduler's flow table over that of another's, after the warm-up."""
    return ratio(*(_of_link(tables, one, "flow_entries_mean") for one in (scheduler, to)))


@statistic(SHARED, "table-mean", scale="plain", unit="entries", links=["link", "flow_entries_mean"])
def table_mean(tables: Tables, scheduler: str) -> Sample:
    """Time-mean entries of the flow table."""
    return PerSeed(_of_link(tables, scheduler, "flow_entries_mean"))


@statistic(SHARED, "table-p99", scale="plain", unit="entries", links=["link", "flow_entries_p99"])
def table_p99(tables: Tables, scheduler: str) -> Sample:
    """What the flow table does not exceed 99 % of the time after the warm-up."""
    return PerSeed(_of_link(tables, scheduler, "flow_entries_p99"))


@statistic(SHARED, "table-peak", scale="plain", unit="entries", links=["link", "flow_entries_peak"])
def table_peak(tables: Tables, scheduler: str) -> Sample:
    """Most entries in the flow table."""
    return PerSeed(_of_link(tables, scheduler, "flow_entries_peak"))


@statistic(
    SHARED,
    "entries-beyond-backlog",
    scale="plain",
    unit="events",
    links=["link", "flow_entries_beyond_backlog"],
)
def entries_beyond_backlog(tables: Tables, scheduler: str) -> Sample:
    """Arrivals and departures after which the table had more entries than the queue packets."""
    return PerSeed(_of_link(tables, scheduler, "flow_entries_beyond_backlog"))


def _of_link(tables: Tables, scheduler: str, column: str) -> dict[int, float]:
    links = tables["links"].lazy()
    chosen = links.filter(pl.col("scheduler") == scheduler, pl.col("link") == BOTTLENECK)
    return by_seed(chosen, pl.col(column).first())


#: What a wait is told by.
STALLS = ("kind", "index", "size_bytes", "start_ns", "stall_max_ns")


@statistic(SHARED, "stall-ratio", scale="ratio", unit="x", flows=STALLS)
def stall_ratio(tables: Tables, scheduler: str, to: str, largest: int) -> Sample:
    """Longest wait for a new byte among the largest transfers, over that under another."""
    return ratio(*(_stall(tables, one, largest) for one in (scheduler, to)))


@statistic(SHARED, "stall-part", scale="ratio", unit="x", flows=STALLS)
def stall_part(tables: Tables, scheduler: str, to: str, largest: int, half_life: float) -> Sample:
    """The same wait over the larger of two half-lives (in seconds) and twice that under another."""
    ours, others = (_stall(tables, one, largest) for one in (scheduler, to))
    return PerSeed(combine(lambda own, other: own / max(2 * half_life, 2 * other), ours, others))


@statistic(SHARED, "stall", scale="ratio", unit="s", flows=STALLS)
def stall(tables: Tables, scheduler: str, largest: int) -> Sample:
    """Longest wait for a new byte among the largest transfers."""
    return PerSeed(_stall(tables, scheduler, largest))


def _stall(tables: Tables, scheduler: str, largest: int) -> dict[int, float]:
    """Of transfers that start after 5 % and before 75 % of the run, so that all can get on.

    Of equal ones the earliest, so that they are those of table `progress`.
    """
    part = pl.col("start_ns") / pl.col("start_ns").max().over("seed")
    settled = transfers(tables["flows"], scheduler).filter(part.is_between(0.05, 0.75))
    order = settled.sort(["seed", "size_bytes", "index"], descending=[False, True, False])
    chosen = order.group_by("seed", maintain_order=True).head(largest)
    return by_seed(chosen, pl.col("stall_max_ns").max() / 1e9)


@statistic(
    SHARED, "stream-loss", scale="plain", unit="%", flows=["kind", "packets", "dropped_packets"]
)
def stream_loss(tables: Tables, scheduler: str) -> Sample:
    """Part of the constant-rate stream's packets that the bottleneck dropped, in percent."""
    return PerSeed(_stream_loss(tables, scheduler))


@statistic(
    SHARED,
    "stream-loss-excess",
    scale="plain",
    unit="points",
    flows=["kind", "packets", "dropped_packets"],
)
def stream_loss_excess(tables: Tables, scheduler: str, over: str) -> Sample:
    """The stream's loss under one scheduler less that under another, in percentage points."""
    losses = (_stream_loss(tables, one) for one in (scheduler, over))
    return PerSeed(combine(lambda ours, others: ours - others, *losses))


@statistic(
    SHARED,
    "stream-blow-up",
    scale="ratio",
    unit="x",
    flows=["kind", "packets", "dropped_packets"],
)
def stream_blow_up(
    tables: Tables, scheduler: str, calm: str, factor: float, percent: float
) -> Sample:
    """The stream's loss over the least that counts as blown up: 1 or more is.

    That is `factor` times its loss at the point `calm`, or so many percent if that is less. No loss
    counts as one packet lost.
    """
    least_one = 100 * pl.col("dropped_packets").sum().clip(lower_bound=1) / pl.col("packets").sum()
    losses = (by_seed(_stream(at, scheduler), least_one) for at in (tables, tables.at(calm)))
    return PerSeed(combine(lambda now, then: now / min(factor * then, percent), *losses))


@statistic(
    SHARED,
    "stream-volume",
    scale="plain",
    unit="MB",
    flows=["kind", "packets", "start_ns"],
    blocks=["duration_ns"],
)
def stream_volume(tables: Tables, scheduler: str, packet: int, seconds: float) -> Sample:
    """Megabytes of the stream in so many seconds, of packets of so many bytes."""
    ends = tables["blocks"].lazy().filter(pl.col("scheduler") == scheduler)
    sent = _stream(tables, scheduler).join(ends, on="seed")
    lasts = (pl.col("duration_ns") - pl.col("start_ns")) / 1e9
    return PerSeed(by_seed(sent, (pl.col("packets") * packet / 1e6 * seconds / lasts).sum()))


def _stream(tables: Tables, scheduler: str) -> pl.LazyFrame:
    flows = tables["flows"].lazy()
    return flows.filter(pl.col("scheduler") == scheduler, pl.col("kind") == "stream")


def _stream_loss(tables: Tables, scheduler: str) -> dict[int, float]:
    lost = 100 * pl.col("dropped_packets").sum() / pl.col("packets").sum()
    return by_seed(_stream(tables, scheduler), lost)


@statistic(
    SHARED,
    "tcp-loss-ratio",
    scale="ratio",
    unit="x",
    flows=["kind", "packets", "dropped_packets"],
)
def tcp_loss_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Part of TCP's packets that the bottleneck dropped, over that under another scheduler."""
    return ratio(*(_tcp_loss(tables, one) for one in (scheduler, to)))


@statistic(
    SHARED, "tcp-loss", scale="plain", unit="%", flows=["kind", "packets", "dropped_packets"]
)
def tcp_loss(tables: Tables, scheduler: str) -> Sample:
    """Part of TCP's packets that the bottleneck dropped, in percent."""
    return PerSeed(_tcp_loss(tables, scheduler))


def _tcp_loss(tables: Tables, scheduler: str) -> dict[int, float]:
    lost = 100 * pl.col("dropped_packets").sum() / pl.col("packets").sum()
    return by_seed(transfers(tables["flows"], scheduler), lost)


#: What timeouts are counted of.
TIMEOUTS = ("kind", "timeouts", "handshake_timeouts")


@statistic(SHARED, "timeouts-ratio", scale="ratio", unit="x", flows=TIMEOUTS)
def timeouts_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Timeouts of a TCP transfer, on average, over those under another scheduler."""
    return ratio(*(_timeouts(tables, one) for one in (scheduler, to)))


@statistic(SHARED, "timeouts", scale="plain", unit="per flow", flows=TIMEOUTS)
def timeouts(tables: Tables, scheduler: str) -> Sample:
    """Timeouts of a TCP transfer, on average, those of its handshake among them."""
    return PerSeed(_timeouts(tables, scheduler))


def _timeouts(tables: Tables, scheduler: str) -> dict[int, float]:
    both = pl.col("timeouts") + pl.col("handshake_timeouts")
    return by_seed(transfers(tables["flows"], scheduler), both.mean())
