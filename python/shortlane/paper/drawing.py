"""A paper's figures: which there are, and how they come onto the page."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from shortlane.errors import ShortlaneError
from shortlane.figures import style
from shortlane.paper.claims import Row
from shortlane.paper.page import Drawn
from shortlane.paper.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Plot", "draw_all"]


@dataclass(frozen=True)
class Plot:
    """A figure of the paper, drawn again from our runs."""

    id: str
    title: str
    caption: str
    draw: Callable[[Runs], "Figure"]


def draw_all(plots: Sequence[Plot], runs: Runs, rows: Collection[Row], folder: Path) -> list[Drawn]:
    """Draws the figures that these rows are about, as SVG for the page and as PNG beside it.

    One that lacks its runs has the reason in its place.
    """
    looks: Any = style.RC
    wanted = {row.figure for row in rows}
    drawn = []
    for plot in plots:
        if plot.id not in wanted:
            continue
        title = f"Figure {plot.id}: {plot.title}"
        try:
            with mpl.rc_context(looks):
                figure = plot.draw(runs)
        except ShortlaneError as error:
            drawn.append(Drawn(title, None, f"Not drawn: {error}."))
            continue
        file = f"figure-{plot.id}.svg"
        style.save(figure, folder / file)
        style.save(figure, (folder / file).with_suffix(".png"), dpi=150)
        drawn.append(Drawn(title, file, plot.caption))
    return drawn
