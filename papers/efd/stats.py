"""The statistics of the EFD paper's claims, beside the shared ones."""

import math
from collections.abc import Sequence

import polars as pl
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import (
    PerSeed,
    Pooled,
    Sample,
    Statistic,
    Tables,
    by_seed,
    combine,
    packets,
    ratio,
    size_between,
    statistic,
    transfers,
)

__all__ = ["STATISTICS"]

#: By name, for `paper.toml`.
STATISTICS: dict[str, Statistic] = dict(SHARED)


@statistic(
    STATISTICS,
    "incomplete-short-ratio",
    scale="ratio",
    unit="x",
    flows=["kind", "complete", "received_bytes"],
)
def incomplete_short_ratio(tables: Tables, scheduler: str, to: str, most: int) -> Sample:
    """Part of the incomplete transfers that got across at most so many packets, over another's.

    A scheduler with none of them counts as if it had one: the ratio is then a lower bound.
    """
    short = (pl.col("transferred") <= most).sum()
    shares = [
        by_seed(_incomplete(tables, one), short.clip(lower_bound=1) / pl.len())
        for one in (scheduler, to)
    ]
    return ratio(*shares)


@statistic(
    STATISTICS,
    "incomplete-median-ratio",
    scale="ratio",
    unit="x",
    flows=["kind", "complete", "received_bytes"],
)
def incomplete_median_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Median packets that an incomplete transfer got across, over another scheduler's.

    A median below one packet counts as one.
    """
    median = pl.col("transferred").median().clip(lower_bound=1)
    return ratio(*(by_seed(_incomplete(tables, one), median) for one in (scheduler, to)))


@statistic(
    STATISTICS,
    "incomplete-count",
    scale="plain",
    unit="transfers",
    flows=["kind", "complete", "received_bytes"],
)
def incomplete_count(tables: Tables, scheduler: str) -> Sample:
    """Transfers that are not complete at the end of the run."""
    return PerSeed(by_seed(_incomplete(tables, scheduler), pl.len()))


@statistic(
    STATISTICS,
    "incomplete-ratio",
    scale="ratio",
    unit="x",
    flows=["kind", "complete", "received_bytes"],
)
def incomplete_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Transfers that are not complete at the end of the run, over those under another."""
    return ratio(*(by_seed(_incomplete(tables, one), pl.len()) for one in (scheduler, to)))


@statistic(
    STATISTICS,
    "stall-of-transfer",
    scale="plain",
    unit="%",
    flows=["kind", "index", "size_bytes", "start_ns", "completion_ns", "stall_max_ns"],
)
def stall_of_transfer(tables: Tables, scheduler: str, largest: int) -> Sample:
    """Longest wait for a new byte as part of the transfer's own time, the worst of the largest.

    Of the transfers that `stall` is of. One that does not end counts up to the last start of any.
    """
    part = pl.col("start_ns") / pl.col("start_ns").max().over("seed")
    lasts = pl.col("completion_ns").fill_null(
        pl.col("start_ns").max().over("seed") - pl.col("start_ns")
    )
    settled = transfers(tables["flows"], scheduler).with_columns(lasts_ns=lasts)
    settled = settled.filter(part.is_between(0.05, 0.75))
    order = settled.sort(["seed", "size_bytes", "index"], descending=[False, True, False])
    chosen = order.group_by("seed", maintain_order=True).head(largest)
    return PerSeed(by_seed(chosen, (100 * pl.col("stall_max_ns") / pl.col("lasts_ns")).max()))


@statistic(
    STATISTICS,
    "tcp-loss-added",
    scale="plain",
    unit="points",
    flows=["kind", "packets", "dropped_packets"],
)
def tcp_loss_added(tables: Tables, scheduler: str, without: str) -> Sample:
    """TCP's loss in percent less that at a point without the stream."""
    return PerSeed(_loss_added(tables, scheduler, without))


@statistic(
    STATISTICS,
    "tcp-loss-added-excess",
    scale="plain",
    unit="points",
    flows=["kind", "packets", "dropped_packets"],
)
def tcp_loss_added_excess(tables: Tables, scheduler: str, over: str, without: str) -> Sample:
    """The same less that under another scheduler."""
    added = (_loss_added(tables, one, without) for one in (scheduler, over))
    return PerSeed(combine(lambda ours, others: ours - others, *added))


def _loss_added(tables: Tables, scheduler: str, without: str) -> dict[int, float]:
    lost = 100 * pl.col("dropped_packets").sum() / pl.col("packets").sum()
    losses = (
        by_seed(transfers(at["flows"], scheduler), lost) for at in (tables, tables.at(without))
    )
    return combine(lambda with_it, alone: with_it - alone, *losses)


def _incomplete(tables: Tables, scheduler: str) -> pl.LazyFrame:
    open_ones = transfers(tables["flows"], scheduler).filter(~pl.col("complete"))
    return open_ones.with_columns(transferred=packets("received_bytes"))


@statistic(
    STATISTICS,
    "fragments-ratio",
    scale="ratio",
    unit="x",
    flows=["kind", "size_bytes", "complete", "fragments"],
)
def fragments_ratio(
    tables: Tables, scheduler: str, sizes: Sequence[int], to_sizes: Sequence[int]
) -> Sample:
    """Mean fragments of complete transfers of some sizes over those of other sizes."""
    done = transfers(tables["flows"], scheduler).filter(pl.col("complete"))
    mean = pl.col("fragments").mean()
    return ratio(*(by_seed(done.filter(size_between(one)), mean) for one in (sizes, to_sizes)))


@statistic(
    STATISTICS,
    "fragment-length",
    scale="ratio",
    unit="packets",
    flows=["kind", "size_bytes", "complete", "fragments", "packets"],
)
def fragment_length(tables: Tables, scheduler: str, largest: float) -> Sample:
    """Mean packets of a fragment among the given part of complete transfers, the largest."""
    done = transfers(tables["flows"], scheduler).filter(pl.col("complete"))
    large = pl.col("size_bytes") >= pl.col("size_bytes").quantile(1 - largest).over("seed")
    length = pl.col("packets").sum() / pl.col("fragments").sum()
    return PerSeed(by_seed(done.filter(large), length))


@statistic(
    STATISTICS,
    "fragments-spearman",
    scale="plain",
    unit="",
    flows=["kind", "size_bytes", "complete", "fragments", "packets"],
)
def fragments_spearman(tables: Tables, scheduler: str) -> Sample:
    """Rank correlation of size with fragments per packet, over complete transfers."""
    done = transfers(tables["flows"], scheduler).filter(pl.col("complete"), pl.col("packets") > 0)
    density = pl.col("fragments") / pl.col("packets")
    return PerSeed(by_seed(done, pl.corr("size_bytes", density, method="spearman")))


@statistic(
    STATISTICS,
    "steepest-rise-difference",
    scale="plain",
    unit="",
    flows=["kind", "size_bytes", "completion_ns"],
)
def steepest_rise_difference(
    tables: Tables, scheduler: str, other: str, sizes: Sequence[int], step: int
) -> Sample:
    """The steepest relative rise of the mean response over `step` packets, less another's.

    The curves are of all seeds together: a seed has few transfers of one size.
    """
    curves = [_curve(tables["flows"], one, sizes[0], sizes[1] + step) for one in (scheduler, other)]
    seeds = sorted(set(curves[0]).intersection(curves[1]))

    def difference(parts: Sequence[int]) -> float:
        ours, others = (_steepest([curve[seed] for seed in parts], step) for curve in curves)
        return ours - others

    return Pooled(seeds, difference)


@statistic(
    STATISTICS,
    "steepest-rise",
    scale="plain",
    unit="",
    flows=["kind", "size_bytes", "completion_ns"],
)
def steepest_rise(tables: Tables, scheduler: str, sizes: Sequence[int], step: int) -> Sample:
    """The steepest relative rise of the mean response over `step` packets, seeds together."""
    curve = _curve(tables["flows"], scheduler, sizes[0], sizes[1] + step)
    return Pooled(sorted(curve), lambda parts: _steepest([curve[seed] for seed in parts], step))


#: Sum of response times and number of transfers for each size, of one seed.
Curve = list[tuple[float, int]]


def _curve(flows: pl.DataFrame, scheduler: str, first: int, last: int) -> dict[int, Curve]:
    sums = (
        transfers(flows, scheduler)
        .filter(size_between((first, last)), pl.col("completion_ns").is_not_null())
        .group_by("seed", packets("size_bytes").alias("size"))
        .agg(pl.col("completion_ns").sum().cast(pl.Float64).alias("sum"), pl.len().alias("count"))
        .collect()
    )
    curves: dict[int, Curve] = {
        seed: [(0.0, 0)] * (last - first + 1) for seed in sorted(sums["seed"].unique())
    }
    for seed, size, total, count in sums.select("seed", "size", "sum", "count").iter_rows():
        curves[seed][size - first] = (total, count)
    return curves


def _steepest(curves: Sequence[Curve], step: int) -> float:
    """Sizes without a transfer are passed over; NaN if nothing is left."""
    sums = [[sum(parts) for parts in zip(*size, strict=True)] for size in zip(*curves, strict=True)]
    means = [total / count if count else math.nan for total, count in sums]
    rises = [after / before - 1 for before, after in zip(means, means[step:], strict=False)]
    return max((rise for rise in rises if not math.isnan(rise)), default=math.nan)
