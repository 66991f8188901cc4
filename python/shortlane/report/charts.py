"""The charts of a report, from the same numbers as the figures in print and in the same looks.

Each scheduler's marks are a group with the id `series-N`, by which the page sets it apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shortlane.figures.draw import plain_numbers
from shortlane.figures.quantities import quantity
from shortlane.figures.style import RC, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["dots", "lines", "scaled", "stacked"]

#: In inches: what fills a page of a telephone, and half of a wide one.
WIDTH = 5.2

#: Of lanes, from dark to light: other colours than those of schedulers.
TONES = {
    "short or only lane": ("#8a6d3b", "#c9ad7a", "#e6d5b3"),
    "long lane": ("#3f5166", "#7d90a6", "#b7c3d0"),
}
OTHER_TONES = ("#7a7a7a", "#a8a8a8", "#d0d0d0")

#: What differs from print: larger text, and a grid that is seen on light and on dark.
ON_A_PAGE: Any = RC | {
    "font.size": 10.5,
    "axes.labelsize": 10.5,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "lines.linewidth": 1.5,
}


def _figure(height: float) -> tuple[Figure, Axes]:
    """A figure without a background of its own."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    return figure, axes


def _series(names: Sequence[str], name: str) -> str:
    return f"series-{list(names).index(name)}"


def _on_a_page() -> Any:
    import matplotlib as mpl

    return mpl.rc_context(ON_A_PAGE)


def lines(
    found: pl.DataFrame,
    names: Sequence[str],
    *,
    x: tuple[str, str],
    y: tuple[str, str],
    log: str = "",
    step: bool = False,
    points: bool = False,
    interval: bool = False,
    height: float = 3.0,
) -> Figure:
    """A line per scheduler; `x` and `y` are columns with their titles, `log` names log axes.

    With `interval`, columns `low` and `high` of `found` are drawn as bars.
    """
    with _on_a_page():
        figure, axes = _figure(height)
        for axis, (column, _) in (("x", x), ("y", y)):
            if axis in log:
                found = found.filter(pl.col(column) > 0)
        for name, look in looks(names).items():
            own = found.filter(pl.col("scheduler") == name)
            if own.is_empty():
                continue
            every = 1 if points else max(1, own.height // 6)
            style = look.line | {"markevery": every, "markeredgewidth": 0, "markersize": 4.5}
            shape = "steps-post" if step else "default"
            at, gid = own[x[0]].to_list(), _series(names, name)
            axes.plot(at, own[y[0]].to_list(), gid=gid, drawstyle=shape, **style)
            if interval and own["low"].count():
                least = 1e-12 if "y" in log else 0
                low = own["low"].clip(lower_bound=least).to_list()
                axes.vlines(
                    at,
                    low,
                    own["high"].to_list(),
                    colors=look.color,
                    linewidth=1,
                    gid=gid,
                )
        values = found[y[0]].drop_nulls().to_list()
        if "y" in log and values:
            axes.set_yscale("log")
            axes.set_ylim(min(values) / 1.5, max(values) * 1.5)
        else:
            axes.set_ylim(bottom=0)
        if "x" in log:
            axes.set_xscale("log")
        plain_numbers(axes, "xy")
        axes.set_xlabel(x[1])
        axes.set_ylabel(y[1])
    return figure


def dots(
    found: pl.DataFrame,
    names: Sequence[str],
    *,
    value: tuple[str, str],
    rows: str,
    order: Sequence[str],
    log: bool = False,
    line_at: float | None = None,
) -> Figure:
    """A dot with its interval (`low`, `high`) per row and scheduler, one below the other."""
    if log:
        found = found.filter(pl.col(value[0]) > 0)
    there = set(found[rows])
    present = [row for row in order if row in there]
    shown = [name for name in names if name in set(found["scheduler"])]
    with _on_a_page():
        figure, axes = _figure(max(1.2, len(present) * (0.15 * len(shown) + 0.15) + 0.55))
        for place, (name, look) in enumerate(looks(shown).items()):
            own = found.filter(pl.col("scheduler") == name)
            shift = (place - (len(shown) - 1) / 2) * 0.8 / max(len(shown), 1)
            at = [present.index(row) + shift for row in own[rows]]
            gid = _series(names, name)
            mark = look.line | {"linestyle": "none", "markeredgewidth": 0, "markersize": 6}
            axes.plot(own[value[0]].to_list(), at, gid=gid, **mark)
            if own["low"].count():
                low = own["low"].clip(lower_bound=1e-12) if log else own["low"]
                ends = (low.to_list(), own["high"].to_list())
                axes.hlines(at, *ends, colors=look.color, linewidth=1.4, gid=gid)
        if line_at is not None:
            axes.axvline(line_at, color="#000000", linestyle=(0, (3, 3)), linewidth=0.8)
        if log:
            axes.set_xscale("log")
            axes.set_xlim(*_around(found, value[0], line_at))
        else:
            axes.set_xlim(left=0)
        plain_numbers(axes, "x")
        axes.set_yticks(range(len(present)), present)
        axes.set_ylim(len(present) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(value[1])
    return figure


def _around(found: pl.DataFrame, column: str, line_at: float | None) -> tuple[float, float]:
    """Ends of a logarithmic axis: all values, and of intervals what is within ten times of them."""
    values = [float(one) for one in found[column]] or [line_at or 1.0]
    ends = [float(one) for name in ("low", "high") for one in found[name].drop_nulls() if one > 0]
    near = [one for one in ends if min(values) / 10 <= one <= max(values) * 10]
    ends = [*values, *near, *([] if line_at is None else [line_at])]
    return min(ends) / 1.15, max(ends) * 1.15


def stacked(found: pl.DataFrame, names: Sequence[str], *, value: tuple[str, str]) -> Figure:
    """A bar per scheduler, cut by column `part`."""
    parts = found["part"].unique(maintain_order=True).to_list()
    shown = [name for name in names if name in set(found["scheduler"])]
    by_part = {
        part: dict(found.filter(pl.col("part") == part).select("scheduler", value[0]).iter_rows())
        for part in parts
    }
    with _on_a_page():
        figure, axes = _figure(0.32 * len(shown) + 0.2 * len(parts) + 0.7)
        left = dict.fromkeys(shown, 0.0)
        for part, shade in zip(parts, _shades(parts), strict=True):
            for place, name in enumerate(shown):
                wide = by_part[part].get(name, 0)
                label = part if place == 0 else None
                (bar,) = axes.barh(place, wide, 0.7, left[name], color=shade, label=label)
                bar.set_gid(_series(names, name))
                left[name] += wide
        axes.set_yticks(range(len(shown)), shown)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        plain_numbers(axes, "x")
        axes.set_xlabel(value[1])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
    return figure


def _shades(parts: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    shades = []
    for part in parts:
        lane = part.split(":")[0]
        tones = TONES.get(lane, OTHER_TONES)
        shades.append(tones[seen.get(lane, 0) % len(tones)])
        seen[lane] = seen.get(lane, 0) + 1
    return shades


def scaled(found: pl.DataFrame, column: str, *targets: str) -> pl.DataFrame:
    """Columns in the unit in which figures show `column`."""
    return found.with_columns(pl.col(*targets) * quantity(column).scale)
