"""The figures of the mice and elephants slides, drawn again."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl
from shortlane.figures import style
from shortlane.figures.draw import plain_numbers
from shortlane.paper.drawing import Comparison, Plot
from shortlane.paper.runs import Runs

from .stats import (
    COUNTED_FROM,
    LINK,
    MIX_LASTS,
    PAYLOAD,
    WIRE,
    jain_by_round,
    rounds,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "FIGURES"]

MIX = {
    "flows": ("traffic", "start_ns", "end_ns", "received_bytes"),
    "links": ("rate_bps",),
}

#: What the figures read, by campaign and table.
COLUMNS = {
    "mix-1250": MIX,
    "mix-1500": MIX,
    "loss": {"flows": ("traffic", "completion_ns")},
    "web": {
        "flows": ("traffic", "size_bytes", "start_ns", "planned_ns", "end_ns", "completion_ns"),
        "samples": ("link", "t_ns", "backlog_packets"),
    },
}

ALL = ("drop-tail", "red", "rio-ps")
LOSSES = ("loss1", "loss2", "loss3", "loss5", "loss7", "loss10")
#: Of figure 2, in seconds.
WINDOW = 10
#: The end of the run that rounds may not begin in, in seconds.
SPARE = 250


def _loss(runs: Runs) -> "Figure":
    """Mean and coefficient of variation, a line per size."""
    figure, grid = style.new_figure(2, width=style.COLUMN, height=1.7)
    time = pl.col("completion_ns")
    losses = [float(runs.words(point).split()[0]) for point in LOSSES]
    for traffic, look in (("short", "-"), ("long", "--")):
        of = [
            runs.at(point)["flows"]
            .filter(pl.col("traffic") == traffic)
            .group_by("seed")
            .agg(mean=time.mean() / 1e9, cv=time.std() / time.mean())
            for point in LOSSES
        ]
        name = {"short": "10 packets", "long": "1000 packets"}[traffic]
        for axes, value in zip(grid, ("mean", "cv"), strict=True):
            means = [one.select(pl.col(value).mean()).item() for one in of]
            axes.plot(losses, means, f"k{look}", marker="o", markersize=3, label=name)
    grid[0].set_yscale("log")
    grid[0].set_ylabel("mean time (s)")
    grid[1].set_ylabel("coefficient of variation")
    grid[1].set_ylim(bottom=0)
    grid[1].set_xlabel("packets lost (%)")
    grid[0].legend()
    return figure


def _shares(runs: Runs) -> "Figure":
    """Short flows' data in windows of 10 s, first seed; a flow's come evenly over its time."""
    figure, grid = style.new_figure(2, width=style.COLUMN, height=1.7)
    for point, axes in zip(("m1250", "m1500"), grid, strict=True):
        tables = runs.at(point)
        rate = tables["links"]["rate_bps"][0]
        for name, look in _looks().items():
            first = tables["flows"].filter(
                pl.col("scheduler") == name,
                pl.col("seed") == pl.col("seed").min(),
                pl.col("traffic") == "short",
            )
            found = _in_windows(first)
            shares = [bits / WINDOW / rate for bits in found]
            starts = [place * WINDOW for place in range(len(shares))]
            axes.step(starts, shares, where="post", label=name, **look.line | {"marker": ""})
        axes.set_ylim(0, 0.6)
        axes.set_ylabel(f"short flows' part,\n{runs.words(point)}")
    grid[1].set_xlabel("time (s)")
    grid[0].legend(ncols=3)
    return figure


def _looks() -> dict[str, style.Look]:
    """Drop-tail looks as `fifo` does elsewhere."""
    looks = style.looks(("fifo", *ALL[1:]))
    return {"drop-tail": looks["fifo"], **{name: looks[name] for name in ALL[1:]}}


def _in_windows(flows: pl.DataFrame) -> list[float]:
    """Bits on the wire in each window."""
    windows = pl.DataFrame({"from": range(0, MIX_LASTS * 10**9, WINDOW * 10**9)})
    end = pl.col("end_ns").fill_null(MIX_LASTS * 10**9)
    overlap = pl.min_horizontal(end, pl.col("from") + WINDOW * 10**9) - pl.max_horizontal(
        "start_ns", "from"
    )
    bits = pl.col("received_bytes") * (8 * WIRE / PAYLOAD)
    spread = flows.join(windows, how="cross").with_columns(
        bits=bits * overlap.clip(lower_bound=0) / (end - pl.col("start_ns")).clip(lower_bound=1)
    )
    return spread.group_by("from").agg(pl.col("bits").sum()).sort("from")["bits"].to_list()


def _relative(point: str, schedulers: Sequence[str]) -> Callable[[Runs], "Figure"]:
    """Mean response by size over drop-tail's, the geometric mean over seeds."""

    def draw(runs: Runs) -> "Figure":
        flows = runs.at(point)["flows"].filter(
            pl.col("traffic") == "web",
            pl.col("start_ns") >= COUNTED_FROM * 1e9,
            pl.col("completion_ns").is_not_null(),
        )
        place = (pl.col("size_bytes") / PAYLOAD).log10() * 4
        means = flows.group_by("scheduler", "seed", place.floor().alias("bin")).agg(
            pl.col("completion_ns").mean(), packets=pl.col("size_bytes").mean() / PAYLOAD
        )
        base = means.filter(pl.col("scheduler") == "drop-tail")
        ratio = (pl.col("completion_ns") / pl.col("completion_ns_right")).log()
        found = (
            means.join(base, on=["seed", "bin"])
            .group_by("scheduler", "bin")
            .agg(pl.col("packets").mean(), mean=ratio.mean(), error=ratio.std() / pl.len().sqrt())
            .sort("bin")
        )
        figure, axes = style.figure_and_axes(None)
        for name, look in _looks().items():
            if name not in schedulers:
                continue
            own = found.filter(pl.col("scheduler") == name)
            axes.plot(own["packets"], own["mean"].exp(), label=name, **look.line)
            low = (own["mean"] - 2 * own["error"]).exp()
            high = (own["mean"] + 2 * own["error"]).exp()
            axes.vlines(own["packets"], low, high, colors=look.color, linewidth=0.7)
        axes.axhline(1, color="#888888", linewidth=0.6)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_numbers(axes, "y")
        axes.set_xlabel("size of an object (packets)")
        axes.set_ylabel("mean response, to drop-tail's")
        axes.legend(loc="upper left")
        return figure

    return draw


def _queue(runs: Runs) -> "Figure":
    """Two hundred seconds of the first seed."""
    shown = pl.col("t_ns").is_between(2100e9, 2300e9)
    samples = runs.at("web3")["samples"].filter(pl.col("link") == LINK, shown)
    first = samples.filter(pl.col("seed") == pl.col("seed").min())
    figure, grid = style.new_figure(3, width=style.COLUMN, height=1.1)
    for axes, (name, look) in zip(grid, _looks().items(), strict=True):
        own = first.filter(pl.col("scheduler") == name).sort("t_ns")
        line = look.line | {"marker": "", "linestyle": "-", "linewidth": 0.8}
        axes.plot(own["t_ns"] / 1e9, own["backlog_packets"], **line)
        axes.set_ylim(0, 400)
        axes.set_ylabel(f"packets,\n{name}")
    grid[-1].set_xlabel("time (s)")
    return figure


def _of_rounds(value: str, label: str) -> Callable[[Runs], "Figure"]:
    """A value of the foreground's rounds, mean over seeds: mice above, elephants below."""

    def draw(runs: Runs) -> "Figure":
        figure, grid = style.new_figure(2, width=style.COLUMN, height=1.7)
        flows = runs.at("web3")["flows"]
        for traffic, axes in zip(("mice", "elephants"), grid, strict=True):
            for name, look in _looks().items():
                mine = flows.lazy().filter(pl.col("scheduler") == name)
                shown = (
                    jain_by_round(mine, traffic, SPARE)
                    if value == "index"
                    else rounds(mine, traffic, SPARE).with_columns(pl.col(value) / 1e9)
                )
                means = shown.group_by("planned_ns").agg(pl.col(value).mean()).sort("planned_ns")
                found = means.collect()
                line = look.line | {"marker": ""}
                axes.plot(found["planned_ns"] / 1e9, found[value], label=name, **line)
            axes.set_ylim(bottom=0 if value != "index" else 0.5)
            axes.set_ylabel(f"{label},\n{traffic}")
        grid[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
        grid[1].set_xlabel("start of the round (s)")
        return figure

    return draw


FIGURES = (
    Plot(
        "1",
        "transmission time under random loss",
        "Transfers that meet nothing but random loss: mean transmission time and its coefficient "
        "of variation over the transfers of a run, means over seeds.",
        _loss,
    ),
    Plot(
        "2",
        "what short flows take of the link",
        "Short flows' data in windows of 10 s as a part of the link, one seed.",
        _shares,
    ),
    Comparison(
        "table-1",
        "table I, published and ours",
        "Packets that arrived in 500 s: the slides' numbers next to ours, with 95 % intervals over "
        "seeds that are mostly narrower than the marks. Lines of the first 10 s are what the "
        "findings explain drop-tail's numbers by.",
        ("E-T1a", "E-T1b", "E-T1c"),
        unit="packets",
    ),
    Plot(
        "6a",
        "response time of web objects, first timeout of 3 s",
        "Mean response time by size over drop-tail's, geometric mean over seeds with twice its "
        "standard error; four bins a decade. Large objects are few.",
        _relative("web3", ALL),
    ),
    Plot(
        "6b",
        "response time of web objects, first timeout of 1 s",
        "As figure 6a; RED was not run.",
        _relative("web1", ("drop-tail", "rio-ps")),
    ),
    Plot(
        "7a",
        "the queue",
        "The bottleneck's queue, once a second, one seed. Drop-tail holds 300 packets, the others "
        "500.",
        _queue,
    ),
    Plot(
        "8a",
        "fairness of foreground transfers",
        "Jain's index over the ten transfers of a round, mean over seeds: 10 packets above, 1000 "
        "below (the slides' figure 8b).",
        _of_rounds("index", "Jain's index"),
    ),
    Plot(
        "9a",
        "transmission time of foreground transfers",
        "Mean over the ten transfers of a round and over seeds: 10 packets above, 1000 below (the "
        "slides' figure 9b).",
        _of_rounds("completion_ns", "time (s)"),
    ),
)
