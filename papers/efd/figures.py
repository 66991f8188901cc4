"""The figures of the EFD paper, drawn again."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl
from shortlane import figures
from shortlane.figures import style
from shortlane.paper.drawing import Plot
from shortlane.paper.runs import Runs
from shortlane.paper.shared import BOTTLENECK
from shortlane.paper.statistics import MSS, packets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "FIGURES"]

#: What the figures read, by campaign and table.
COLUMNS = {
    "tcp": {
        "flows": (
            "kind",
            "size_bytes",
            "completion_ns",
            "complete",
            "fragments",
            "received_bytes",
        ),
        "samples": ("link", "t_ns", "flow_entries"),
    },
    "cbr": {"flows": ("kind", "packets", "dropped_packets")},
    "progress": {"progress": ("traffic", "index", "t_ns", "received_bytes")},
}

TCP = ("fifo", "las", "lars", "run2c", "efd")
TABLES = ("las", "x-protect", "efd")
CBR = ("fifo", "las", "lars", "run2c", "scfq", "efd")
LOADS = ("tcp8", "tcp15")
#: For legends with counts, in inches.
WIDE = 4.5
#: Where the tables' sizes differ by two orders of magnitude: rising edges, whole numbers.
EDGES = tuple(sorted({round(10 ** (step / 12)) for step in range(42)}))


def _fragments(runs: Runs) -> "Figure":
    """A dot a connection of the first seed; the line is the mean over all seeds."""
    done = _of(runs.at("tcp8")["flows"], ["efd"]).filter("complete")
    figure, axes = style.figure_and_axes(None)
    figures.mean_by_size(done, "fragments", packet_bytes=MSS, axes=axes)
    one = done.filter(pl.col("seed") == pl.col("seed").min(), pl.col("fragments") > 0)
    axes.scatter(
        (one["size_bytes"] / MSS).to_list(),
        one["fragments"].to_list(),
        s=1.5,
        color="#999999",
        linewidths=0,
        zorder=0.5,
    )
    axes.set_yscale("linear")
    axes.set_ylim(0, max(20.0, one["fragments"].quantile(0.995) or 0.0))
    axes.set_ylabel("fragments of a connection")
    return figure


def _table_over_time(runs: Runs) -> "Figure":
    return _two_loads(
        lambda frame, axes: figures.time_series(frame, "flow_entries", log=True, axes=axes),
        "entries",
        runs,
    )


def _table_sizes(runs: Runs) -> "Figure":
    def draw(frame: pl.DataFrame, axes: "Axes") -> None:
        settled = frame.filter(pl.col("t_ns") >= 50e9)
        figures.histogram(settled, "flow_entries", edges=EDGES, log=True, axes=axes)

    return _two_loads(draw, "share of samples", runs)


def _two_loads(draw: Callable[[pl.DataFrame, "Axes"], object], label: str, runs: Runs) -> "Figure":
    figure, grid = style.new_figure(len(LOADS), width=style.COLUMN, height=2.0)
    for point, axes in zip(LOADS, grid, strict=True):
        samples = runs.at(point)["samples"].filter(pl.col("link") == BOTTLENECK)
        draw(_of(samples, TABLES), axes)
        axes.set_ylabel(f"{label}, {runs.words(point)}")
    for axes in grid[1:]:
        _without_legend(axes)
    grid[0].set_xlabel("")
    return figure


def _incomplete(runs: Runs) -> "Figure":
    flows = _of(runs.at("tcp15")["flows"], TCP).filter(pl.col("kind") == "transfer")
    lost = flows.filter(~pl.col("complete")).with_columns(
        transferred_packets=packets("received_bytes").clip(lower_bound=1)
    )
    figure = figures.cdf(lost, "transferred_packets")
    figure.axes[0].set_xlabel("packets transferred by the end (none: 1)")
    figure.axes[0].set_ylabel("share of incomplete transfers")
    return figure


def _response(point: str) -> Callable[[Runs], "Figure"]:
    def draw(runs: Runs) -> "Figure":
        flows = _of(runs.at(point)["flows"], TCP)
        return figures.mean_by_size(flows, packet_bytes=MSS, width=WIDE)

    return draw


def _progress(runs: Runs) -> "Figure":
    """On a clock that starts with a transfer's first byte under any scheduler."""
    progress = _of(runs.at("progress")["progress"], ("las", "lars", "efd", "run2c"))
    first = pl.col("t_ns").min().over("traffic", "index")
    figure = figures.progress(progress.with_columns(pl.col("t_ns") - first))
    figure.axes[-1].set_xlabel("time since the first byte (s)")
    return figure


def _stream_loss(points: Sequence[str]) -> Callable[[Runs], "Figure"]:
    def draw(runs: Runs) -> "Figure":
        losses = [
            _of(runs.at(point)["flows"], CBR)
            .filter(pl.col("kind") == "stream")
            .group_by("scheduler", "seed", maintain_order=True)
            .agg(lost_percent=100 * pl.col("dropped_packets").sum() / pl.col("packets").sum())
            .with_columns(load=pl.lit(runs.words(point).removeprefix("TCP at ")))
            for point in points
        ]
        return figures.bars(
            pl.concat(losses),
            group="load",
            group_label="offered by TCP",
            label="stream's packets lost (%)",
        )

    return draw


def _of(frame: pl.DataFrame, schedulers: Sequence[str]) -> pl.DataFrame:
    """The rows of these schedulers, in their order."""
    parts = [frame.filter(pl.col("scheduler") == name) for name in schedulers]
    return pl.concat(parts)


def _without_legend(axes: "Axes") -> None:
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()


FIGURES = (
    Plot(
        "1b",
        "fragments of a connection",
        "TCP at 8 Mbit/s under EFD: how many entries in the flow table a complete connection had "
        "one after another, by its size. The line is the mean with its 95 % interval over seeds, "
        "dots are the connections of one seed.",
        _fragments,
    ),
    Plot(
        "2",
        "flow table over time",
        "Entries in the flow table in one run at 8 and at 15 Mbit/s; the band has the least and "
        "most of a short window.",
        _table_over_time,
    ),
    Plot(
        "3",
        "flow table sizes",
        "How often the flow table had so many entries, after 50 s, over all seeds, at 8 and at 15 "
        "Mbit/s. Bins are of equal width on the logarithmic axis, in whole numbers.",
        _table_sizes,
    ),
    Plot(
        "4",
        "incomplete transfers",
        "TCP at 15 Mbit/s: the distribution of what transfers that are incomplete at the end had "
        "got across.",
        _incomplete,
    ),
    Plot(
        "5a",
        "response time by size, 8 Mbit/s",
        "Mean response time of complete transfers with its 95 % interval over seeds.",
        _response("tcp8"),
    ),
    Plot(
        "5b",
        "response time by size, 15 Mbit/s",
        "As figure 5a in overload. What is incomplete is excluded from means, and differs between "
        "schedulers: a lower curve of long transfers may only mean that fewer of them got to the "
        "end.",
        _response("tcp15"),
    ),
    Plot(
        "6",
        "progress of the three largest transfers",
        "TCP at 8 Mbit/s, one seed: a plateau is a time without a new byte. The clock of each "
        "starts with its first byte under any scheduler.",
        _progress,
    ),
    Plot(
        "7a",
        "loss of a 64 kbit/s stream",
        "Packets of the stream that the bottleneck dropped, with 95 % intervals over seeds.",
        _stream_loss(("voice4", "voice8", "voice12")),
    ),
    Plot(
        "7b",
        "loss of a 500 kbit/s stream",
        "As figure 7a for the faster stream.",
        _stream_loss(("video4", "video8", "video12")),
    ),
)
