"""The charts of a report, from the same numbers as the figures in print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from shortlane.figures.quantities import quantity
from shortlane.figures.style import looks
from shortlane.report.blocks import SHAPES, ink

if TYPE_CHECKING:
    import altair as alt

__all__ = ["dots", "lines", "stacked"]

Spec = dict[str, Any]

FADED = 0.12

#: Of lanes, from dark to light: other colours than those of schedulers.
TONES = {
    "short or only lane": ("#8a6d3b", "#c9ad7a", "#e6d5b3"),
    "long lane": ("#3f5166", "#7d90a6", "#b7c3d0"),
}
OTHER_TONES = ("#7a7a7a", "#a8a8a8", "#d0d0d0")


class _Scales:
    """Colour, dashes and shape of schedulers; the signal `chosen` sets one apart."""

    def __init__(self, names: Sequence[str]) -> None:
        import altair as alt

        own = looks(names)
        domain = list(own)
        self.picked = alt.param(name="chosen", value="")
        self.color = alt.Color(
            "scheduler:N",
            legend=None,
            scale=alt.Scale(domain=domain, range=[ink(look) for look in own.values()]),
        )
        self.dash = alt.StrokeDash(
            "scheduler:N",
            legend=None,
            scale=alt.Scale(
                domain=domain,
                range=[[1.8 * part for part in look.dash] or [1, 0] for look in own.values()],
            ),
        )
        self.shape = alt.Shape(
            "scheduler:N",
            legend=None,
            scale=alt.Scale(domain=domain, range=[SHAPES[look.marker] for look in own.values()]),
        )
        shown = "chosen == '' || datum.scheduler == chosen"
        self.opacity = alt.condition(shown, alt.value(1), alt.value(FADED))


def _finished(chart: Any, height: int) -> Spec:
    chart = chart.properties(width="container", height=height)
    chart = (
        chart.configure(
            background="transparent",
            font="system-ui, sans-serif",
            autosize={"type": "fit", "contains": "padding"},
            padding=4,
        )
        .configure_axis(
            labelColor="currentColor",
            titleColor="currentColor",
            domainColor="currentColor",
            tickColor="currentColor",
            gridColor="currentColor",
            gridOpacity=0.12,
            domainOpacity=0.5,
            tickOpacity=0.5,
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=140,
            labelOverlap=True,
            tickCount=6,
        )
        .configure_view(stroke=None)
    )
    spec: Spec = chart.to_dict()
    return spec


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
    height: int = 260,
) -> Spec:
    """A line per scheduler; `x` and `y` are columns with their titles, `log` names log axes.

    With `interval`, columns `low` and `high` of `found` are drawn as bars.
    """
    import altair as alt

    scales = _Scales(names)
    found = _rounded(found)
    for axis, (column, _) in (("x", x), ("y", y)):
        if axis in log:
            found = found.filter(pl.col(column) > 0)
    scale = {
        axis: alt.Scale(type="log", nice=False, clamp=True)
        if axis in log
        else alt.Scale(zero=True, nice=False)
        for axis in "xy"
    }
    if "y" in log and not found.is_empty():
        values = found[y[0]].to_list()
        scale["y"] = alt.Scale(
            type="log", nice=False, clamp=True, domain=[min(values) / 1.5, max(values) * 1.5]
        )
    x_of = alt.X(f"{x[0]}:Q", title=x[1], scale=scale["x"], axis=_axis("x" in log))
    y_of = alt.Y(f"{y[0]}:Q", title=y[1], scale=scale["y"], axis=_axis("y" in log))
    base = alt.Chart(alt.InlineData(values=found.to_dicts())).encode(color=scales.color)
    tips = [
        alt.Tooltip(f"{column}:{'N' if found.schema[column] == pl.String else 'Q'}")
        for column in found.columns
    ]
    line = base.mark_line(
        interpolate="step-after" if step else "linear", strokeWidth=1.8, clip=True
    ).encode(x=x_of, y=y_of, strokeDash=scales.dash, opacity=scales.opacity)
    dots = base.mark_point(filled=True, size=44 if points else 110, opacity=1).encode(
        x=x_of,
        y=y_of,
        shape=scales.shape,
        tooltip=tips,
        opacity=scales.opacity if points else alt.value(0),
    )
    layers: list[Any] = [line, dots]
    if interval and found["low"].count():
        layers.insert(
            0,
            base.mark_rule(strokeWidth=1.2, clip=True).encode(
                x=x_of,
                y=alt.Y("low:Q", title=y[1], scale=scale["y"]),
                y2="high:Q",
                opacity=scales.opacity,
            ),
        )
    return _finished(alt.layer(*layers).add_params(scales.picked), height)


def dots(
    found: pl.DataFrame,
    names: Sequence[str],
    *,
    value: tuple[str, str],
    rows: str,
    order: Sequence[str],
    log: bool = False,
    line_at: float | None = None,
) -> Spec:
    """A dot with its interval (`low`, `high`) per row and scheduler, one below the other."""
    import altair as alt

    scales = _Scales(names)
    found = _rounded(found)
    if log:
        found = found.filter(pl.col(value[0]) > 0)
    ends = [float(v) for column in (value[0], "low", "high") for v in found[column].drop_nulls()]
    ends += [] if line_at is None else [line_at]
    if log:
        ends = [v for v in ends if v > 0]
        scale = alt.Scale(
            type="log",
            nice=False,
            clamp=True,
            domain=[
                max(min(ends), min(found[value[0]]) / 10) / 1.15,
                min(max(ends), max(found[value[0]]) * 10) * 1.15,
            ],
        )
    else:
        scale = alt.Scale(zero=True)
    x_of = alt.X(f"{value[0]}:Q", title=value[1], scale=scale, axis=_axis(log))
    y_of = alt.Y(
        f"{rows}:N",
        title=None,
        sort=list(order),
        axis=alt.Axis(grid=False, ticks=False, domain=False),
    )
    shift = alt.YOffset("scheduler:N", sort=list(names), scale=alt.Scale(paddingOuter=0.6))
    base = alt.Chart(alt.InlineData(values=found.to_dicts())).encode(
        y=y_of, yOffset=shift, color=scales.color
    )
    rule = base.mark_rule(strokeWidth=1.6).encode(
        x=alt.X("low:Q", title=value[1], scale=scale), x2="high:Q", opacity=scales.opacity
    )
    tips = [
        alt.Tooltip(f"{column}:{'N' if found.schema[column] == pl.String else 'Q'}")
        for column in found.columns
    ]
    point = base.mark_point(filled=True, size=62, opacity=1).encode(
        x=x_of, shape=scales.shape, opacity=scales.opacity, tooltip=tips
    )
    layers: list[Any] = [rule, point] if found["low"].count() else [point]
    if line_at is not None:
        layers.insert(
            0,
            alt.Chart(alt.InlineData(values=[{"at": line_at}]))
            .mark_rule(color="currentColor", strokeDash=[3, 3], opacity=0.6)
            .encode(x=alt.X("at:Q")),
        )
    present = [row for row in order if row in set(found[rows])]
    height = len(present) * (14 * found["scheduler"].n_unique() + 16) + 10
    return _finished(alt.layer(*layers).add_params(scales.picked), max(height, 90))


def stacked(found: pl.DataFrame, names: Sequence[str], *, value: tuple[str, str]) -> Spec:
    """A bar per scheduler, cut by column `part`."""
    import altair as alt

    parts = found["part"].unique(maintain_order=True).to_list()
    seen: dict[str, int] = {}
    shades = []
    for part in parts:
        lane = part.split(":")[0]
        tones = TONES.get(lane, OTHER_TONES)
        shades.append(tones[seen.get(lane, 0) % len(tones)])
        seen[lane] = seen.get(lane, 0) + 1
    chart = (
        alt.Chart(alt.InlineData(values=_rounded(found).to_dicts()))
        .mark_bar(stroke="currentColor", strokeWidth=0.4)
        .encode(
            x=alt.X(f"{value[0]}:Q", title=value[1], axis=_axis(False)),
            y=alt.Y("scheduler:N", sort=list(names), title=None, axis=alt.Axis(grid=False)),
            color=alt.Color(
                "part:N",
                sort=parts,
                title=None,
                scale=alt.Scale(domain=parts, range=shades),
                legend=alt.Legend(
                    orient="top",
                    columns=1,
                    labelLimit=300,
                    labelColor="currentColor",
                    symbolType="square",
                ),
            ),
            order=alt.Order("place:O"),
            opacity=alt.condition(
                "chosen == '' || datum.scheduler == chosen", alt.value(1), alt.value(FADED)
            ),
            tooltip=["scheduler:N", "part:N", alt.Tooltip(f"{value[0]}:Q")],
        )
        .add_params(alt.param(name="chosen", value=""))
    )
    return _finished(chart, 26 * found["scheduler"].n_unique() + 18 * len(parts) + 50)


def _axis(log: bool) -> alt.Axis:
    import altair as alt

    # Plain numbers, without exponents.
    return alt.Axis(format=",~f", grid=True, tickCount=4 if log else 6)


def _rounded(found: pl.DataFrame) -> pl.DataFrame:
    """To five digits: a page holds numbers to look at."""
    floats = [name for name, kind in found.schema.items() if kind == pl.Float64]
    return found.with_columns(pl.col(floats).round_sig_figs(5))


def scaled(found: pl.DataFrame, column: str, *targets: str) -> pl.DataFrame:
    """Columns in the unit in which figures show `column`."""
    return found.with_columns(pl.col(*targets) * quantity(column).scale)
