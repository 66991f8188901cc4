"""What experiments are held against each other by, and how it is read off a run's results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from shortlane.figures.tables import OBSERVATION, rows, scenario_of
from shortlane.report.numbers import CLASSES, WRITTEN
from shortlane.report.source import Folder

__all__ = [
    "COMPLETION",
    "DELAY",
    "DROPPED",
    "LOST",
    "QUANTITIES",
    "QUEUE",
    "RATE",
    "TWINS",
    "UNFINISHED",
    "USE",
    "Quantity",
    "Values",
    "transfers",
]

#: The kernel's own qdiscs that are the same discipline as one of ours.
TWINS = {
    "kernel:cake": "cake",
    "kernel:codel": "codel",
    "kernel:fq_codel": "fq-codel",
    "kernel:pfifo": "fifo",
}


@dataclass(frozen=True)
class Quantity:
    """Something that engines are held against each other by."""

    title: str
    unit: str
    #: A difference that counts as none: part of the value, or as it is (`relative` false).
    tolerance: float
    relative: bool

    @property
    def even(self) -> float:
        """The ratio, or the difference, of two that are the same."""
        return 1.0 if self.relative else 0.0

    @property
    def allowed(self) -> str:
        """The tolerance in words."""
        if self.relative:
            return f"{100 * self.tolerance:g} %"
        return f"{self.tolerance:g} {'points' if self.unit == '%' else self.unit}"


COMPLETION = Quantity("Mean completion time of transfers", "ms", 0.1, relative=True)
RATE = Quantity("Rate of long flows", "Mbit/s", 0.1, relative=True)
DELAY = Quantity("99th percentile of the delay of streams", "ms", 2.0, relative=False)
USE = Quantity("Link used", "%", 2.0, relative=False)
UNFINISHED = Quantity("Transfers not complete at the end", "%", 2.0, relative=False)
LOST = Quantity("Packets of streams that were lost", "%", 1.0, relative=False)
QUEUE = Quantity("Mean queue", "packets", 0.15, relative=True)
DROPPED = Quantity("Packets that the queue dropped", "%", 0.1, relative=False)

#: A value of each independent round, by (seed, round).
Values = dict[tuple[Any, ...], float]


def _common(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Twins by the name of ours, and rounds by their seeds, which only the lab numbers."""
    return frame.with_columns(scheduler=pl.col("scheduler").replace(TWINS), round=pl.lit(0))


def transfers(folder: Folder) -> pl.DataFrame:
    """Transfers that are complete: what, scheduler, seed, round, index, completion_ns."""
    if not folder.has("flows"):
        return pl.DataFrame(
            schema={
                "what": pl.String,
                "scheduler": pl.String,
                "seed": pl.Int64,
                "round": pl.Int32,
                "index": pl.Int64,
                "completion_ns": pl.Int64,
            }
        )
    traffic = pl.col("traffic").fill_null("transfers")
    size_class = pl.col("size_class").cast(pl.String).replace(WRITTEN)
    return (
        _common(rows(folder, "flows"))
        .filter(pl.col("kind") == "transfer", pl.col("completion_ns").is_not_null())
        .with_columns(what=pl.format("{}, {} packets", traffic, size_class))
        .select("what", "scheduler", *OBSERVATION, "index", "completion_ns")
        .collect()
    )


def _values(frame: pl.DataFrame, value: str = "value") -> dict[tuple[str, str], Values]:
    """By what and scheduler; of each, by seed and round."""
    found: dict[tuple[str, str], Values] = {}
    for row in frame.drop_nulls(value).iter_rows(named=True):
        key = (str(row["what"]), str(row["scheduler"]))
        found.setdefault(key, {})[(row["seed"], row["round"])] = float(row[value])
    return found


def _completions(folder: Folder) -> dict[tuple[str, str], Values]:
    means = (
        transfers(folder)
        .group_by("what", "scheduler", *OBSERVATION, maintain_order=True)
        .agg(value=pl.col("completion_ns").mean() / 1e6)
    )
    order = {WRITTEN[name]: place for place, name in enumerate(CLASSES)}
    by_class = sorted(
        _values(means).items(),
        key=lambda one: next(
            (place for name, place in order.items() if f", {name} packets" in one[0][0]), 0
        ),
    )
    return dict(by_class)


def _rates(folder: Folder) -> dict[tuple[str, str], Values]:
    scenario = scenario_of(folder)
    duration_ns, warm_up_ns = scenario.get("duration_ns"), scenario.get("warm_up_ns", 0)
    if not folder.has("flows") or not duration_ns:
        return {}
    begin = pl.max_horizontal(pl.col("start_ns").min(), pl.lit(warm_up_ns))
    of_round = (
        _common(rows(folder, "flows"))
        .filter(pl.col("kind").is_in(["download", "upload"]))
        .with_columns(what=pl.col("traffic").fill_null(pl.col("kind") + "s"))
        .group_by("what", "scheduler", *OBSERVATION, maintain_order=True)
        .agg(value=8e3 * pl.col("received_bytes").sum() / (duration_ns - begin))
        .collect()
    )
    return _values(of_round)


def _delays(folder: Folder) -> dict[tuple[str, str], Values]:
    """Of rounds that can carry a 99th percentile: 368 packets."""
    if not folder.has("probes"):
        return {}
    of_round = (
        _common(rows(folder, "probes"))
        .filter(pl.col("delay_ns").is_not_null())
        .rename({"stream": "what"})
        .group_by("what", "scheduler", *OBSERVATION, maintain_order=True)
        .agg(n=pl.len(), value=pl.col("delay_ns").quantile(0.99, "linear") / 1e6)
        .filter(pl.col("n") >= 368)
        .collect()
    )
    return _values(of_round)


def _unfinished(folder: Folder) -> dict[tuple[str, str], Values]:
    if not folder.has("flows"):
        return {}
    of_round = (
        _common(rows(folder, "flows"))
        .filter(pl.col("kind") == "transfer")
        .with_columns(what=pl.col("traffic").fill_null("transfers"))
        .group_by("what", "scheduler", *OBSERVATION, maintain_order=True)
        .agg(value=100 * pl.col("completion_ns").is_null().mean())
        .collect()
    )
    return _values(of_round)


def _lost(folder: Folder) -> dict[tuple[str, str], Values]:
    if not folder.has("probes"):
        return {}
    of_round = (
        _common(rows(folder, "probes"))
        .rename({"stream": "what"})
        .group_by("what", "scheduler", *OBSERVATION, maintain_order=True)
        .agg(value=100 * pl.col("delay_ns").is_null().mean())
        .collect()
    )
    return _values(of_round)


def _uses(folder: Folder) -> dict[tuple[str, str], Values]:
    return _of_links(folder, 100 * pl.col("utilisation"))


_BACK = pl.col("link").str.ends_with("-back") | (pl.col("link") == "up")


def _of_links(folder: Folder, value: pl.Expr) -> dict[tuple[str, str], Values]:
    """Of the bottleneck, by its directions."""
    if not folder.has("links"):
        return {}
    what = pl.when(_BACK).then(pl.lit("way back")).otherwise(pl.lit("way there"))
    frame = _common(rows(folder, "links")).with_columns(what=what, value=value).collect()
    return _values(frame.unique(["what", "scheduler", *OBSERVATION], maintain_order=True))


def _queues(folder: Folder) -> dict[tuple[str, str], Values]:
    """Of those in which a packet more often stands than not: ratios of others say nothing."""
    mean = pl.col("backlog_mean_packets")
    return _of_links(folder, pl.when(mean >= 0.5).then(mean))


def _drops(folder: Folder) -> dict[tuple[str, str], Values]:
    return _of_links(folder, 100 * pl.col("dropped_packets") / pl.col("arrived_packets"))


#: What is held against each other, and how it is read off a run.
QUANTITIES: dict[Quantity, Callable[[Folder], dict[tuple[str, str], Values]]] = {
    COMPLETION: _completions,
    UNFINISHED: _unfinished,
    RATE: _rates,
    DELAY: _delays,
    LOST: _lost,
    USE: _uses,
    QUEUE: _queues,
    DROPPED: _drops,
}
