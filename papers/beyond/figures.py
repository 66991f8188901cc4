"""The figures of what no paper has published on: a mean never without its tail."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shortlane.figures import style
from shortlane.figures.draw import plain_numbers
from shortlane.paper.drawing import Plot
from shortlane.paper.runs import Runs
from shortlane.paper.statistics import PerSeed

from .stats import STATISTICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "FIGURES"]

#: The figures are drawn by the statistics of the rows, which say what they read.
COLUMNS: Mapping[str, Mapping[str, Collection[str]]] = {}

SHORT, LONG = [1, 29_200], [730_001, 100_000_000]
SHORT_100, LONG_100 = [1, 20_000], [1_000_000, 10**12]
MEDIUM = [29_201, 730_000]
EVERY = [
    "srpt",
    "efd",
    "efd:low-share=0.1",
    "run2c",
    "run2c-seq",
    "x-protect",
    "sift",
    "sb",
    "sb-ko",
    "sb-sh",
    "auto",
    "las",
    "lars",
    "rio-ps",
    "drr",
    "scfq",
    "wfq",
    "wf2q+",
    "fsc",
    "fq-codel",
    "codel",
    "fred",
    "red",
    "fifo",
]


def value(runs: Runs, point: str, name: str, **arguments: Any) -> float:
    """The mean of a statistic over seeds, as the tables have it; NaN if no seed has one."""
    statistic = STATISTICS[name]
    sample = statistic(runs.at(point), **arguments)
    values = list(sample.values.values()) if isinstance(sample, PerSeed) else []
    if not values:
        return math.nan
    if statistic.scale == "ratio":
        return math.exp(sum(map(math.log, values)) / len(values))
    return sum(values) / len(values)


#: A mark: the matplotlib marker, what it is, its value for each name.
Mark = tuple[str, str, Callable[[str], float]]


def _dots(
    axes: "Axes", names: Sequence[str], marks: Sequence[Mark], label: str, *, log: bool = True
) -> None:
    """A line for each name with its marks on it, the least and the largest joined."""
    looks = style.looks(names)
    for place, name in enumerate(names):
        color, found = looks[name].color, [mark(name) for _, _, mark in marks]
        shown = [one for one in found if math.isfinite(one)]
        if shown:
            axes.hlines(place, min(shown), max(shown), colors=color, linewidth=0.8)
        for (marker, _, _), one in zip(marks, found, strict=True):
            axes.plot(one, place, marker=marker, color=color, markersize=4, linestyle="none")
    for marker, words, _ in marks:
        axes.plot([], [], marker=marker, color="#333333", linestyle="none", label=words)
    if log:
        axes.set_xscale("log")
        plain_numbers(axes, "x")
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(label)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=len(marks), handlelength=1, columnspacing=1
    )


def _panels(columns: int, height: float) -> "tuple[Figure, Sequence[Axes]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(style.PAGE, height), layout="constrained")
    return figure, figure.subplots(1, columns, sharey=True, squeeze=False)[0]


def _everyone(point: str, short: list[int], long: list[int]) -> Callable[[Runs], "Figure"]:
    def draw(runs: Runs) -> "Figure":
        def slowdown(between: list[int], quantile: float | None) -> Callable[[str], float]:
            return lambda name: value(
                runs, point, "slowdown", scheduler=name, between=between, quantile=quantile
            )

        def ping(quantile: float | None) -> Callable[[str], float]:
            return lambda name: value(runs, point, "ping-wait", scheduler=name, quantile=quantile)

        figure, (left, middle, right) = _panels(3, 4.4)
        tail = [("|", "p95", slowdown(short, 0.95)), (">", "p99", slowdown(short, 0.99))]
        mean: Mark = ("o", "mean", slowdown(short, None))
        _dots(left, EVERY, [mean, *tail], "short transfers (x idle)")
        far: Mark = ("|", "p95", slowdown(long, 0.95))
        _dots(middle, EVERY, [("o", "mean", slowdown(long, None)), far], "long transfers (x idle)")
        waits: list[Mark] = [("o", "mean", ping(None)), (">", "p99", ping(0.99))]
        _dots(right, EVERY, waits, "the ping waits (ms)")
        return figure

    return draw


HALF_LIVES = (0.5, 1, 2, 5, 10, 20, 60)


def _lockout(runs: Runs) -> "Figure":
    def lars(name: str, **arguments: Any) -> list[float]:
        labels = ["500ms" if half == 0.5 else f"{half}s" for half in HALF_LIVES]
        labels = [f"lars:half-life={one}" for one in labels]
        return [value(runs, "lockout", name, scheduler=one, **arguments) for one in labels]

    figure, (above, below) = style.new_figure(2, width=1.4 * style.COLUMN, height=2.1)
    look = style.looks(["lars"])["lars"]
    above.plot(HALF_LIVES, lars("stall", largest=3), **look.line)
    above.plot(HALF_LIVES, HALF_LIVES, color="#999999", linewidth=0.7)
    above.text(4, 4.6, "one half-life", color="#777777", fontsize=6, ha="right")
    levels = [(n, value(runs, "lockout", "stall", scheduler=n, largest=3)) for n in OTHERS]
    _beside(above, levels)
    above.set_ylabel("longest wait of the\n3 largest (s)")
    below.plot(HALF_LIVES, lars("slowdown", between=LONG), label="long, mean", **look.line)
    tail = look.line | {"marker": "|", "markeredgecolor": look.color, "linestyle": "dotted"}
    below.plot(HALF_LIVES, lars("slowdown", between=LONG, quantile=0.95), label="p95", **tail)
    short = look.line | {"color": "#0072B2", "marker": "s", "linestyle": "solid"}
    below.plot(HALF_LIVES, lars("slowdown", between=SHORT), label="short, mean", **short)
    medium = look.line | {"color": "#E69F00", "marker": "D", "linestyle": "solid"}
    below.plot(HALF_LIVES, lars("slowdown", between=MEDIUM), label="medium, mean", **medium)
    below.set_ylabel("slowdown under LARS\n(x idle)")
    below.set_xlabel("half-life (s)")
    below.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, handlelength=1.6)
    for axes in (above, below):
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_numbers(axes, "x")
        plain_numbers(axes, "y")
    return figure


OTHERS = ("las", "efd", "fifo")


def _beside(axes: "Axes", levels: Sequence[tuple[str, float]]) -> None:
    """Levels of others, named at the right."""
    looks = style.looks([name for name, _ in levels])
    for name, level in levels:
        axes.axhline(level, color=looks[name].color, linewidth=0.8, linestyle=looks[name].linestyle)
        axes.text(
            1.01,
            level,
            name,
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=6,
            color=looks[name].color,
        )


WEIGHTED = (
    "sb:weight=0.6",
    "sb",
    "sb:weight=0.95",
    "sb:weight=1",
    "sb-ko",
    "sb-sh",
    "sb-sh:interval=5s",
    "sift",
    "auto",
    "run2c-seq",
    "efd",
)


def _reordering(runs: Runs) -> "Figure":
    def of(name: str, **arguments: Any) -> Callable[[str], float]:
        return lambda one: value(runs, "weights", name, scheduler=one, **arguments)

    figure, (left, right) = _panels(2, 2.4)
    above = [29_201, 100_000_000]
    flows = of("reordered-flows", between=above)
    _dots(
        left, WEIGHTED, [("o", "packets reordered", of("reordered"))], "of packets (%)", log=False
    )
    _dots(
        right,
        WEIGHTED,
        [("o", "transfers concerned", flows)],
        "of those above 20 packets (%)",
        log=False,
    )
    return figure


PACED = ("unpaced5", "paced5", "unpaced8", "paced8")


def _pacing(runs: Runs) -> "Figure":
    figure, grid = _panels(4, 2.0)
    names = [runs.words(point) for point in PACED]
    points = dict(zip(names, PACED, strict=True))

    def of(name: str, **arguments: Any) -> Callable[[str], float]:
        return lambda one: value(runs, points[one], name, scheduler="efd", **arguments)

    marks: list[tuple[list[Mark], str]] = [
        ([("o", "mean", of("fragments", between=LONG))], "entries of a long one"),
        ([("o", "mean", of("short-lane", between=LONG))], "its short packets (%)"),
        (
            [("o", "mean", of("table-mean")), (">", "p99", of("table-p99"))],
            "flow table (entries)",
        ),
        (
            [
                ("o", "mean", of("slowdown", between=SHORT)),
                (">", "p99", of("slowdown", between=SHORT, quantile=0.99)),
            ],
            "short transfers (x idle)",
        ),
    ]
    for axes, (one, label) in zip(grid, marks, strict=True):
        _dots(axes, names, one, label, log=False)
        axes.set_xlim(left=0)
    return figure


def _split(runs: Runs) -> "Figure":
    def times(size: str, traffic: str) -> Callable[[str], float]:
        return lambda name: value(
            runs,
            f"{size}32",
            "download-ratio",
            scheduler=name,
            traffic=traffic,
            whole=f"{size}1",
        )

    def share(name: str) -> float:
        return value(runs, "share32", "bytes-share", scheduler=name, traffic="mine", other="other")

    figure, (left, middle, right) = _panels(3, 4.4)
    for axes, size, words in ((left, "large", "16 MB"), (middle, "small", "1 MB")):
        both: list[Mark] = [
            ("o", "split", times(size, "mine")),
            ("x", "other", times(size, "other")),
        ]
        _dots(axes, EVERY, both, f"time, {words}: 32 pieces to whole")
        axes.axvline(1, color="#999999", linewidth=0.7)
    _dots(right, EVERY, [("o", "share of 32 against 1", share)], "of the bytes (%)", log=False)
    right.axvline(50, color="#999999", linewidth=0.7)
    return figure


LOADS = {
    "load50": 0.5,
    "load65": 0.65,
    "load80": 0.8,
    "load90": 0.9,
    "load100": 1.0,
    "load120": 1.2,
    "load150": 1.5,
}
#: One discipline with many thresholds: colours of their own tell them apart.
LINES = {
    "auto": style.Look(style.RED, "*", style.SOLID, ""),
    "auto:weight=1": style.Look(style.RED, "s", style.DOTTED, ""),
    "sb-ko:threshold=10packets": style.Look(style.SKY, "v", style.SOLID, ""),
    "sb-ko": style.Look(style.BLUE, "o", style.SOLID, ""),
    "sb-ko:weight=1": style.Look(style.BLUE, "D", style.DASHED, ""),
    "sb-ko:threshold=100packets": style.Look(style.GREEN, "^", style.SOLID, ""),
    "sb-ko:threshold=400packets": style.Look(style.ORANGE, "P", style.SOLID, ""),
    "fifo": style.LOOKS["fifo"],
}


def _loads(runs: Runs) -> "Figure":
    from matplotlib.figure import Figure

    panels: list[tuple[str, str, dict[str, Any]]] = [
        ("short transfers, mean (x idle)", "slowdown", {"between": SHORT}),
        ("short transfers, p99 (x idle)", "slowdown", {"between": SHORT, "quantile": 0.99}),
        ("medium transfers, mean (x idle)", "slowdown", {"between": MEDIUM}),
        ("long transfers, mean (x idle)", "slowdown", {"between": LONG}),
        ("a handshake waits, mean (ms)", "connect-wait", {}),
        ("threshold (packets)", "short-packets", {"between": LONG}),
    ]
    figure = Figure(figsize=(style.PAGE, 4.6), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True)
    for axes, (label, name, arguments) in zip(grid.flat, panels, strict=True):
        for one, look in LINES.items():
            if one == "fifo" and name == "short-packets":
                continue
            line = [value(runs, at, name, scheduler=one, **arguments) for at in LOADS]
            axes.plot(list(LOADS.values()), line, label=one, **look.line)
        axes.set_yscale("log")
        plain_numbers(axes, "y")
        axes.set_title(label, loc="left", pad=3)
    for axes in grid[1]:
        axes.set_xlabel("load")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    return figure


_TAILS = (
    "Dots are means, marks to the right tails; a tail that is missing lies among transfers that "
    "were never completed. Short transfers, long ones, and a ping on a connection that stays open."
)

FIGURES = (
    Plot("1a", "everyone at 8 Mbit/s", _TAILS, _everyone("tcp8", SHORT, LONG)),
    Plot("1b", "everyone at 15 Mbit/s", _TAILS, _everyone("tcp15", SHORT, LONG)),
    Plot("1c", "everyone in scenario 1", _TAILS, _everyone("s1", SHORT_100, LONG_100)),
    Plot("1d", "everyone in scenario 2", _TAILS, _everyone("s2", SHORT_100, LONG_100)),
    Plot(
        "2",
        "lock-out against the half-life of LARS",
        "Above, the longest wait for a new byte among the three largest transfers, with the bound "
        "that theory gives in grey; below, what it costs and whom.",
        _lockout,
    ),
    Plot(
        "4",
        "reordering",
        "Packets that a later one of their flow overtook, and transfers above 20 packets that had "
        "at least one.",
        _reordering,
    ),
    Plot(
        "6",
        "pacing senders under EFD",
        "What EFD remembers of transfers whose senders pace.",
        _pacing,
    ),
    Plot(
        "7",
        "a download in 32 pieces",
        "Left and middle: times of the split download and of the other one, over those where "
        "neither is split (1: nothing gained). Right: what 32 endless downloads get beside one.",
        _split,
    ),
    Plot(
        "8",
        "auto against fixed thresholds and weights",
        "Against the load. The threshold is what long transfers sent by the short lane.",
        _loads,
    ),
)
