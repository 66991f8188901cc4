"""The figures of the flow scheduler paper, drawn again."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl
from shortlane import figures
from shortlane.figures import data, style
from shortlane.paper.drawing import Comparison, Plot
from shortlane.paper.runs import Runs

from .stats import PACKET, SMALL, WAITS, counted, occupancies, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "FIGURES"]

#: What the figures read, by campaign and table.
FLOWS = ("kind", "index", "start_ns", "size_bytes", "completion_ns")
COLUMNS = {
    "s1": {"flows": FLOWS},
    "s2": {"flows": FLOWS},
    "queues": {"flows": WAITS, "blocks": ("duration_ns",)},
}

SCENARIOS = ("s1", "s2")
#: Tables 1 and 2, and 3 and 4.
WEIGHTED = ("fifo", "sb", "sb:weight=1", "sb-ko", "sb-ko:weight=1")
SAMPLED = ("fifo", "sift", "sb-ko", "sb-sh")
#: The schedulers of figure 3 by their weight.
WEIGHTS = {
    **{f"sb:weight={weight:g}": weight for weight in (0.1, 0.2, 0.3, 0.6, 0.7)},
    "sb": 0.8,
    "sb:weight=0.9": 0.9,
    "sb:weight=1": 1.0,
}
#: For legends with parameters, in inches.
WIDE = 4.5
#: The paper's ranges of sizes in packets.
RANGES = {
    "1-20": (1, 20),
    "21-200": (21, 200),
    "201-2000": (201, 2000),
    "2001-20 000": (2001, 20_000),
    "larger": (20_001, 1 << 40),
}


def _occupancy(runs: Runs) -> "Figure":
    tables = runs.at("queues")
    found = [
        {"weight": weight, "mean_packets": value}
        for name, weight in WEIGHTS.items()
        for value in occupancies(tables, name).values()
    ]
    means = data.estimates(pl.DataFrame(found), "mean_packets", by=["weight"])
    figure, axes = style.figure_and_axes(None)
    look = style.looks(["sb"])["sb"]
    weights = means["weight"].to_list()
    axes.plot(weights, means["mean"].to_list(), **look.line)
    low, high = means["low"].clip(lower_bound=1e-3), means["high"]
    axes.vlines(weights, low.to_list(), high.to_list(), colors=look.color)
    axes.set_yscale("log")
    axes.set_xlabel("weight of the high lane")
    axes.set_ylabel("packets in the high lane, mean")
    return figure


def _by_small_size(
    schedulers: Sequence[str], value: pl.Expr, label: str
) -> Callable[[Runs], "Figure"]:
    """A panel a scenario: a statistic of completion times for each small size in packets."""

    def draw(runs: Runs) -> "Figure":
        figure, grid = style.new_figure(len(SCENARIOS), width=WIDE, height=2.0)
        for point, axes in zip(SCENARIOS, grid, strict=True):
            look = style.looks(schedulers)
            for name in schedulers:
                cells = counted(runs.at(point)["flows"], name, SMALL)
                of_one = cells.group_by("seed", size().alias("packets")).agg(value.alias("value"))
                found = data.estimates(of_one.collect(), "value", by=["packets"]).sort("packets")
                axes.plot(
                    found["packets"].to_list(),
                    found["mean"].to_list(),
                    label=name,
                    **look[name].line,
                )
            axes.set_ylim(bottom=0)
            axes.set_ylabel(f"{label},\n{runs.words(point)}")
        grid[-1].set_xticks(range(2, SMALL[1] + 1, 2))
        grid[-1].set_xlabel(f"size (packets of {PACKET} B)")
        _legend_above(grid[0])
        return figure

    return draw


def _large_sizes(runs: Runs) -> "Figure":
    figure, grid = style.new_figure(len(SCENARIOS), width=WIDE, height=2.0)
    for point, axes in zip(SCENARIOS, grid, strict=True):
        flows = runs.at(point)["flows"]
        large = [counted(flows, name, (SMALL[1] + 1, 1 << 40)).collect() for name in WEIGHTED]
        figures.mean_by_size(pl.concat(large), packet_bytes=PACKET, bins_per_decade=4, axes=axes)
        axes.set_ylabel(f"mean completion time (s),\n{runs.words(point)}")
    grid[0].set_xlabel("")
    return figure


def _by_range(point: str, schedulers: Sequence[str]) -> Callable[[Runs], "Figure"]:
    """Mean completion time by range of sizes, to FIFO's over the same seeds."""

    def draw(runs: Runs) -> "Figure":
        means = [
            counted(runs.at(point)["flows"], name, limits)
            .group_by("seed", maintain_order=True)
            .agg(pl.col("completion_ns").mean().alias("mean"))
            .sort("seed")
            .select("seed", "mean", scheduler=pl.lit(name), range=pl.lit(words))
            .collect()
            for words, limits in RANGES.items()
            for name in schedulers
        ]
        every = pl.concat(means)
        reference = every.filter(pl.col("scheduler") == "fifo").rename({"mean": "reference"})
        ratios = every.join(
            reference.drop("scheduler"), on=["seed", "range"], maintain_order="left"
        ).with_columns(ratio=pl.col("mean") / pl.col("reference"))
        figure = figures.bars(
            ratios.filter(pl.col("scheduler") != "fifo"),
            "ratio",
            group="range",
            group_label=f"size (packets of {PACKET} B)",
            label="mean completion time, to fifo's",
            width=WIDE,
        )
        figure.axes[0].axhline(1.0, color="#333333", linewidth=0.6)
        return figure

    return draw


def _legend_above(axes: "Axes") -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.1)


MEAN = pl.col("completion_ns").mean() / 1e9
LONGEST = pl.col("completion_ns").max() / 1e9

FIGURES = (
    Plot(
        "3",
        "the high lane's occupancy by its weight",
        "SB without knockout in scenario 1: mean packets in the high lane with 95 % intervals over "
        "seeds, by Little's law from the waits of the flows that were only there.",
        _occupancy,
    ),
    Comparison(
        "tables-timeouts",
        "tables 1 and 2, timeouts of small flows",
        "Ratios of timeouts, published and ours with the interval that the verdict goes by; grey: "
        "what counts as reproduced. Row B-T1a has the numbers themselves.",
        ("B-T1a",),
        unit="x",
    ),
    Comparison(
        "tables-1-2",
        "tables 1 and 2, completion times",
        "Ratios of mean completion times, as above. Rows B-T1b to B-T2 have the times themselves.",
        ("B-T1b", "B-T1c", "B-T1d", "B-T2"),
        unit="x",
    ),
    Comparison(
        "tables-3-4",
        "tables 3 and 4, and theta = 100",
        "As above, for the schedulers that sample.",
        ("B-T3a", "B-T4a", "B-T3b", "B-TH"),
        unit="x",
    ),
    Plot(
        "4a-6a",
        "small flows by size",
        "Mean completion time of flows of 1 to 20 packets: figure 4a is scenario 1, 6a scenario 2.",
        _by_small_size(WEIGHTED, MEAN, "mean completion time (s)"),
    ),
    Plot(
        "4b-6b",
        "large flows by size",
        "Mean completion time of flows above 20 packets with 95 % intervals over seeds: figure 4b "
        "is scenario 1, 6b scenario 2.",
        _large_sizes,
    ),
    Plot(
        "5a",
        "ranges of sizes, scenario 1",
        "Mean completion time by range, to FIFO's of the same seed, with 95 % intervals.",
        _by_range("s1", WEIGHTED),
    ),
    Plot(
        "5b-7b",
        "the slowest small flow by size",
        "Longest completion time of a run, mean over seeds: figure 5b is scenario 1, 7b scenario "
        "2.",
        _by_small_size(WEIGHTED, LONGEST, "longest completion (s)"),
    ),
    Plot(
        "7a",
        "ranges of sizes, scenario 2",
        "As figure 5a.",
        _by_range("s2", WEIGHTED),
    ),
    Plot(
        "8-9a-10",
        "small flows by size, with sampling",
        "Mean completion time of flows of 1 to 20 packets: figure 8 is scenario 1, 10 scenario 2.",
        _by_small_size(SAMPLED, MEAN, "mean completion time (s)"),
    ),
    Plot(
        "9b-11b",
        "the slowest small flow by size, with sampling",
        "Longest completion time of a run, mean over seeds: figure 9b is scenario 1, 11b scenario "
        "2.",
        _by_small_size(SAMPLED, LONGEST, "longest completion (s)"),
    ),
    Plot(
        "9a",
        "ranges of sizes with sampling, scenario 1",
        "Mean completion time by range, to FIFO's of the same seed, with 95 % intervals.",
        _by_range("s1", SAMPLED),
    ),
    Plot(
        "11a",
        "ranges of sizes with sampling, scenario 2",
        "As figure 9a.",
        _by_range("s2", SAMPLED),
    ),
)
