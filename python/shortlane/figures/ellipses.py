"""Rate against delay: an ellipse a scheduler, as RFC 7928 (section 2) asks for.

The ellipse is that of one standard deviation about the mean, of the covariance over independent
observations (seeds, or rounds of the lab); the way of drawing is that of Winstein, Sivaraman and
Balakrishnan, "Stochastic forecasts achieve high throughput and low delay over cellular networks",
NSDI 2013, figure 7.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from shortlane.errors import Usage
from shortlane.figures import style
from shortlane.figures.draw import legend, plain_numbers
from shortlane.figures.tables import HasTables, names, need, observations, rows, scenario_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["rate_against_delay", "rates_and_delays"]

#: Fewer observations have no covariance that says anything.
LEAST_FOR_ELLIPSE = 3


def rates_and_delays(
    source: HasTables, *, stream: str | None = None, by: str = "scheduler", quantile: float = 0.95
) -> pl.DataFrame:
    """What long flows together received, and how long packets of a stream took.

    Args:
        source: Results with tables `flows` and `probes`.
        stream: Whose packets; without it those of all streams.
        by: The column that tells the ellipses apart.
        quantile: Of the delays of one observation.

    Returns: one row an observation and value of `by`: `mbit`, `delay_ms`.

    """
    scenario = scenario_of(source)
    duration_ns = scenario.get("duration_ns")
    if not duration_ns:
        raise Usage("results: found no scenario with a duration in `run.json`, which rates need")
    flows, probes = rows(source, "flows"), rows(source, "probes")
    need(flows, [by, "kind", "start_ns", "received_bytes"], "flows")
    need(probes, [by, "stream", "delay_ns"], "probes")
    if stream is not None:
        probes = probes.filter(pl.col("stream") == stream)
    watched = [by, *observations(flows)]
    # Long flows count from the end of the warm-up on.
    begin_ns = pl.max_horizontal(pl.col("start_ns").min(), pl.lit(scenario.get("warm_up_ns", 0)))
    long = flows.filter(pl.col("kind").is_in(["download", "upload"]))
    mbit = 8e3 * pl.col("received_bytes").sum() / (duration_ns - begin_ns)
    rates = long.group_by(watched, maintain_order=True).agg(mbit=mbit)
    delay_ms = pl.col("delay_ns").quantile(quantile, "linear") / 1e6
    delays = probes.group_by(watched, maintain_order=True).agg(delay_ms=delay_ms)
    found = rates.join(delays, on=watched, maintain_order="left").drop_nulls("delay_ms").collect()
    if found.is_empty():
        raise Usage("results: found no long flow, or no packet of a stream, that counts")
    order = {name: place for place, name in enumerate(names(source, flows, by))}
    return found.sort(pl.col(by).replace_strict(order), maintain_order=True)


def ellipse(x: pl.Series, y: pl.Series, points: int = 24) -> list[tuple[float, float]]:
    """Points of the ellipse of one standard deviation about the mean: a circle by Cholesky."""
    frame = pl.DataFrame({"x": x, "y": y})
    mean_x, mean_y, wide, high, both = frame.select(
        pl.col("x").mean(),
        pl.col("y").mean().alias("mean_y"),
        pl.col("x").std().alias("wide"),
        pl.col("y").var().alias("high"),
        pl.cov("x", "y").alias("both"),
    ).row(0)
    lean = both / wide if wide else 0.0
    rest = math.sqrt(max(high - lean**2, 0.0))
    circle = [(math.cos(turn), math.sin(turn)) for turn in _turns(points)]
    return [(mean_x + wide * cos, mean_y + lean * cos + rest * sin) for cos, sin in circle]


def _turns(points: int) -> list[float]:
    return [2 * math.pi * at / points for at in range(points)]


@style.styled
def rate_against_delay(
    source: HasTables,
    *,
    stream: str | None = None,
    by: str = "scheduler",
    quantile: float = 0.95,
    axes: Axes | None = None,
    width: float = style.COLUMN,
) -> Figure:
    """Rate of long flows against delay of a stream: a marker at the mean, an ellipse about it.

    The delay falls to the right, so that better is further up and to the right. It is on a
    logarithmic axis, and its means and deviations are those of its logarithm. With fewer than
    three observations there are markers alone. See `rates_and_delays`.
    """
    found = rates_and_delays(source, stream=stream, by=by, quantile=quantile)
    figure, axes = style.figure_and_axes(axes, width=width)
    shown = found[by].cast(pl.String).unique(maintain_order=True).to_list()
    for name, look in style.looks(shown).items():
        own = found.filter(pl.col(by).cast(pl.String) == name)
        x, y = own["delay_ms"].log10(), own["mbit"]
        if own.height >= LEAST_FOR_ELLIPSE:
            around = ellipse(x, y)
            outline = [10**at for at, _ in around], [rate for _, rate in around]
            axes.fill(*outline, facecolor=look.color, alpha=0.25, linewidth=0)
        middle = own.select(x=x.mean(), y=y.mean()).row(0)
        marker = look.line | {"linestyle": "none", "markersize": 4.5}
        axes.plot(10 ** middle[0], middle[1], label=name, **marker)
    axes.set_xscale("log")
    plain_numbers(axes, "x")
    axes.invert_xaxis()
    axes.set_xlabel(f"delay of {stream or 'streams'}, p{100 * quantile:g} (ms)")
    axes.set_ylabel("long flows (Mbit/s)")
    legend(axes)
    return figure
