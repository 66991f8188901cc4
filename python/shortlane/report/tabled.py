"""The tables of a report."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from shortlane.report.numbers import CLASSES, WRITTEN, Numbers, with_class_names
from shortlane.report.verdict import estimate, ratio

__all__ = ["tables_of"]

_CLASS = pl.col("size_class")


def tables_of(found: Numbers) -> list[tuple[str, pl.DataFrame]]:
    """Title and rows of every table that there is, most telling first."""
    made = {
        "Transfers: mean completion time": _classes(found),
        "Transfers: ratios of mean completion times (n: independent observations)": _ratios(found),
        "Time in the queue": _waits(found),
        "Long flows": _long_flows(found),
        "Streams": _streams(found),
        "Requests": _requests(found),
        "Links": _links(found),
        "Drops, all runs together (lane 0 is the short or only one)": _drops(found),
    }
    return [
        (title, _without_one(_in_order(found, frame)))
        for title, frame in made.items()
        if frame.height
    ]


def _without_one(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the column `traffic` where there is only one."""
    single = "traffic" in frame.columns and frame["traffic"].n_unique() == 1
    return frame.drop("traffic") if single and "packets" in frame.columns else frame


def _classes(found: Numbers) -> pl.DataFrame:
    if found.classes.is_empty():
        return found.classes
    ms = with_class_names(found.classes).with_columns(pl.col("mean", "low", "high") / 1e6)
    return ms.select(
        "traffic",
        _CLASS.alias("packets"),
        "scheduler",
        _text("mean ms", estimate, "mean", "low", "high"),
        pl.col("slowdown").alias("× idle"),
        "complete",
        "incomplete",
    )


def _ratios(found: Numbers) -> pl.DataFrame:
    if found.ratios.is_empty():
        return found.ratios
    return with_class_names(found.ratios).select(
        "traffic",
        _CLASS.alias("packets"),
        "scheduler",
        pl.col("reference").alias("over"),
        _text("ratio", ratio, "ratio", "low", "high"),
        "n",
        pl.col("only_one").alias("complete under one only"),
    )


def _waits(found: Numbers) -> pl.DataFrame:
    if found.waits.is_empty():
        return found.waits
    return with_class_names(found.waits).select(
        _CLASS.alias("flows of (packets)"),
        "scheduler",
        "flows",
        "packets",
        pl.col("mean_ms").alias("mean ms"),
        pl.col("max_ms").alias("longest ms"),
        pl.col("dropped_percent").alias("dropped %"),
    )


def _long_flows(found: Numbers) -> pl.DataFrame:
    if found.long_flows.is_empty():
        return found.long_flows
    against = _text(f"× {found.references[0]}'s", ratio, "ratio", "ratio_low", "ratio_high")
    rate = _text("Mbit/s", estimate, "mean", "low", "high")
    return found.long_flows.select("traffic", "scheduler", rate, against)


def _streams(found: Numbers) -> pl.DataFrame:
    if found.streams.is_empty():
        return found.streams
    return found.streams.select(
        "stream",
        "scheduler",
        pl.col("mean_ms").alias("mean delay ms"),
        pl.col("p95_ms").alias("95 % ms"),
        _text("lost %", estimate, "lost_percent", "low", "high"),
        "sent",
        "lost",
    )


def _requests(found: Numbers) -> pl.DataFrame:
    if found.requests.is_empty():
        return found.requests
    called = {"mean_ms": "mean ms", "p95_ms": "95 % ms"}
    return found.requests.rename(called)


def _links(found: Numbers) -> pl.DataFrame:
    called = {
        "rate_mbit": "Mbit/s",
        "used_percent": "used %",
        "queue_mean": "queue mean (packets)",
        "queue_peak": "queue peak",
        "dropped_percent": "dropped %",
        "marked_percent": "marked %",
        "table_mean": "flow table mean",
        "table_peak": "flow table peak",
        "late_max_ms": "latest wake-up ms",
    }
    unknown = [name for name in found.links.columns if found.links[name].is_null().all()]
    return found.links.drop(unknown).rename(called, strict=False)


def _drops(found: Numbers) -> pl.DataFrame:
    if found.drops.is_empty():
        return found.drops
    return with_class_names(found.drops).select(
        "link",
        "scheduler",
        "lane",
        "reason",
        _CLASS.fill_null("other traffic").alias("transfers of (packets)"),
        "packets",
    )


def _text(name: str, write: Callable[..., str], *columns: str) -> pl.Expr:
    """A column of estimates or ratios with their intervals, as text."""
    return (
        pl.struct(columns)
        .map_elements(lambda row: write(*row.values()), return_dtype=pl.String)
        .alias(name)
    )


def _in_order(found: Numbers, frame: pl.DataFrame) -> pl.DataFrame:
    """By the columns up to the scheduler: classes by size, schedulers as the scenario has them."""
    classes = {name: place for place, name in enumerate(["all", *(WRITTEN[c] for c in CLASSES)])}
    schedulers = {name: place for place, name in enumerate(found.schedulers)}
    keys = []
    for column in frame.columns[: frame.columns.index("scheduler") + 1]:
        places = schedulers if column == "scheduler" else classes
        if column == "scheduler" or "packets" in column:
            keys.append(pl.col(column).replace_strict(places, default=len(places)))
        else:
            keys.append(pl.col(column))
    return frame.sort(keys, maintain_order=True)
