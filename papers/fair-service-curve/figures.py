"""The figures of the fair service curve paper, drawn again."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from shortlane import stats
from shortlane.figures import style
from shortlane.paper.drawing import Plot
from shortlane.paper.runs import Runs

from .stats import departures, fsc, group_ratios, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "FIGURES"]

#: What the figures read, by campaign and table.
COLUMNS = {
    "burst": {"probes": ("stream", "sent_ns", "delay_ns")},
    "grid": {"flows": ("traffic", "completion_ns")},
    "groups": {"flows": ("traffic", "completion_ns")},
}

#: Preferred bursts of figure 3 in packets, of figure 4 in bytes; ratios of figure 4.
PACKETS = (0, 4, 8, 16, 32)
GRID = (1000, 2000, 4000, 6000, 8000, 11000, 16000, 22000, 32000, 64000, 1000000)
RATIOS = (2, 4, 8, 16)
#: Lengths of the groups in bytes.
LENGTHS = (300, 600, 1000, 1700, 2700, 4000, 6000, 10910, 40000, 400000)
#: Lines of one figure, from the least to the largest value.
COLORS = (style.BLACK, style.SKY, style.GREEN, style.ORANGE, style.RED)
MARKERS = ("o", "s", "^", "D", "v")


def _line(place: int) -> dict[str, Any]:
    return {
        "color": COLORS[place],
        "marker": MARKERS[place],
        "markersize": 3.0,
        "markeredgewidth": 0.4,
        "markeredgecolor": "white",
    }


def _bursts(runs: Runs) -> "Figure":
    """Departures of one seed: a panel a burst."""
    figure, grid = style.new_figure(2, width=style.COLUMN, height=1.8)
    probes = runs.at("burst")["probes"]
    one = probes.filter(pl.col("seed") == pl.col("seed").min())
    for place, packets in enumerate(PACKETS):
        found = departures(one, fsc(5, 1000 * packets))
        for burst, axes in enumerate(grid):
            own = found.filter(pl.col("burst") == burst)
            axes.plot(
                (own["since_ns"] / 1e6).to_list(),
                own["place"].to_list(),
                label=f"{packets}",
                markevery=4,
                **_line(place),
            )
    for axes, name in zip(grid, ("first", "second"), strict=True):
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"packets, {name} burst")
    grid[-1].set_xlabel("time since the burst began (ms)")
    _legend(grid[0], "PBS in packets")
    return figure


def _grid(runs: Runs) -> "Figure":
    """Mean transfer time of group 8 with its interval over seeds."""
    figure, axes = style.figure_and_axes(None, height=2.5)
    tables = runs.at("grid")
    x = [pbs / 1000 for pbs in GRID]
    _with_interval(axes, x, [times(tables, "pfq", "group8")] * len(GRID), "1 (PFQ)", 0)
    for place, bpr in enumerate(RATIOS, start=1):
        found = [times(tables, fsc(bpr, pbs), "group8") for pbs in GRID]
        _with_interval(axes, x, found, f"{bpr}", place)
    axes.axvline(10.910, color="#999999", linewidth=0.7, linestyle=":")
    axes.set_xscale("log")
    axes.set_xticks(
        [1, 2, 4, 10, 20, 50, 100, 1000], ["1", "2", "4", "10", "20", "50", "100", "1000"]
    )
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("PBS (kB)")
    axes.set_ylabel("mean transfer time (ms)")
    _legend(axes, "BPR")
    return figure


def _with_interval(
    axes: "Axes", x: Sequence[float], found: Sequence[dict[int, float]], label: str, place: int
) -> None:
    means = [stats.mean(list(one.values())) for one in found]
    y = [one.value * 1e3 if one else math.nan for one in means]
    axes.plot(x, y, label=label, **_line(place))
    low, high = (
        [
            getattr(one, end) * 1e3 if one and getattr(one, end) is not None else math.nan
            for one in means
        ]
        for end in ("low", "high")
    )
    axes.vlines(x, low, high, colors=COLORS[place], linewidth=0.5, alpha=0.6)


def _groups(runs: Runs) -> "Figure":
    """The ratio of each group's mean transfer time to that under PFQ."""
    figure, axes = style.figure_and_axes(None)
    names = [f"group{number}" for number in range(1, len(LENGTHS) + 1)]
    found = group_ratios(runs.at("groups"), fsc(4, 6000), "pfq", names)
    means = [stats.mean([math.log(ratio) for ratio in one.values()]) for one in found]
    look = style.LOOKS["fsc"]
    y = [math.exp(mean.value) if mean else math.nan for mean in means]
    axes.plot(LENGTHS, y, **look.line)
    for length, mean in zip(LENGTHS, means, strict=True):
        if mean and mean.low is not None and mean.high is not None:
            low, high = math.exp(mean.low), math.exp(mean.high)
            axes.vlines(length, low, high, colors=look.color, linewidth=0.8)
    axes.axhline(1, color="#999999", linewidth=0.7)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("length of the group's flows (bytes)")
    axes.set_ylabel("transfer time, to PFQ")
    return figure


def _legend(axes: "Axes", title: str) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=5,
        borderaxespad=0.2,
        columnspacing=1.0,
        handlelength=1.6,
        title=title,
        title_fontsize=7,
        alignment="left",
    )


FIGURES = (
    Plot(
        "3",
        "departures of two bursts",
        "Packets of a burst that have departed, BPR 5, by PBS in packets of 1000 bytes: the "
        "steeper part of a curve is the preferred burst. One seed.",
        _bursts,
    ),
    Plot(
        "4",
        "group 8 over PBS and BPR",
        "Mean transfer time of flows of 10,910 bytes (dotted), with 95 % intervals over seeds. "
        "The intervals are wide because minutes differ; all points have the same arrivals.",
        _grid,
    ),
    Plot(
        "groups",
        "all groups at BPR 4, PBS 6000 bytes",
        "Mean transfer time to that under PFQ, the mean of the seeds' ratios with 95 % intervals. "
        "The paper: most groups below 1, some below 0.5, the largest at 1.01.",
        _groups,
    ),
)
