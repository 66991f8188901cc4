"""The numbers of a report: means, ratios and losses by scheduler, as the command computes them.

Ratios are of mean completion times over the flows complete under both, by the delta method with
seeds as the observations; in the lab rounds, where they are few cut into batches of two seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from shortlane import stats
from shortlane.figures import data
from shortlane.figures.tables import OBSERVATION, names, rows, scenario_of
from shortlane.report.source import Folder

__all__ = ["CLASSES", "Numbers", "numbers_of", "with_class_names"]

#: Size classes, in packets, from short to long.
CLASSES = ("<=20", "20-100", "100-1000", ">1000")

#: Fewer rounds than this are cut into batches.
FEW_ROUNDS, BATCH_NS = 6, 2_000_000_000

#: How pages write them.
WRITTEN = {"<=20": "≤ 20", "20-100": "20–100", "100-1000": "100–1000", ">1000": "> 1000"}

MATCH = (*OBSERVATION, "kind", "index")


@dataclass
class Numbers:
    """What a report says; a frame without rows where the results have no such thing."""

    kind: str
    schedulers: list[str]
    #: Schedulers that others are compared with, most important first.
    references: list[str]
    #: traffic, size_class, scheduler, mean, low, high (ns), complete, incomplete, slowdown.
    classes: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: traffic, size_class, scheduler, reference, ratio, low, high, n, only_one.
    ratios: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: traffic, scheduler, mean, low, high (Mbit/s); ratio, ratio_low, ratio_high to the reference.
    long_flows: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: stream, scheduler, mean_ms, p95_ms, lost_percent, low, high, sent, lost.
    streams: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: traffic, scheduler, mean_ms, p95_ms, answered, unanswered.
    requests: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: link, scheduler, used, queue and flow table.
    links: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: link, lane, reason, size_class, scheduler, packets.
    drops: pl.DataFrame = field(default_factory=pl.DataFrame)
    #: size_class, scheduler, mean_ms (of packets), max_ms, dropped_percent, flows.
    waits: pl.DataFrame = field(default_factory=pl.DataFrame)
    void_blocks: int = 0


def numbers_of(folder: Folder) -> Numbers:
    """Computes all that the tables of the folder allow."""
    found = Numbers(kind_of(folder), [], [])
    if folder.has("blocks"):
        found.void_blocks = int(
            folder.tables["blocks"].select(pl.col("void").sum()).collect().item()
        )
    first = next(
        (t for t in ("blocks", "links", "flows", "probes", "samples", "drops") if folder.has(t)),
        None,
    )
    if first is None:
        return found
    found.schedulers = names(folder, rows(folder, first, warm_up=True), "scheduler")
    found.references = [
        name
        for wanted in ("fifo", "fq-codel")
        for name in found.schedulers
        if name.split(":")[0] == wanted
    ] or found.schedulers[:1]
    if folder.has("flows"):
        _flows(folder, found)
    if folder.has("probes"):
        found.streams = _streams(rows(folder, "probes"))
    if folder.has("links"):
        found.links = _links(rows(folder, "links"))
    if folder.has("drops"):
        found.drops = (
            rows(folder, "drops")
            .group_by("link", "lane", "reason", "size_class", "scheduler", maintain_order=True)
            .agg(pl.col("packets").sum())
            .collect()
        )
    return found


def with_class_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Size classes as pages write them."""
    return frame.with_columns(pl.col("size_class").replace(WRITTEN))


def kind_of(folder: Folder) -> str:
    """`sim`, `replay` or `lab`; of tables alone, what their flows say."""
    scenario = scenario_of(folder)
    if "capture" in scenario:
        return "replay"
    if "timing" in scenario:
        return "lab"
    if scenario or not folder.has("flows"):
        return "sim" if scenario else "results"
    captured = folder.tables["flows"].filter(pl.col("kind") == "captured").head(1).collect()
    return "results" if captured.is_empty() else "replay"


def _flows(folder: Folder, found: Numbers) -> None:
    flows = rows(folder, "flows").with_columns(pl.col("traffic").fill_null("transfers"))
    if found.kind == "replay":
        found.waits = _waits(flows)
        return
    transfers = flows.filter(pl.col("kind") == "transfer")
    found.classes = _classes(transfers, pooled=found.kind == "lab")
    batches = found.kind == "lab" and _rounds(flows) < FEW_ROUNDS
    found.ratios = pl.concat(
        [ratios_to(transfers, reference, batches=batches) for reference in found.references]
    )
    found.long_flows = _long_flows(flows, found, scenario_of(folder))
    found.requests = _requests(flows.filter(pl.col("kind") == "request"))


def _rounds(flows: pl.LazyFrame) -> int:
    return int(flows.select(pl.struct(OBSERVATION).n_unique()).collect().item())


def _classes(transfers: pl.LazyFrame, *, pooled: bool) -> pl.DataFrame:
    """Means by class; the mean of seeds' means, in the lab (`pooled`) of all transfers."""
    keys = ["traffic", "size_class", "scheduler"]
    of_one = (
        transfers.group_by([*keys, *OBSERVATION])
        .agg(
            mean=pl.col("completion_ns").mean(),
            slowdown=pl.col("slowdown").mean(),
            complete=pl.col("completion_ns").count(),
            incomplete=pl.col("completion_ns").null_count(),
        )
        .collect()
    )
    counts = of_one.group_by(keys).agg(
        pl.col("complete", "incomplete").sum(), pl.col("slowdown").mean()
    )
    means = data.estimates(of_one.sort(*keys, *OBSERVATION), "mean", by=keys)
    if pooled:
        all_of_them = (
            transfers.group_by(keys)
            .agg(mean=pl.col("completion_ns").mean(), slowdown=pl.col("slowdown").mean())
            .collect()
        )
        means = (
            means.drop("mean")
            .with_columns(low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))
            .join(all_of_them.drop("slowdown"), on=keys)
        )
        counts = counts.drop("slowdown").join(all_of_them.drop("mean"), on=keys)
    return counts.join(means, on=keys, how="left")


def ratios_to(transfers: pl.LazyFrame, reference: str, *, batches: bool = False) -> pl.DataFrame:
    """Mean completion time over that under `reference`, by traffic and size class."""
    begin = pl.coalesce("planned_ns", "start_ns")
    batch = begin // BATCH_NS if batches else pl.lit(0)
    theirs = transfers.filter(pl.col("scheduler") == reference).select(
        *MATCH, b=pl.col("completion_ns")
    )
    keys = ["traffic", "size_class", "scheduler"]
    both = pl.col("completion_ns").is_not_null() & pl.col("b").is_not_null()
    a, b = pl.col("completion_ns").filter(both), pl.col("b").filter(both)
    sums = (
        transfers.filter(pl.col("scheduler") != reference)
        .join(theirs, on=list(MATCH))
        .with_columns(batch=batch)
        .group_by(*keys, *OBSERVATION, "batch")
        .agg(
            a=a.cast(pl.Float64).sum(),
            b=b.cast(pl.Float64).sum(),
            both=both.sum(),
            only_one=(pl.col("completion_ns").is_null() ^ pl.col("b").is_null()).sum(),
        )
        .sort(*keys, *OBSERVATION, "batch")
        .collect()
    )
    found = []
    for part in sums.partition_by(keys, maintain_order=True):
        pairs = part.filter(pl.col("both") > 0).select("a", "b").rows()
        ratio = stats.ratio_of_sums(pairs)
        if ratio is not None:
            found.append(
                {
                    **part.select(keys).row(0, named=True),
                    "reference": reference,
                    "ratio": ratio.value,
                    "low": ratio.low,
                    "high": ratio.high,
                    "n": ratio.n,
                    "only_one": int(part["only_one"].sum()),
                }
            )
    numbers = dict.fromkeys(("ratio", "low", "high"), pl.Float64)
    schema: dict[str, Any] = dict.fromkeys([*keys, "reference"], pl.String)
    return pl.DataFrame(found, schema=schema | numbers | {"n": pl.Int64, "only_one": pl.Int64})


def _long_flows(flows: pl.LazyFrame, found: Numbers, scenario: dict[str, Any]) -> pl.DataFrame:
    """Payload of the flows without end, all of a traffic together."""
    lasting = flows.filter(pl.col("kind").is_in(["download", "upload"]))
    # A traffic without a name is its kind.
    named = pl.when(pl.col("traffic") == "transfers").then(pl.col("kind") + "s")
    keys = ["traffic", "scheduler"]
    of_one = (
        lasting.with_columns(traffic=named.otherwise(pl.col("traffic")))
        .group_by(*keys, *OBSERVATION)
        .agg(bits=8 * pl.col("received_bytes").sum(), start_ns=pl.col("start_ns").min())
        .collect()
    )
    counted_ns = scenario.get("timing", {}).get("arrivals_ns")
    duration_ns = scenario.get("duration_ns")
    if of_one.is_empty() or (counted_ns is None and duration_ns is None):
        return pl.DataFrame()
    # What was received in the warm-up is not in the results.
    begin = pl.max_horizontal("start_ns", pl.lit(scenario.get("warm_up_ns", 0)))
    seconds = (pl.lit(counted_ns) if counted_ns is not None else duration_ns - begin) / 1e9
    of_one = of_one.with_columns(mbit=pl.col("bits") / 1e6 / seconds)
    reference = found.references[0]
    theirs = of_one.filter(pl.col("scheduler") == reference).select(
        "traffic", *OBSERVATION, b="mbit"
    )
    paired = of_one.join(theirs, on=["traffic", *OBSERVATION]).sort(*OBSERVATION)
    ratio = stats.geometric_ratio if counted_ns is not None else stats.ratio_of_sums
    against = []
    for part in paired.partition_by(keys, maintain_order=True):
        estimate = ratio(part.select("mbit", "b").rows())
        if estimate is not None:
            against.append(
                {
                    **part.select(keys).row(0, named=True),
                    "ratio": estimate.value,
                    "ratio_low": estimate.low,
                    "ratio_high": estimate.high,
                }
            )
    schema = dict.fromkeys(keys, pl.String) | dict.fromkeys(
        ("ratio", "ratio_low", "ratio_high"), pl.Float64
    )
    ratios = pl.DataFrame(against, schema=schema)
    return data.estimates(of_one, "mbit", by=keys).join(ratios, on=keys, how="left")


def _requests(requests: pl.LazyFrame) -> pl.DataFrame:
    name = pl.when(pl.col("traffic") == "transfers").then(pl.lit("requests"))
    return (
        requests.with_columns(traffic=name.otherwise(pl.col("traffic")))
        .group_by("traffic", "scheduler", maintain_order=True)
        .agg(
            mean_ms=pl.col("completion_ns").mean() / 1e6,
            p95_ms=_p95("completion_ns"),
            answered=pl.col("completion_ns").count(),
            unanswered=pl.col("completion_ns").null_count(),
        )
        .collect()
    )


def _p95(column: str) -> pl.Expr:
    """In ms, where there are enough values for one (72)."""
    quantile = pl.col(column).quantile(0.95, "linear") / 1e6
    return pl.when(pl.col(column).count() >= 72).then(quantile)


def _streams(probes: pl.LazyFrame) -> pl.DataFrame:
    keys = ["stream", "scheduler"]
    pooled = (
        probes.group_by(keys, maintain_order=True)
        .agg(
            mean_ms=pl.col("delay_ns").mean() / 1e6,
            p95_ms=_p95("delay_ns"),
            sent=pl.len(),
            lost=pl.col("delay_ns").null_count(),
        )
        .collect()
    )
    loss = data.estimates(data.losses(probes), "lost_percent", by=keys)
    # What Student's t does not know: there is no loss below 0.
    loss = loss.rename({"mean": "lost_percent"}).with_columns(pl.col("low").clip(0))
    return pooled.join(loss, on=keys, how="left")


def _links(links: pl.LazyFrame) -> pl.DataFrame:
    def per(part: Sequence[str], of: str) -> pl.Expr:
        """In per cent of packets of all runs."""
        together = pl.sum_horizontal(pl.col(name).sum() for name in part)
        arrived = pl.col(of).sum()
        return pl.when(arrived > 0).then(100 * together / arrived)

    return (
        links.group_by("link", "scheduler", maintain_order=True)
        .agg(
            rate_mbit=pl.col("rate_bps").first() / 1e6,
            used_percent=100 * pl.col("utilisation").mean(),
            queue_mean=pl.col("backlog_mean_packets").mean(),
            queue_peak=pl.col("backlog_peak_packets").max(),
            dropped_percent=per(["dropped_packets"], "arrived_packets"),
            marked_percent=per(["marked_packets"], "arrived_packets"),
            table_mean=pl.col("flow_entries_mean").mean(),
            table_peak=pl.col("flow_entries_peak").max(),
            late_max_ms=pl.col("late_max_ns").max() / 1e6,
        )
        .collect()
    )


def _waits(flows: pl.LazyFrame) -> pl.DataFrame:
    """Time in the queue, by class of a captured flow and of all: per packet that left."""
    sent = (pl.col("sent_short_lane").fill_null(0) + pl.col("sent_long_lane").fill_null(0)).cast(
        pl.Float64
    )
    left = pl.col("queueing_mean_ns").is_not_null()
    mean_ns = (pl.col("queueing_mean_ns") * sent).sum() / sent.filter(left).sum()
    numbers = {
        "mean_ms": mean_ns / 1e6,
        "max_ms": pl.col("queueing_max_ns").max() / 1e6,
        "dropped_percent": 100 * pl.col("dropped_packets").sum() / pl.col("packets").sum(),
        "flows": pl.len(),
        "packets": pl.col("packets").sum(),
    }
    of_classes = flows.group_by("size_class", "scheduler", maintain_order=True).agg(**numbers)
    of_all = (
        flows.group_by("scheduler", maintain_order=True)
        .agg(**numbers)
        .with_columns(size_class=pl.lit("all"))
    )
    return pl.concat([of_all.collect(), of_classes.collect()], how="diagonal")
