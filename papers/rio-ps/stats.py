"""The statistics of the mice and elephants slides' claims, beside the shared ones."""

from collections.abc import Mapping, Sequence
from typing import Any

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

__all__ = ["COUNTED_FROM", "LINK", "PAYLOAD", "STATISTICS", "jain_by_round", "rounds"]

#: By name, for `paper.toml`.
STATISTICS: dict[str, Statistic] = dict(SHARED)

#: Payload of a packet of 500 bytes, and what it is on the wire.
PAYLOAD, WIRE = 460, 500
#: The bottleneck of the star.
LINK = "servers"
#: What starts before does not count in the star's runs.
COUNTED_FROM = 2000
#: Bins of object sizes, by the edges' exponents of ten: two a decade.
BINS_PER_DECADE = 2


@statistic(
    STATISTICS, "slope-difference", scale="plain", unit="", flows=["traffic", "completion_ns"]
)
def slope_difference(
    tables: Tables, of: str, traffic: str, less: str, points: Mapping[str, float]
) -> Sample:
    """The relative slope of one traffic's transmission times by the loss rate, less another's."""
    slopes = (_slopes(tables, of, one, points) for one in (traffic, less))
    return PerSeed(combine(lambda ours, others: ours - others, *slopes))


@statistic(STATISTICS, "slope", scale="plain", unit="", flows=["traffic", "completion_ns"])
def slope(tables: Tables, of: str, traffic: str, points: Mapping[str, float]) -> Sample:
    """Slope of the logarithm of mean (`mean`) or coefficient of variation (`cv`) by loss rate."""
    return PerSeed(_slopes(tables, of, traffic, points))


def _slopes(tables: Tables, of: str, traffic: str, points: Mapping[str, float]) -> dict[int, float]:
    """Of a least-squares line; `points` have their loss rates."""
    time = pl.col("completion_ns")
    value = time.mean() if of == "mean" else time.std() / time.mean()
    found = [
        by_seed(tables.at(point)["flows"].lazy().filter(pl.col("traffic") == traffic), value.log())
        for point in points
    ]
    losses = points.values()
    middle = sum(losses) / len(losses)
    spread = sum((loss - middle) ** 2 for loss in losses)

    def fitted(*values: float) -> float:
        pairs = zip(losses, values, strict=True)
        return sum((loss - middle) * value for loss, value in pairs) / spread

    return combine(fitted, *found)


@statistic(
    STATISTICS, "class-goodput-ratio", scale="ratio", unit="x", flows=["traffic", "received_bytes"]
)
def class_goodput_ratio(tables: Tables, traffic: Sequence[str], scheduler: str, to: str) -> Sample:
    """What flows of some traffics received under one scheduler, over that under another."""
    return ratio(*(_received(tables, traffic, one) for one in (scheduler, to)))


@statistic(
    STATISTICS, "class-goodput-part", scale="ratio", unit="x", flows=["traffic", "received_bytes"]
)
def class_goodput_part(
    tables: Tables, traffic: Sequence[str], scheduler: str, packets: int
) -> Sample:
    """What flows of some traffics received, over so many packets."""
    found = _received(tables, traffic, scheduler)
    return PerSeed(combine(lambda received: received / packets, found))


@statistic(
    STATISTICS,
    "class-goodput",
    scale="ratio",
    unit="packets",
    flows=["traffic", "received_bytes"],
)
def class_goodput(tables: Tables, traffic: Sequence[str], scheduler: str) -> Sample:
    """What flows of some traffics received, in packets."""
    return PerSeed(_received(tables, traffic, scheduler))


def _received(tables: Tables, traffic: Sequence[str], scheduler: str) -> dict[int, float]:
    chosen = _of(tables["flows"], scheduler).filter(pl.col("traffic").is_in(list(traffic)))
    return by_seed(chosen, pl.col("received_bytes").sum() / PAYLOAD)


@statistic(
    STATISTICS,
    "round-goodput",
    scale="ratio",
    unit="packets",
    flows=["traffic", "received_bytes", "completion_ns"],
)
def round_goodput(tables: Tables, traffic: str, scheduler: str, seconds: float) -> Sample:
    """What a traffic's complete transfers received within so many seconds of their start.

    In packets; a transfer's come evenly over its time.
    """
    mine = _of(tables["flows"], scheduler).filter(pl.col("traffic") == traffic)
    part = (seconds * 1e9 / pl.col("completion_ns")).clip(upper_bound=1)
    return PerSeed(by_seed(mine, (pl.col("received_bytes") * part).sum() / PAYLOAD))


#: What the part of a link is told by.
SHARE: dict[str, Any] = {
    "flows": ["traffic", "received_bytes"],
    "links": ["rate_bps"],
}
#: How long they last, in seconds.
MIX_LASTS = 500


@statistic(STATISTICS, "class-share-excess", scale="plain", unit="", **SHARE)
def class_share_excess(tables: Tables, traffic: str, scheduler: str, over: str) -> Sample:
    """The part of the link that a traffic's data took under one scheduler less that under another.

    Of the bottleneck's rate, headers included, packets that were sent again not.
    """
    shares = (_share(tables, traffic, one) for one in (scheduler, over))
    return PerSeed(combine(lambda ours, others: ours - others, *shares))


@statistic(STATISTICS, "class-share", scale="plain", unit="", **SHARE)
def class_share(tables: Tables, traffic: str, scheduler: str) -> Sample:
    """The part of the link that a traffic's data took."""
    return PerSeed(_share(tables, traffic, scheduler))


def _share(tables: Tables, traffic: str, scheduler: str) -> dict[int, float]:
    rate = by_seed(_of(tables["links"], scheduler), pl.col("rate_bps").first())
    received = _received(tables, [traffic], scheduler)
    return combine(lambda n, bps: n * WIRE * 8 / MIX_LASTS / bps, received, rate)


#: What response times by size are told by.
OBJECTS = ("traffic", "size_bytes", "start_ns", "completion_ns")


@statistic(STATISTICS, "object-response-ratio", scale="ratio", unit="x", flows=OBJECTS)
def object_response_ratio(tables: Tables, scheduler: str, to: str, sizes: Sequence[int]) -> Sample:
    """Mean response time of web objects by size, over that under another scheduler, bin by bin.

    The geometric mean over bins of equal width in the logarithm of size, so that the few largest do
    not decide alone. Objects that are complete, and started when counting had begun.
    """
    return PerSeed(_object_ratio(tables, scheduler, to, sizes))


@statistic(STATISTICS, "object-response-change", scale="ratio", unit="x", flows=OBJECTS)
def object_response_change(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int], before: str
) -> Sample:
    """The same ratio over that at point `before`."""
    places = (tables, tables.at(before))
    return ratio(*(_object_ratio(one, scheduler, to, sizes) for one in places))


def _object_ratio(
    tables: Tables, scheduler: str, to: str, sizes: Sequence[int]
) -> dict[int, float]:
    packets = (pl.col("size_bytes") + (PAYLOAD - 1)) // PAYLOAD
    means = [
        _counted(_of(tables["flows"], one))
        .filter(
            pl.col("traffic") == "web",
            packets.is_between(sizes[0], sizes[1]),
            pl.col("completion_ns").is_not_null(),
        )
        .group_by("seed", (packets.log10() * BINS_PER_DECADE).floor().alias("bin"))
        .agg(pl.col("completion_ns").mean().alias("mean"))
        for one in (scheduler, to)
    ]
    both = means[0].join(means[1], on=["seed", "bin"])
    return by_seed(both, (pl.col("mean") / pl.col("mean_right")).log().mean().exp())


@statistic(
    STATISTICS, "queue-mean-ratio", scale="ratio", unit="x", links=["link", "backlog_mean_packets"]
)
def queue_mean_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Time-mean queue after the warm-up, over that under another scheduler."""
    return ratio(*(_queue_mean(tables, one) for one in (scheduler, to)))


@statistic(
    STATISTICS, "queue-mean", scale="plain", unit="packets", links=["link", "backlog_mean_packets"]
)
def queue_mean(tables: Tables, scheduler: str) -> Sample:
    """Time-mean queue after the warm-up."""
    return PerSeed(_queue_mean(tables, scheduler))


def _queue_mean(tables: Tables, scheduler: str) -> dict[int, float]:
    mine = _of(tables["links"], scheduler).filter(pl.col("link") == LINK)
    return by_seed(mine, pl.col("backlog_mean_packets").first())


@statistic(
    STATISTICS,
    "queue-deviation-ratio",
    scale="ratio",
    unit="x",
    samples=["link", "t_ns", "backlog_packets"],
)
def queue_deviation_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Standard deviation of the sampled queue, over that under another scheduler."""
    settled = pl.col("t_ns") >= COUNTED_FROM * 1e9
    deviations = [
        by_seed(
            _of(tables["samples"], one).filter(pl.col("link") == LINK, settled),
            pl.col("backlog_packets").std(),
        )
        for one in (scheduler, to)
    ]
    return ratio(*deviations)


#: What drop and mark rates are told by.
SIGNALS = ("size_bytes", "start_ns", "packets", "dropped_packets", "marked_packets")


@statistic(STATISTICS, "signal-ratio", scale="ratio", unit="x", flows=SIGNALS)
def signal_ratio(
    tables: Tables, scheduler: str, sizes: Sequence[int], to_sizes: Sequence[int]
) -> Sample:
    """Part of the packets dropped or marked, of flows of some sizes over that of other sizes."""
    return ratio(*(_signals(tables, scheduler, one) for one in (sizes, to_sizes)))


@statistic(STATISTICS, "signal-rate", scale="plain", unit="%", flows=SIGNALS)
def signal_rate(tables: Tables, scheduler: str, sizes: Sequence[int]) -> Sample:
    """Part of the packets dropped or marked, of flows of some sizes, in percent."""
    rates = _signals(tables, scheduler, sizes)
    return PerSeed(combine(lambda rate: 100 * rate, rates))


def _signals(tables: Tables, scheduler: str, sizes: Sequence[int]) -> dict[int, float]:
    packets = (pl.col("size_bytes") + (PAYLOAD - 1)) // PAYLOAD
    within = packets.is_between(sizes[0], sizes[1])
    chosen = _counted(_of(tables["flows"], scheduler)).filter(within)
    signals = pl.col("dropped_packets").sum() + pl.col("marked_packets").sum()
    return by_seed(chosen, signals / pl.col("packets").sum())


#: What the foreground is told by.
FOREGROUND = ("traffic", "planned_ns", "end_ns", "completion_ns")


@statistic(STATISTICS, "jain-difference", scale="plain", unit="", flows=FOREGROUND)
def jain_difference(
    tables: Tables, traffic: str, scheduler: str, over: str, spare: float
) -> Sample:
    """Mean Jain's index of the rounds of a traffic, less that under another scheduler."""
    indices = (_jain(tables, traffic, one, spare) for one in (scheduler, over))
    return PerSeed(combine(lambda ours, others: ours - others, *indices))


@statistic(STATISTICS, "jain", scale="plain", unit="", flows=FOREGROUND)
def jain(tables: Tables, traffic: str, scheduler: str, spare: float) -> Sample:
    """Mean over rounds of Jain's index of one over the response times of a round."""
    return PerSeed(_jain(tables, traffic, scheduler, spare))


def _jain(tables: Tables, traffic: str, scheduler: str, spare: float) -> dict[int, float]:
    found = jain_by_round(_of(tables["flows"], scheduler), traffic, spare)
    return by_seed(found, pl.col("index").mean())


def rounds(flows: pl.LazyFrame, traffic: str, spare: float) -> pl.LazyFrame:
    """The transfers of a traffic but those of the last `spare` seconds, which may be cut off."""
    early = pl.col("planned_ns") < pl.col("end_ns").max().over("seed") - spare * 1e9
    return flows.filter(early).filter(pl.col("traffic") == traffic)


def jain_by_round(flows: pl.LazyFrame, traffic: str, spare: float) -> pl.LazyFrame:
    """The index of each round but those of the last `spare` seconds, by seed and start.

    A transfer that is not complete counts with 0; the index of a round without any is 0.
    """
    x = (1 / pl.col("completion_ns")).fill_null(0.0)
    square = pl.col("x").sum() ** 2
    return (
        rounds(flows, traffic, spare)
        .with_columns(x=x)
        .group_by("seed", "planned_ns")
        .agg(index=(square / (pl.len() * (pl.col("x") ** 2).sum())).fill_nan(0.0))
    )


@statistic(STATISTICS, "traffic-response-ratio", scale="ratio", unit="x", flows=FOREGROUND)
def traffic_response_ratio(
    tables: Tables, traffic: str, scheduler: str, to: str, spare: float
) -> Sample:
    """Mean response time of a traffic's complete transfers, over that under another scheduler."""
    return ratio(*(_response(tables, traffic, one, spare) for one in (scheduler, to)))


@statistic(STATISTICS, "traffic-response", scale="ratio", unit="s", flows=FOREGROUND)
def traffic_response(tables: Tables, traffic: str, scheduler: str, spare: float) -> Sample:
    """Mean response time of a traffic's complete transfers."""
    return PerSeed(_response(tables, traffic, scheduler, spare))


def _response(tables: Tables, traffic: str, scheduler: str, spare: float) -> dict[int, float]:
    chosen = rounds(_of(tables["flows"], scheduler), traffic, spare)
    return by_seed(chosen, pl.col("completion_ns").mean() / 1e9)


#: What goodput after a time is told by.
GOODPUT: dict[str, Any] = {
    "flows": ["start_ns", "end_ns", "received_bytes"],
}


@statistic(STATISTICS, "late-goodput-ratio", scale="ratio", unit="x", **GOODPUT)
def late_goodput_ratio(tables: Tables, scheduler: str, to: str, since: float) -> Sample:
    """Bytes received since a time, over that under another scheduler."""
    return ratio(*(_goodput(tables, one, since) for one in (scheduler, to)))


@statistic(STATISTICS, "late-goodput", scale="ratio", unit="packets", **GOODPUT)
def late_goodput(tables: Tables, scheduler: str, since: float) -> Sample:
    """Packets of data received since a time (seconds); a transfer's come evenly over its time."""
    return PerSeed(_goodput(tables, scheduler, since))


def _goodput(tables: Tables, scheduler: str, since: float) -> dict[int, float]:
    flows = _within(tables, scheduler)
    late = (pl.col("end_ns") - pl.max_horizontal("start_ns", since * 1e9)).clip(lower_bound=0)
    part = late / (pl.col("end_ns") - pl.col("start_ns")).clip(lower_bound=1)
    return by_seed(flows, (pl.col("received_bytes") * part).sum() / PAYLOAD)


def _within(tables: Tables, scheduler: str) -> pl.LazyFrame:
    """The flows, to the end of the run those which had none: the web's objects end all the time."""
    last = pl.col("end_ns").max().over("seed")
    return _of(tables["flows"], scheduler).with_columns(pl.col("end_ns").fill_null(last))


@statistic(
    STATISTICS,
    "short-missing",
    scale="plain",
    unit="flows",
    flows=["packets", "sent_short_lane", "sent_long_lane", "dropped_short_lane"],
)
def short_missing(tables: Tables, scheduler: str, threshold: int) -> Sample:
    """Flows that sent a long packet with fewer than `threshold` short ones before it."""
    short = pl.col("sent_short_lane") + pl.col("dropped_short_lane")
    missing = (short < threshold) & (pl.col("packets") > short) & (pl.col("sent_long_lane") > 0)
    return PerSeed(by_seed(_of(tables["flows"], scheduler), missing.sum()))


@statistic(
    STATISTICS,
    "short-to-long",
    scale="ratio",
    unit="",
    flows=["start_ns", "end_ns", "sent_short_lane", "sent_long_lane"],
)
def short_to_long(tables: Tables, scheduler: str, since: float, idle: float) -> Sample:
    """Time-mean of active short flows over that of active long ones, since a time (seconds).

    A flow is active until `idle` seconds after its end. It counts as short for that part of its
    packets that were.
    """
    flows = _within(tables, scheduler).filter(pl.col("start_ns") >= since * 1e9)
    sent = pl.col("sent_short_lane") + pl.col("sent_long_lane")
    active = (pl.col("end_ns") - pl.col("start_ns")) / 1e9
    # What comes after the last packet belongs to what the flow was in the end.
    is_long = pl.col("sent_long_lane") > 0
    short = active * pl.col("sent_short_lane") / sent + pl.when(is_long).then(0).otherwise(idle)
    long = active * pl.col("sent_long_lane") / sent + pl.when(is_long).then(idle).otherwise(0)
    sent_any = flows.filter(sent > 0)
    return PerSeed(by_seed(sent_any, short.sum() / long.sum()))


def _of(frame: pl.DataFrame, scheduler: str) -> pl.LazyFrame:
    return frame.lazy().filter(pl.col("scheduler") == scheduler)


def _counted(flows: pl.LazyFrame) -> pl.LazyFrame:
    """The flows of the second half."""
    return flows.filter(pl.col("start_ns") >= COUNTED_FROM * 1e9)
