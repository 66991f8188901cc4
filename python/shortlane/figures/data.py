"""The numbers behind every figure, as small frames: matplotlib and the report both draw these.

Intervals are of the mean over independent observations (seeds, or rounds of the lab), by Student's
t, from three observations on: two give one that fills the figure and says nothing. Flows without
a value (incomplete, lost) are excluded from means and always counted beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from shortlane import stats
from shortlane.errors import Usage
from shortlane.figures.quantities import quantity
from shortlane.figures.tables import Source, columns, names, need, observations, rows

__all__ = [
    "cdf",
    "estimates",
    "histogram",
    "losses",
    "mean_by_size",
    "progress",
    "time_series",
]

#: Kinds of flows that have an end and a size of their own.
ENDING = ("transfer", "captured")

#: Least observations for an interval to be drawn.
LEAST_FOR_INTERVAL = 3


def mean_by_size(
    source: Source,
    value: str = "completion_ns",
    *,
    by: str = "scheduler",
    kinds: Sequence[str] = ENDING,
    bins_per_decade: int = 6,
    least: int = 30,
) -> pl.DataFrame:
    """The conditional mean of `value` by size, in logarithmic bins of size.

    Neighbouring bins are joined until every scheduler has `least` values in each.

    Returns: one row a bin and value of `by`: `size_bytes` (geometric mean of the bin's sizes),
    `from_bytes`, `to_bytes`, `mean` (of the observations' means), `low`, `high` (95 % interval or
    empty), `observations`, `flows` (with a value), `missing` (without).
    """
    flows = rows(source, "flows")
    need(flows, [by, "size_bytes", value], "flows")
    if "kind" in columns(flows):
        flows = flows.filter(pl.col("kind").is_in(list(kinds)))
    flows = flows.filter(pl.col("size_bytes") > 0)
    watched = observations(flows)
    size = pl.col("size_bytes").cast(pl.Float64)
    cells = (
        flows.with_columns(cell=(size.log10() * bins_per_decade + 1e-9).floor().cast(pl.Int32))
        .group_by(by, *watched, "cell")
        .agg(
            sum=pl.col(value).cast(pl.Float64).sum(),
            flows=pl.col(value).count(),
            missing=pl.col(value).null_count(),
            all=pl.len(),
            logs=size.log().sum(),
            from_bytes=pl.col("size_bytes").min(),
            to_bytes=pl.col("size_bytes").max(),
        )
        .collect()
    )
    if cells.is_empty():
        numbers = ("size_bytes", "from_bytes", "to_bytes", "mean", "low", "high")
        return _nothing(by, *numbers, "observations", "flows", "missing")
    joined = _joined_bins(cells, by, least)
    cells = cells.with_columns(bin=pl.col("cell").replace_strict(joined, return_dtype=pl.Int32))
    size_of_bin = (pl.col("logs").sum() / pl.col("all").sum()).exp()
    bins = cells.group_by("bin").agg(
        size_bytes=size_of_bin,
        from_bytes=pl.col("from_bytes").min(),
        to_bytes=pl.col("to_bytes").max(),
    )
    of_one = cells.group_by(by, *watched, "bin").agg(
        pl.col("sum").sum(), pl.col("flows").sum(), pl.col("missing").sum()
    )
    of_one = of_one.with_columns(value=pl.col("sum") / pl.col("flows"))
    counts = of_one.group_by(by, "bin").agg(pl.col("flows").sum(), pl.col("missing").sum())
    means = estimates(of_one.filter(pl.col("flows") > 0), "value", by=[by, "bin"])
    found = means.join(counts, on=[by, "bin"]).join(bins, on="bin")
    return _in_order(found, names(source, flows, by), by, "size_bytes").drop("bin")


def _joined_bins(cells: pl.DataFrame, by: str, least: int) -> dict[int, int]:
    """Which bin each cell goes to, so that every bin has `least` values of every scheduler."""
    together = cells.group_by("cell", by).agg(pl.col("flows").sum())
    schedulers = together[by].unique().to_list()
    counted = {
        (cell, name): flows for cell, name, flows in together.select("cell", by, "flows").rows()
    }
    bins: list[tuple[list[int], dict[Any, int]]] = []
    for cell in sorted({cell for cell, _ in counted}):
        own = {name: counted.get((cell, name), 0) for name in schedulers}
        if bins and min(bins[-1][1].values()) < least:
            members, sums = bins[-1]
            members.append(cell)
            bins[-1] = (members, {name: sums[name] + own[name] for name in schedulers})
        else:
            bins.append(([cell], own))
    if len(bins) > 1 and min(bins[-1][1].values()) < least:
        bins[-2][0].extend(bins.pop()[0])
    return {cell: members[0] for members, _ in bins for cell in members}


def cdf(
    source: Source,
    value: str = "completion_ns",
    *,
    by: str = "scheduler",
    kinds: Sequence[str] = ENDING,
    points: int = 200,
) -> pl.DataFrame:
    """The distribution function of `value`, over all rows, those without a value among them.

    A curve therefore ends below 1 where flows are incomplete or packets lost. Where there are more
    values than `points`, the curve has about that many, denser towards both ends.

    Returns: columns `by`, `value` (in the column's unit), `fraction` (of rows with at most that
    value), `rows`, `missing` (rows without a value).
    """
    table = quantity(value).table
    frame = rows(source, table)
    need(frame, [by, value], table)
    if table == "flows" and "kind" in columns(frame):
        frame = frame.filter(pl.col("kind").is_in(list(kinds)))
    found = frame.select(by, value).collect()
    parts = []
    for name in names(source, frame, by):
        own = found.filter(pl.col(by) == name)[value]
        values = own.drop_nulls().sort()
        if values.is_empty():
            continue
        at = values.gather(_places(len(values), points)).unique(maintain_order=True)
        below = values.search_sorted(at, side="right")
        part = pl.DataFrame({"value": at.cast(pl.Float64), "fraction": below / len(own)})
        parts.append(
            part.select(
                pl.lit(name).alias(by),
                "value",
                "fraction",
                rows=pl.lit(len(own)),
                missing=pl.lit(own.null_count()),
            )
        )
    return pl.concat(parts) if parts else _nothing(by, "value", "fraction", "rows", "missing")


def _places(n: int, points: int) -> list[int]:
    """Places in a sorted sample: all if few, else evenly spread and denser towards both ends."""
    if n <= points:
        return list(range(n))
    even = [round(i * (n - 1) / (points - 1)) for i in range(points)]
    ends = [round(10 ** (i / 8)) for i in range(int(8 * math.log10(n)))]
    near = [k - 1 for k in ends if k <= n // points] + [n - k for k in ends if k <= n // points]
    return sorted(set(even + near))


def time_series(
    source: Source,
    value: str = "backlog_packets",
    *,
    by: str = "scheduler",
    link: str | None = None,
    observation: dict[str, int] | None = None,
    points: int = 200,
) -> pl.DataFrame:
    """`value` over time in one run: that of `observation` (`{"seed": 3}`), or the first.

    Time is cut into about `points` windows of equal length.

    Returns: columns `by`, `link`, `t_s` (the window's middle), `mean`, `low` and `high` (least and
    largest sample in it).
    """
    table = quantity(value, "samples").table
    frame = rows(source, table, warm_up=True)
    need(frame, [by, "t_ns", value], table)
    frame = _one_observation(frame, observation)
    if link is not None:
        frame = frame.filter(pl.col("link") == link)
    within = ["link"] if "link" in columns(frame) else []
    found = frame.select(by, *within, "t_ns", value).drop_nulls().collect()
    if found.is_empty():
        return _nothing(by, "link", "t_s", "mean", "low", "high")
    begin, end = found.select(begin=pl.col("t_ns").min(), end=pl.col("t_ns").max()).row(0)
    length = max((end - begin) / points, 1.0)
    window = ((pl.col("t_ns") - begin) / length).floor().clip(0, points - 1)
    number = pl.col(value).cast(pl.Float64)
    series = (
        found.with_columns(t_s=(begin + (window + 0.5) * length) / 1e9)
        .group_by(by, *within, "t_s")
        .agg(mean=number.mean(), low=number.min(), high=number.max())
    )
    return _in_order(series, names(source, frame, by), by, *within, "t_s")


def _one_observation(frame: pl.LazyFrame, wanted: dict[str, int] | None) -> pl.LazyFrame:
    if wanted is None:
        watched = observations(frame)
        if not watched:
            return frame
        first = frame.select(watched).head(1).collect().to_dicts()
        wanted = first[0] if first else {}
    return frame.filter(*(pl.col(name) == value for name, value in wanted.items()))


def histogram(
    source: Source,
    value: str = "flow_entries",
    *,
    by: str = "scheduler",
    bins: int = 40,
    edges: Sequence[float] | None = None,
) -> pl.DataFrame:
    """How often `value` lies where: the share of samples in `bins` bins of equal width.

    Bins of whole numbers are whole numbers wide. `edges` (rising) are bins of your own; the last
    includes its end.

    Returns: columns `by`, `from`, `to`, `count`, `share` (of all rows of that scheduler that have
    a value; values outside of `edges` are in no bin).
    """
    table = quantity(value, "samples").table
    frame = rows(source, table)
    need(frame, [by, value], table)
    found = frame.select(by, value).drop_nulls().collect()
    empty = _nothing(by, "from", "to", "count", "share")
    if found.is_empty():
        return empty
    whole = found.schema[value].is_integer()
    edges = list(edges) if edges is not None else _edges(found[value], bins, whole)
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise Usage(f"edges: found {edges}; accepted: at least two, each above the one before")
    parts = []
    for name in names(source, frame, by):
        values = found.filter(pl.col(by) == name)[value].cast(pl.Float64).sort()
        starts = values.search_sorted(pl.Series(edges[:-1], dtype=pl.Float64), side="left")
        ends = values.search_sorted(pl.Series(edges[1:], dtype=pl.Float64), side="left").to_list()
        ends[-1] = int(values.search_sorted(edges[-1], side="left" if whole else "right"))
        part = pl.DataFrame(
            {"from": edges[:-1], "to": edges[1:]},
            schema_overrides={"from": pl.Float64, "to": pl.Float64},
        )
        count = pl.Series(ends, dtype=pl.Int64) - starts.cast(pl.Int64)
        parts.append(
            part.select(
                pl.lit(name).alias(by), "from", "to", count=count, share=count / max(len(values), 1)
            )
        )
    return pl.concat(parts) if parts else empty


def _edges(values: pl.Series, bins: int, whole: bool) -> list[float]:
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    if whole:
        width = max(1, math.ceil((high - low + 1) / bins))
        count = math.ceil((high - low + 1) / width)
        return [low + i * width for i in range(count + 1)]
    if low == high:
        return [low - 0.5, low + 0.5]
    return [low + i * (high - low) / bins for i in range(bins)] + [high]


def progress(
    source: Source,
    *,
    by: str = "scheduler",
    largest: int = 3,
    transfers: Iterable[tuple[str | None, int]] | None = None,
    observation: dict[str, int] | None = None,
    points: int = 600,
) -> pl.DataFrame:
    """Bytes received over time, of some `transfers` (traffic, index) of one run, or the `largest`.

    The largest are those of the largest size, or without a table `flows` those that received
    most under any scheduler. Long curves are thinned to two rows in each of
    `points` windows of time: plateaus stay.

    Returns: columns `by`, `traffic`, `index`, `t_s`, `received_bytes`, in the order of size.
    """
    frame = _one_observation(rows(source, "progress", warm_up=True), observation)
    need(frame, [by, "traffic", "index", "t_ns", "received_bytes"], "progress")
    chosen = list(transfers) if transfers is not None else _largest(source, frame, largest)
    order = names(source, frame, by)
    key = pl.DataFrame(
        chosen, schema={"traffic": pl.String, "index": pl.Int64}, orient="row"
    ).with_row_index("place")
    found = (
        frame.with_columns(pl.col("traffic").cast(pl.String), pl.col("index").cast(pl.Int64))
        .join(key.lazy(), on=["traffic", "index"], nulls_equal=True)
        .select(
            by, "traffic", "index", "place", (pl.col("t_ns") / 1e9).alias("t_s"), "received_bytes"
        )
        .collect()
        .sort("t_s", maintain_order=True)
    )
    parts = [
        _thinned(part, points) for part in found.partition_by(by, "place", maintain_order=True)
    ]
    if not parts:
        return _nothing(by, "traffic", "index", "t_s", "received_bytes")
    return _in_order(pl.concat(parts), order, by, "place", "t_s").drop("place")


def _largest(source: Source, frame: pl.LazyFrame, count: int) -> list[tuple[str | None, int]]:
    own = frame.group_by("traffic", "index").agg(size=pl.col("received_bytes").max())
    if not isinstance(source, pl.DataFrame | pl.LazyFrame) and "flows" in source.tables:
        sizes = rows(source, "flows").filter(pl.col("kind") == "transfer")
        watched = observations(frame)
        one = frame.select(*watched, "traffic", "index").unique()
        own = (
            one.join(sizes, on=[*watched, "traffic", "index"], nulls_equal=True)
            .group_by("traffic", "index")
            .agg(size=pl.col("size_bytes").max())
        )
    ranked = own.sort(["size", "index"], descending=[True, False], nulls_last=True).head(count)
    return [
        (traffic, index) for traffic, index in ranked.select("traffic", "index").collect().rows()
    ]


def _thinned(part: pl.DataFrame, points: int) -> pl.DataFrame:
    """First and last of each of `points` windows of time: no step moves by more than a window."""
    if part.height <= 2 * points:
        return part
    begin, end = part["t_s"][0], part["t_s"][-1]
    window = ((part["t_s"] - begin) / ((end - begin) / points)).floor()
    edge = (window != window.shift(1)) | (window != window.shift(-1))
    return part.filter(edge.fill_null(True))


def losses(source: Source, *, by: Sequence[str] = ("scheduler",)) -> pl.DataFrame:
    """Packets that each stream lost in each run.

    Returns: columns of `by`, `stream`, those of `seed` and `round` that the table has, `sent`,
    `lost`, `lost_percent`. A packet that was on its way when its run ended is not in the table.
    """
    probes = rows(source, "probes")
    need(probes, [*by, "stream", "delay_ns"], "probes")
    keys = list(dict.fromkeys([*by, "stream", *observations(probes)]))
    found = probes.group_by(keys, maintain_order=True).agg(
        sent=pl.len(), lost=pl.col("delay_ns").null_count()
    )
    return found.with_columns(lost_percent=100 * pl.col("lost") / pl.col("sent")).collect()


def estimates(frame: pl.DataFrame, value: str, *, by: Sequence[str]) -> pl.DataFrame:
    """The mean of `value` of each group, with its 95 % interval; every row is an observation.

    Returns: columns of `by`, `mean`, `low`, `high`, `observations`.
    """
    found = []
    groups = frame.drop_nulls(value).group_by(list(by), maintain_order=True)
    for key, values in (
        groups.agg(pl.col(value).cast(pl.Float64)).select(pl.struct(list(by)), value).rows()
    ):
        mean = stats.mean(values)
        if mean is None:
            continue
        shown = mean.n >= LEAST_FOR_INTERVAL
        low, high = (mean.low, mean.high) if shown else (None, None)
        found.append({**key, "mean": mean.value, "low": low, "high": high, "observations": mean.n})
    numbers = {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "observations": pl.Int64}
    schema = {name: frame.schema[name] for name in by} | numbers
    return pl.DataFrame(found, schema=schema)


def _in_order(frame: pl.DataFrame, order: Sequence[Any], by: str, *then: str) -> pl.DataFrame:
    """Sorted by the place of `by` in `order`, then by other columns."""
    place = pl.col(by).replace_strict(
        list(order), list(range(len(order))), default=len(order), return_dtype=pl.Int32
    )
    return frame.sort(place, *then)


def _nothing(by: str, *rest: str) -> pl.DataFrame:
    texts = {by: pl.String, "link": pl.String, "traffic": pl.String, "index": pl.Int64}
    return pl.DataFrame(schema={name: texts.get(name, pl.Float64) for name in (by, *rest)})
