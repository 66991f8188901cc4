"""The figures of the LAS paper, drawn again."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
from shortlane.figures import style
from shortlane.paper.drawing import Comparison, Plot
from shortlane.paper.runs import Runs

from .stats import PACKET, PAYLOAD, received, window_losses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "FIGURES"]

#: What the figures read, by campaign and table.
COLUMNS = {
    "two-tcp": {"progress": ("traffic", "t_ns", "received_bytes")},
    "tcp-udp": {
        "progress": ("traffic", "t_ns", "received_bytes"),
        "probes": ("stream", "sent_ns", "delay_ns"),
    },
    "chain": {"progress": ("traffic", "t_ns", "received_bytes")},
    "web": {"progress": ("traffic", "t_ns", "received_bytes", "packets", "dropped_packets")},
}

SCHEDULERS = ("fifo", "las")
#: Two connections in one panel: as unlike as FIFO and EFD.
FIRST, SECOND = style.LOOKS["run2c"], style.LOOKS["efd"]
#: Start and windows of figure 10, in seconds.
START, WINDOW = 2000, 500

#: Points of a curve: times in seconds, values.
Curve = tuple[Sequence[float], Sequence[float]]


def _seed(frame: pl.DataFrame) -> pl.DataFrame:
    """The first seed."""
    return frame.filter(pl.col("seed") == pl.col("seed").min())


def _rates(
    frame: pl.DataFrame, scheduler: str, names: Sequence[str], times: Sequence[float]
) -> dict[str, Curve]:
    """Throughput of connections of the first seed between each two times, in kbit/s."""
    found = received(_seed(frame), scheduler, names, times)
    middles = [(before + after) / 2 for before, after in pairwise(times)]
    curves: dict[str, Curve] = {}
    for one in found.values():
        for name, amounts in one.items():
            steps = zip(pairwise(amounts), pairwise(times), strict=True)
            curves[name] = middles, [(b - a) * 8e-3 / (t - s) for (a, b), (s, t) in steps]
    return curves


def _amounts(
    frame: pl.DataFrame, scheduler: str, names: Sequence[str], times: Sequence[float]
) -> dict[str, Curve]:
    """What connections of the first seed have received by each time, in MB."""
    found = received(_seed(frame), scheduler, names, times)
    return {
        name: (times, [amount / 1e6 for amount in amounts])
        for one in found.values()
        for name, amounts in one.items()
    }


def _stream(frame: pl.DataFrame, scheduler: str, times: Sequence[float]) -> Curve:
    """Throughput of the stream of the first seed, in kbit/s of payload as TCP's."""
    arrived = (pl.col("sent_ns") + pl.col("delay_ns")) / 1e9
    own = _seed(frame).filter(pl.col("scheduler") == scheduler).select(at=arrived)["at"]
    counts = [
        own.is_between(before, after, closed="left").sum() for before, after in pairwise(times)
    ]
    lengths = [after - before for before, after in pairwise(times)]
    rates = [int(n) * PAYLOAD * 8e-3 / s for n, s in zip(counts, lengths, strict=True)]
    return [(before + after) / 2 for before, after in pairwise(times)], rates


def _panels(
    draw: Callable[[str], Mapping[str, Curve]], label: str, schedulers: Sequence[str] = SCHEDULERS
) -> "Figure":
    """A panel for each scheduler, a line for each of two connections."""
    figure, grid = style.new_figure(len(schedulers), width=style.COLUMN, height=1.7)
    for scheduler, axes in zip(schedulers, grid, strict=True):
        for (name, (x, y)), look in zip(draw(scheduler).items(), (FIRST, SECOND), strict=False):
            line = look.line | {"markevery": max(1, len(x) // 10)}
            axes.plot(x, y, label=name, **line)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"{label}, {scheduler.upper()}")
    grid[-1].set_xlabel("time (s)")
    _legend(grid[0])
    return figure


def _legend(axes: "Axes") -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.2, columnspacing=1.2
    )


def _steps(end: int, step: int, start: int = 0) -> list[float]:
    return [float(time) for time in range(start, end + 1, step)]


def _two_tcp(runs: Runs) -> "Figure":
    def draw(scheduler: str) -> dict[str, Curve]:
        frame = runs.at("two-tcp")["progress"]
        curves = _rates(frame, scheduler, ("S2", "S1"), _steps(200, 2))
        return {"S2 (1 ms)": curves["S2"], "S1 (100 ms)": curves["S1"]}

    return _panels(draw, "kbit/s")


def _tcp_udp(runs: Runs) -> "Figure":
    def draw(scheduler: str) -> dict[str, Curve]:
        tables, times = runs.at("tcp-udp"), _steps(200, 1)
        tcp = _rates(tables["progress"], scheduler, ["S1"], times)["S1"]
        return {"UDP": _stream(tables["probes"], scheduler, times), "TCP": tcp}

    return _panels(draw, "kbit/s")


def _connection_0(runs: Runs) -> "Figure":
    figure, axes = style.figure_and_axes(None)
    frame, look = runs.at("chain")["progress"], style.looks(SCHEDULERS)
    for scheduler in SCHEDULERS:
        x, y = _rates(frame, scheduler, ["0"], _steps(400, 5))["0"]
        line = look[scheduler].line | {"markevery": max(1, len(x) // 10)}
        axes.plot(x, y, label=scheduler, **line)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("connection 0 (kbit/s)")
    _legend(axes)
    return figure


def _both(point: str, schedulers: Sequence[str] = SCHEDULERS) -> Callable[[Runs], "Figure"]:
    """What connections 0 and 1 have received: where the curves meet, the other takes the lead."""

    def draw(runs: Runs) -> "Figure":
        def curves(scheduler: str) -> dict[str, Curve]:
            frame = runs.at(point)["progress"]
            found = _amounts(frame, scheduler, ("0", "1"), _steps(400, 4))
            return {f"connection {name}": curve for name, curve in found.items()}

        return _panels(curves, "MB", schedulers)

    return draw


def _over_windows(
    values: Callable[[pl.DataFrame, str], dict[int, dict[int, float]]], label: str
) -> Callable[[Runs], "Figure"]:
    """The mean over seeds of what a window has, a line for each scheduler."""

    def draw(runs: Runs) -> "Figure":
        figure, axes = style.figure_and_axes(None)
        frame, look = runs.at("web70")["progress"], style.looks(SCHEDULERS)
        for scheduler in SCHEDULERS:
            found = [
                {"place": place, "value": value}
                for one in values(frame, scheduler).values()
                for place, value in one.items()
            ]
            means = (
                pl.DataFrame(found, schema={"place": pl.Int64, "value": pl.Float64})
                .group_by("place")
                .agg(
                    mean=pl.col("value").mean(),
                    low=pl.col("value").min(),
                    high=pl.col("value").max(),
                )
                .sort("place")
            )
            x = [START + (place + 0.5) * WINDOW for place in means["place"]]
            axes.plot(x, means["mean"].to_list(), label=scheduler, **look[scheduler].line)
            axes.vlines(
                x,
                means["low"].to_list(),
                means["high"].to_list(),
                colors=look[scheduler].color,
                linewidth=0.6,
                alpha=0.6,
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time (s)")
        axes.set_ylabel(label)
        _legend(axes)
        return figure

    return draw


def _window_rates(frame: pl.DataFrame, scheduler: str) -> dict[int, dict[int, float]]:
    """Throughput of the file transfer in each window in kbit/s, by seed and window."""
    last = frame["t_ns"].max()
    end = int(last) / 1e9 if isinstance(last, int) else 0
    times = _steps(int(end) // WINDOW * WINDOW + WINDOW, WINDOW, START)
    found = received(frame, scheduler, ["ftp"], times)
    return {
        seed: {
            place: (after - before) * 8e-3 / WINDOW
            for place, (before, after) in enumerate(pairwise(one["ftp"]))
        }
        for seed, one in found.items()
    }


def _window_losses(frame: pl.DataFrame, scheduler: str) -> dict[int, dict[int, float]]:
    return window_losses(frame, scheduler, "ftp", WINDOW, START)


LINES = "Lines are of one seed."

FIGURES = (
    Plot(
        "2",
        "two connections of unequal round trips",
        f"Throughput in windows of 2 s. S1 starts at 10 s. {LINES}",
        _two_tcp,
    ),
    Plot(
        "3",
        "TCP beside UDP",
        f"Throughput by the second, of UDP in payload as of TCP ({PAYLOAD} of {PACKET} bytes). TCP "
        f"starts at 10 s. {LINES}",
        _tcp_udp,
    ),
    Plot(
        "5",
        "connection 0 across five bottlenecks",
        f"Throughput in windows of 5 s. {LINES}",
        _connection_0,
    ),
    Plot(
        "6",
        "connections 0 and 1 on the first link",
        f"What each has received by then. {LINES}",
        _both("chain"),
    ),
    Comparison(
        "t1",
        "table 1, lost packets",
        "Packets lost in the run of figures 5 and 6, ours with 95 % intervals over seeds, next to "
        "the paper's.",
        ("D-T1",),
        unit="packets",
    ),
    Plot("7", "access at 10 Mbit/s", f"As figure 6. {LINES}", _both("access10")),
    Plot("8a", "buffers of 30 packets", f"As figure 6, LAS. {LINES}", _both("buffer30", ("las",))),
    Plot(
        "8b", "windows of 128 packets", f"As figure 6, LAS. {LINES}", _both("window128", ("las",))
    ),
    Plot(
        "10a",
        "file transfer beside the web",
        "Throughput in windows of 500 s at a load of 0.7: the mean over seeds, from the least to "
        "the most of them.",
        _over_windows(_window_rates, "file transfer (kbit/s)"),
    ),
    Plot(
        "10b",
        "its losses",
        "Packets lost in windows of 500 s, as figure 10a.",
        _over_windows(_window_losses, "packets lost (%)"),
    ),
)
