"""Which charts suit which results."""

from __future__ import annotations

import polars as pl

from shortlane.errors import InputError
from shortlane.figures import data
from shortlane.figures.tables import rows
from shortlane.report import charts
from shortlane.report.blocks import Block, chart, text
from shortlane.report.charts import scaled
from shortlane.report.numbers import CLASSES, WRITTEN, Numbers, with_class_names
from shortlane.report.source import Folder

__all__ = ["charts_of"]

#: Most links and streams that get a chart of their own.
MANY = 6

#: Size classes from short to long, as written.
ORDER = [WRITTEN[name] for name in CLASSES]

#: A link whose queue was never longer has nothing to show.
IDLE_PACKETS = 5

INTERVALS = "Bars are 95 % intervals over seeds, where there are at least three."


def charts_of(folder: Folder, found: Numbers) -> list[Block]:
    """Every chart that the tables allow, most telling first."""
    made: list[Block] = []
    if folder.has("flows"):
        made += _waits(folder, found) if found.kind == "replay" else _times(folder, found)
    if folder.has("probes"):
        made += _streams(folder, found)
    if folder.has("samples"):
        made += _queues(folder, found)
    if not found.drops.is_empty():
        made += _drops(found)
    return made


def _times(folder: Folder, found: Numbers) -> list[Block]:
    if found.classes.is_empty():
        return []
    made = []
    names = found.schedulers
    for reference in found.references:
        for (traffic,), own in (
            found.ratios.filter(pl.col("reference") == reference)
            .partition_by("traffic", maintain_order=True, as_dict=True)
            .items()
        ):
            spec = charts.dots(
                with_class_names(own).select("size_class", "scheduler", "ratio", "low", "high"),
                names,
                value=("ratio", f"time over {reference}'s"),
                rows="size_class",
                order=ORDER,
                log=True,
                line_at=1.0,
            )
            made.append(
                chart(
                    spec,
                    title=f"Completion time against {reference}{_of(traffic, found)}",
                    about="By size in packets, with 95 % intervals. Left of 1 is faster. "
                    "Of the transfers complete under both.",
                )
            )
    by_size = data.mean_by_size(folder, least=_least(folder))
    if by_size.drop_nulls("mean")["size_bytes"].n_unique() > 1:
        shown = scaled(by_size, "completion_ns", "mean", "low", "high").with_columns(
            size_kb=pl.col("size_bytes") / 1e3
        )
        made.append(
            chart(
                charts.lines(
                    shown.select("scheduler", "size_kb", "mean", "low", "high", "flows", "missing"),
                    names,
                    x=("size_kb", "size (kB)"),
                    y=("mean", "mean completion time (s)"),
                    log="xy",
                    points=True,
                    interval=True,
                ),
                title="Completion time by size",
                about=f"Mean of the complete transfers. {INTERVALS}",
            )
        )
    made += _short_transfers(folder, found)
    if found.classes["slowdown"].count():
        made += [
            chart(
                charts.dots(
                    with_class_names(own).select(
                        "size_class", "scheduler", "slowdown", low="slowdown", high="slowdown"
                    ),
                    names,
                    value=("slowdown", "mean slowdown (× idle)"),
                    rows="size_class",
                    order=ORDER,
                    log=True,
                ),
                title=f"Slowdown by class{_of(traffic, found)}",
                about="Completion time over what the same transfer takes on an idle link.",
            )
            for (traffic,), own in found.classes.drop_nulls("slowdown")
            .partition_by("traffic", maintain_order=True, as_dict=True)
            .items()
        ]
    return made


def _of(traffic: object, found: Numbers) -> str:
    several = found.classes["traffic"].n_unique() > 1
    return f", {traffic}" if several else ""


def _least(folder: Folder) -> int:
    """Fewest flows that a bin should have: 30, fewer where all are few."""
    flows = folder.tables["flows"].filter(pl.col("kind").is_in(list(data.ENDING)))
    count, schedulers = flows.select(pl.len(), n=pl.col("scheduler").n_unique()).collect().row(0)
    each = int(count) // max(int(schedulers), 1)
    return max(3, min(30, each // 20))


def _short_transfers(folder: Folder, found: Numbers) -> list[Block]:
    if CLASSES[0] not in found.classes["size_class"].to_list():
        return []
    short = rows(folder, "flows").filter(
        pl.col("kind") == "transfer", pl.col("size_class") == CLASSES[0]
    )
    curve = scaled(data.cdf(short), "completion_ns", "value")
    if curve.is_empty():
        return []
    return [
        chart(
            charts.lines(
                curve.select("scheduler", "value", "fraction"),
                found.schedulers,
                x=("value", "completion time (s)"),
                y=("fraction", "share of transfers"),
                log="x",
                step=True,
            ),
            title="Short transfers (at most 20 packets)",
            about="Share complete within a time. A curve ends below 1 where some never completed.",
        )
    ]


def _waits(folder: Folder, found: Numbers) -> list[Block]:
    made = []
    waits = found.waits.drop_nulls("mean_ms")
    order = ["all", *ORDER]
    if not waits.is_empty():
        made.append(
            chart(
                charts.dots(
                    with_class_names(waits).select(
                        "size_class",
                        "scheduler",
                        "mean_ms",
                        "max_ms",
                        "dropped_percent",
                        low="mean_ms",
                        high="mean_ms",
                    ),
                    found.schedulers,
                    value=("mean_ms", "mean time in the queue (ms)"),
                    rows="size_class",
                    order=order,
                    log=True,
                ),
                title="Time in the queue",
                about="Mean of the packets that left, by the number of "
                "packets that the capture has of their flow.",
            )
        )
    curve = scaled(data.cdf(folder, "queueing_mean_ns"), "queueing_mean_ns", "value")
    if not curve.is_empty():
        made.append(
            chart(
                charts.lines(
                    curve.select("scheduler", "value", "fraction"),
                    found.schedulers,
                    x=("value", "mean time of a flow's packets in the queue (ms)"),
                    y=("fraction", "share of flows"),
                    step=True,
                ),
                title="Time in the queue, by flow",
                about="Every flow counts once, long or short. A curve ends below 1 where all "
                "packets of some flows were dropped.",
            )
        )
    by_size = scaled(
        data.mean_by_size(folder, "queueing_mean_ns", least=_least(folder)),
        "queueing_mean_ns",
        "mean",
        "low",
        "high",
    )
    if by_size.drop_nulls("mean")["size_bytes"].n_unique() > 1:
        made.append(
            chart(
                charts.lines(
                    by_size.with_columns(size_kb=pl.col("size_bytes") / 1e3).select(
                        "scheduler", "size_kb", "mean", "low", "high", "flows"
                    ),
                    found.schedulers,
                    x=("size_kb", "bytes of the flow in the capture (kB)"),
                    y=("mean", "mean time in the queue (ms)"),
                    log="x",
                    points=True,
                ),
                title="Time in the queue by size",
                about="Mean over flows; bins of size have enough flows under every scheduler.",
            )
        )
    return made


def _streams(folder: Folder, found: Numbers) -> list[Block]:
    made = []
    probes = rows(folder, "probes")
    streams = found.streams["stream"].unique(maintain_order=True).to_list()
    for stream in streams[:MANY]:
        curve = data.cdf(probes.filter(pl.col("stream") == stream), "delay_ns", points=150)
        curve = scaled(curve, "delay_ns", "value")
        if curve.is_empty():
            continue
        made.append(
            chart(
                charts.lines(
                    curve.select("scheduler", "value", "fraction"),
                    found.schedulers,
                    x=("value", "delay (ms)"),
                    y=("fraction", "share of packets"),
                    log="x",
                    step=True,
                    height=2.6,
                ),
                title=f"Delay of {stream}",
                about="Share of packets that arrived within a time; the rest, up to 1, was lost.",
            )
        )
    made += _left_out("streams", streams)
    losses = found.streams.filter(pl.col("lost").sum().over("stream") > 0)
    if not losses.is_empty():
        made.append(
            chart(
                charts.dots(
                    losses.select("stream", "scheduler", "lost_percent", "low", "high", "sent"),
                    found.schedulers,
                    value=("lost_percent", "packets lost (%)"),
                    rows="stream",
                    order=losses["stream"].unique(maintain_order=True).to_list(),
                ),
                title="Losses of streams",
                about=INTERVALS,
            )
        )
    return made


def _left_out(what: str, names: list[str]) -> list[Block]:
    """Says what has no chart of its own."""
    left = names[MANY:]
    if not left:
        return []
    words = f"{len(left)} more {what} have no figure here: {', '.join(left)}."
    return [text(words, small=True)]


def _queues(folder: Folder, found: Numbers) -> list[Block]:
    made = []
    busy: set[str] = set()
    for value, title, axis in (
        ("backlog_packets", "Queue over time", "backlog (packets)"),
        ("flow_entries", "Flow table over time", "entries in the flow table"),
    ):
        try:
            series = data.time_series(folder, value, points=150)
        except InputError:
            continue
        if value == "backlog_packets":
            longest = series.group_by("link").agg(pl.col("high").max())
            busy = set(longest.filter(pl.col("high") > IDLE_PACKETS)["link"])
        else:
            # Schedulers without a flow table have nothing to show.
            series = series.filter(pl.col("high").max().over("scheduler", "link") > 0)
        own_links = [name for name in series["link"].unique(maintain_order=True) if name in busy]
        for link in own_links[:MANY]:
            own = series.filter(pl.col("link") == link)
            spread = value == "flow_entries" and own["high"].max() > 200  # type: ignore[operator]
            made.append(
                chart(
                    charts.lines(
                        own.select("scheduler", "t_s", "mean", "low", "high"),
                        found.schedulers,
                        x=("t_s", "time (s)"),
                        y=("mean", axis),
                        log="y" if spread else "",
                        height=2.6,
                    ),
                    title=f"{title}, {link}",
                    about="The first run (seed, round); mean of short windows of time.",
                )
            )
        made += _left_out("busy links", own_links)
    return made


def _drops(found: Numbers) -> list[Block]:
    lane = (
        pl.when(pl.col("lane").is_null())
        .then(pl.lit("outside the scheduler"))
        .when(pl.col("lane") == 0)
        .then(pl.lit("short or only lane"))
        .otherwise(pl.lit("long lane"))
    )
    made = []
    links = found.drops["link"].unique(maintain_order=True).to_list()
    for link in links[:MANY]:
        own = found.drops.filter(pl.col("link") == link)
        parts = (
            own.with_columns(part=lane + ": " + pl.col("reason"))
            .group_by("scheduler", "part")
            .agg(pl.col("packets").sum())
            .sort("part", "scheduler")
        )
        places = {part: i for i, part in enumerate(parts["part"].unique(maintain_order=True))}
        parts = parts.with_columns(place=pl.col("part").replace_strict(places))
        made.append(
            chart(
                charts.stacked(parts, found.schedulers, value=("packets", "packets dropped")),
                title=f"Drops, {link}",
                about="By lane and reason, all runs together.",
            )
        )
    return made + _left_out("links with drops", links)
