"""The figures: each takes results (or the one table it needs) and gives a matplotlib figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from shortlane.errors import Usage
from shortlane.figures import data, style
from shortlane.figures.quantities import Quantity, quantity
from shortlane.figures.tables import Source, columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "bars",
    "cdf",
    "histogram",
    "legend",
    "mean_by_size",
    "plain_numbers",
    "progress",
    "time_series",
]


@style.styled
def mean_by_size(
    source: Source,
    value: str = "completion_ns",
    *,
    by: str = "scheduler",
    packet_bytes: int | None = None,
    bins_per_decade: int = 6,
    least: int = 30,
    axes: Axes | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """The mean of a column of table `flows` by size, a line per scheduler, both axes logarithmic.

    Bars are 95 % intervals over seeds (rounds of the lab), where there are at least three. Sizes
    are in packets of `packet_bytes` of payload, or in kB. Incomplete flows are excluded from means:
    their number stands in the legend. See `data.mean_by_size`.
    """
    found = data.mean_by_size(source, value, by=by, bins_per_decade=bins_per_decade, least=least)
    what = quantity(value)
    figure, axes = style.figure_and_axes(axes, width=width)
    per = packet_bytes or 1000
    for name, own, look in _each(found, by):
        missing = int(own["missing"].sum())
        label = f"{name} ({missing})" if missing else str(name)
        x = (own["size_bytes"] / per).to_list()
        mean = own["mean"] * what.scale
        axes.plot(x, mean.to_list(), label=label, **look.line)
        # An interval that reaches 0 runs off the axis.
        low = (own["low"] * what.scale).clip(lower_bound=1e-12)
        axes.vlines(
            x,
            low.to_list(),
            (own["high"] * what.scale).to_list(),
            colors=look.color,
            linewidth=0.7,
            zorder=1.5,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    _limits_by(axes, found["mean"] * what.scale)
    axes.set_xlabel(f"size (packets of {packet_bytes} B)" if packet_bytes else "size (kB)")
    axes.set_ylabel(_of_mean(what))
    plain_numbers(axes, "xy")
    legend(axes, "in brackets: incomplete, excluded from means" if found["missing"].sum() else None)
    return figure


@style.styled
def cdf(
    source: Source,
    value: str = "completion_ns",
    *,
    by: str = "scheduler",
    log: bool = True,
    tail: bool = False,
    axes: Axes | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """The distribution of a column of `flows` or `probes`, such as `completion_ns`, `delay_ns`.

    Flows without the value and lost packets count: a curve ends as far below 1 as there are. With
    `tail`, the share of values above, on a logarithmic axis.
    """
    found = data.cdf(source, value, by=by)
    what = quantity(value)
    figure, axes = style.figure_and_axes(axes, width=width)
    for name, own, look in _each(found, by):
        x, share = own["value"] * what.scale, own["fraction"]
        drawn = share.to_list() if not tail else (1 - share).to_list()
        axes.step(
            x.to_list(),
            drawn,
            where="post",
            label=_with_missing(name, own),
            markevery=max(1, own.height // 8),
            **look.line,
        )
    if log and not found.is_empty() and float(found["value"].min()) > 0:  # type: ignore[arg-type]
        axes.set_xscale("log")
        plain_numbers(axes, "x")
    if tail:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.02)
    axes.set_xlabel(what.label)
    rows_are = "packets" if what.table == "probes" else "flows"
    axes.set_ylabel(f"share of {rows_are} above" if tail else f"share of {rows_are}")
    word = "lost" if what.table == "probes" else "incomplete"
    legend(axes, f"in brackets: {word}" if found["missing"].sum() else None)
    return figure


@style.styled
def time_series(
    source: Source,
    value: str = "backlog_packets",
    *,
    by: str = "scheduler",
    link: str | None = None,
    observation: dict[str, int] | None = None,
    points: int = 80,
    band: bool = False,
    log: bool = False,
    axes: Axes | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """A column of table `samples` over time: one run, one link, a line per scheduler.

    The first run and the first link, unless `observation` (`{"seed": 2}`) and `link` say which.
    Lines are means of `points` windows of time; with `band`, the least and most in each.
    """
    found = data.time_series(
        source, value, by=by, link=link, observation=observation, points=points
    )
    if "link" in found.columns and not found.is_empty():
        found = found.filter(pl.col("link").eq_missing(link or found["link"][0]))
    what = quantity(value, "samples")
    figure, axes = style.figure_and_axes(axes, width=width)
    for name, own, look in _each(found, by):
        x, scaled = own["t_s"].to_list(), own.select(pl.col("mean", "low", "high") * what.scale)
        axes.plot(
            x,
            scaled["mean"].to_list(),
            label=str(name),
            **look.line | {"markevery": max(1, own.height // 10)},
        )
        if band:
            axes.fill_between(
                x,
                scaled["low"].to_list(),
                scaled["high"].to_list(),
                color=look.color,
                alpha=0.15,
                linewidth=0,
            )
    if log:
        axes.set_yscale("log")
        plain_numbers(axes, "y")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(what.label)
    legend(axes)
    return figure


@style.styled
def histogram(
    source: Source,
    value: str = "flow_entries",
    *,
    by: str = "scheduler",
    bins: int = 40,
    edges: Sequence[float] | None = None,
    log: bool = False,
    axes: Axes | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """How often a column of `samples` (or `flows`, `probes`) has which value, in outline.

    With `log`, values are on a logarithmic axis: for schedulers that are decades apart.
    """
    what = quantity(value, "samples")
    unscaled = None if edges is None else [edge / what.scale for edge in edges]
    found = data.histogram(source, value, by=by, bins=bins, edges=unscaled)
    figure, axes = style.figure_and_axes(axes, width=width)
    for name, own, look in _each(found, by):
        if not own["count"].sum():
            continue
        x = [edge * what.scale for edge in [*own["from"].to_list(), own["to"][-1]]]
        axes.stairs(
            own["share"].to_list(), x, color=look.color, linestyle=look.linestyle, linewidth=1.1
        )
        middle = [(a + b) / 2 for a, b in pairwise(x)]
        drawn = own.with_columns(x=pl.Series(middle)).filter(pl.col("count") > 0)
        axes.plot(
            drawn["x"].to_list(),
            drawn["share"].to_list(),
            label=str(name),
            **look.line | {"linestyle": "none"},
        )
    if log:
        axes.set_xscale("log" if all(e > 0 for e in found["from"]) else "symlog")
        plain_numbers(axes, "x")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(what.label)
    axes.set_ylabel("share of samples" if what.table == "samples" else "share of rows")
    legend(axes)
    return figure


@style.styled
def progress(
    source: Source,
    *,
    by: str = "scheduler",
    largest: int = 3,
    transfers: Iterable[tuple[str | None, int]] | None = None,
    observation: dict[str, int] | None = None,
    axes: Axes | Sequence[Axes] | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """Bytes received over time (table `progress`): a panel per transfer, a line per scheduler.

    The `largest` transfers of the first run, or the `transfers` (traffic, index) of the run
    `observation`. Draws into `axes`, as many as there are transfers, if given.
    """
    found = data.progress(
        source, by=by, largest=largest, transfers=transfers, observation=observation
    )
    panels = found.partition_by("traffic", "index", maintain_order=True, as_dict=True)
    if not panels:
        raise Usage("progress: found none of these transfers in table `progress`")
    figure, grid = _panels(axes, len(panels), width)
    for axes_of_one, ((traffic, index), panel) in zip(grid, panels.items(), strict=True):
        for name, own, look in _each(panel, by):
            axes_of_one.step(
                own["t_s"].to_list(),
                (own["received_bytes"] / 1e6).to_list(),
                where="post",
                label=str(name),
                **look.line | {"markevery": max(1, own.height // 6)},
            )
        axes_of_one.set_ylim(bottom=0)
        axes_of_one.set_ylabel("received (MB)")
        axes_of_one.set_title(f"{traffic or 'transfer'} {index}", loc="right", pad=2)
    grid[-1].set_xlabel("time (s)")
    legend(grid[0])
    return figure


def _panels(
    axes: Axes | Sequence[Axes] | None, count: int, width: float
) -> tuple[Figure, list[Axes]]:
    if axes is None:
        return style.new_figure(count, width=width, height=1.4)
    grid = list(axes) if isinstance(axes, Iterable) else [axes]
    if len(grid) != count:
        raise Usage(f"axes: found {len(grid)}; accepted: {count}, one for each transfer")
    return style.figure_and_axes(grid[0])[0], grid


@style.styled
def bars(
    source: Source,
    value: str = "lost_percent",
    *,
    group: str = "stream",
    by: str = "scheduler",
    label: str | None = None,
    group_label: str | None = None,
    axes: Axes | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """Grouped bars with 95 % intervals: a group per value of `group`, a bar per scheduler.

    Of results, `lost_percent` of the streams. Of a plain frame, any column `value` of rows that
    are independent observations (one a seed), such as those of `data.losses`.
    """
    if isinstance(source, pl.DataFrame | pl.LazyFrame) and value in columns(source.lazy()):
        rows = source.lazy().collect()
    elif value == "lost_percent":
        rows = data.losses(source, by=[by, group])
    else:
        raise Usage(
            f"value: found {value!r}; accepted: 'lost_percent', or a column of a frame given"
        )
    found = data.estimates(rows, value, by=[by, group])
    groups = rows[group].unique(maintain_order=True).to_list()
    what = quantity(value)
    figure, axes = style.figure_and_axes(axes, width=width)
    schedulers = rows[by].unique(maintain_order=True).to_list()
    wide = 0.82 / max(len(schedulers), 1)
    for place, (name, own, look) in enumerate(_each(found, by, schedulers)):
        shift = (place - (len(schedulers) - 1) / 2) * wide
        x = [groups.index(one) + shift for one in own[group]]
        mean = own["mean"] * what.scale
        axes.bar(x, mean.to_list(), width=wide * 0.94, label=str(name), linewidth=0, **look.bar)
        low, high = own["low"] * what.scale, own["high"] * what.scale
        axes.vlines(
            x, low.clip(lower_bound=0).to_list(), high.to_list(), colors="#333333", linewidth=0.8
        )
    axes.set_xticks(range(len(groups)), [str(one) for one in groups])
    axes.grid(visible=False, axis="x")
    if not found.is_empty() and float(found["mean"].min()) >= 0:  # type: ignore[arg-type]
        axes.set_ylim(bottom=0)
    axes.set_xlabel(group_label if group_label is not None else group)
    axes.set_ylabel(label if label is not None else what.label)
    legend(axes)
    return figure


def _each(
    found: pl.DataFrame, by: str, names: Sequence[Any] | None = None
) -> Iterable[tuple[Any, pl.DataFrame, style.Look]]:
    """Each scheduler's rows with its look, in their order."""
    if names is None:
        names = found[by].unique(maintain_order=True).to_list()
    look = style.looks(str(name) for name in names)
    return [(name, found.filter(pl.col(by) == name), look[str(name)]) for name in names]


def _with_missing(name: Any, own: pl.DataFrame) -> str:
    missing, all_rows = own["missing"][0], own["rows"][0]
    if not missing:
        return str(name)
    return f"{name} ({100 * missing / all_rows:.2g} %)"


def _of_mean(what: Quantity) -> str:
    return what.label if what.name.startswith("mean") else f"mean {what.label}"


def _limits_by(axes: Axes, means: pl.Series) -> None:
    """A logarithmic y axis that fits the means, whatever their intervals reach."""
    above = means.filter(means > 0).to_list()
    if above:
        axes.set_ylim(min(above) / 1.6, max(above) * 1.6)


def plain_numbers(axes: Axes, which: str) -> None:
    """100 instead of 10², and few marks between decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    def plain(value: float, _place: Any) -> str:
        return f"{value:,.10g}".replace(",", "\N{NARROW NO-BREAK SPACE}")

    for letter in which:
        axis = axes.xaxis if letter == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(plain))
        low, high = sorted(axis.get_view_interval())
        if axis.get_scale() == "log":
            axis.set_minor_formatter(NullFormatter())
            few = (1, 1.2, 1.5, 2, 3, 4, 6, 8) if high < 4 * low else (1, 2, 5)
            if high < 30 * low:
                axis.set_major_locator(LogLocator(subs=few, numticks=20))


def legend(axes: Axes, title: str | None = None) -> None:
    """Above the axes, so that it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2:
        return
    per_row = 3 if max(len(label) for label in labels) < 16 else 2
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=per_row,
        borderaxespad=0.2,
        columnspacing=1.2,
        handletextpad=0.5,
        labelspacing=0.25,
        title=title,
        title_fontsize=7,
        alignment="left",
    )
