"""A paper's figures: which there are, and how they come onto the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from shortlane.errors import ShortlaneError
from shortlane.figures import style
from shortlane.paper.judge import Judged
from shortlane.paper.page import Drawn
from shortlane.paper.published import compare
from shortlane.paper.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Plot", "draw_all"]


@dataclass(frozen=True)
class Plot:
    """A figure of the paper, drawn again from our runs."""

    id: str
    title: str
    caption: str
    draw: Callable[[Runs], "Figure"]


@dataclass(frozen=True)
class Comparison:
    """Our values next to the paper's, of all checks and reports of these rows that have one.

    `unit`: only those in this unit, such as `x` for ratios.
    """

    id: str
    title: str
    caption: str
    rows: tuple[str, ...]
    unit: str | None = None


def draw_all(
    plots: Sequence[Plot | Comparison],
    runs: Runs,
    judged: Sequence[Judged],
    folder: Path,
    *,
    quick: bool,
) -> list[Drawn]:
    """Draws the figures that these rows are about, as SVG for the page and as PNG beside it.

    `quick` leaves out the PNG, which takes as long again. A figure that lacks its runs has the
    reason in its place.
    """
    looks: Any = style.RC
    wanted = {one.row.figure for one in judged}
    drawn = []
    for plot in plots:
        if plot.id not in wanted:
            continue
        title = f"Figure {plot.id}: {plot.title}"
        try:
            with mpl.rc_context(looks):
                figure = _figure(plot, runs, judged)
        except ShortlaneError as error:
            drawn.append(Drawn(title, None, f"Not drawn: {error}."))
            continue
        file = f"figure-{plot.id}.svg"
        style.save(figure, folder / file)
        if not quick:
            style.save(figure, (folder / file).with_suffix(".png"), dpi=150)
        drawn.append(Drawn(title, file, plot.caption))
    return drawn


def _figure(plot: Plot | Comparison, runs: Runs, judged: Sequence[Judged]) -> "Figure":
    if isinstance(plot, Plot):
        return plot.draw(runs)
    verdicts = [one.verdict for one in judged if one.row.id in plot.rows]
    every = [one for verdict in verdicts for one in (*verdict.checks, *verdict.reports)]
    return compare([one for one in every if plot.unit in (None, one.unit)])
