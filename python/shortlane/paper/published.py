"""What a paper gives in numbers, next to ours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlane.errors import InputError
from shortlane.figures import style
from shortlane.figures.draw import plain_numbers
from shortlane.paper.claims import Bounds
from shortlane.paper.verdict import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["compare"]

#: In inches: a line, and what stands above and below the lines.
LINE, AROUND = 0.16, 0.55


def compare(found: Sequence[Measured]) -> "Figure":
    """A line for each value that the paper gives: its mark, ours with the interval, the bounds.

    On a logarithmic axis if all are above 0.
    """
    shown = [one for one in found if one.check.published is not None and one.value is not None]
    if not shown:
        raise InputError("none of the rows has a published number beside ours")
    figure, grid = style.new_figure(1, width=6.0, height=AROUND + LINE * len(shown))
    axes = grid[0]
    lines = range(len(shown))
    for line, one in zip(lines, shown, strict=True):
        _bounds(axes, line, one.check.bounds)
        if one.low is not None and one.high is not None:
            axes.hlines(line, one.low, one.high, colors="#0072b2", linewidth=1.2)
    ours = [one.value for one in shown if one.value is not None]
    published = [one.check.published for one in shown if one.check.published is not None]
    axes.plot(ours, lines, "o", color="#0072b2", markersize=3.5, label="ours", linestyle="none")
    axes.plot(
        published,
        lines,
        "D",
        color="#d55e00",
        markersize=4.5,
        markerfacecolor="none",
        label="published",
        linestyle="none",
    )
    axes.set_yticks(lines, [one.check.words for one in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    if min(*ours, *published) > 0:
        axes.set_xscale("log")
        plain_numbers(axes, "x")
    units = {"ratio" if one.unit == "x" else one.unit for one in shown}
    axes.set_xlabel(units.pop() if len(units) == 1 else "")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    return figure


def _bounds(axes: "Axes", line: int, bounds: Bounds) -> None:
    """The bounds of a check as a band; one that is open to a side ends soon after its bound."""
    if bounds == Bounds():
        return
    least, most = bounds.at_least, bounds.at_most
    low = least if least is not None else (most or 0) / 2
    high = most if most is not None else (least or 0) * 2
    axes.barh(line, high - low, left=low, height=0.8, color="#e3e3e3", linewidth=0, zorder=0)
