"""One look per scheduler, the same in every figure and page, and how figures are set for print.

Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart. Marker,
dashes and hatch differ as well, so that figures survive a printer without colours.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from shortlane.errors import Usage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMN", "LOOKS", "PAGE", "RC", "Look", "figure_and_axes", "looks", "save", "styled"]

P = ParamSpec("P")
T = TypeVar("T")

#: Widths in inches: a column of a two-column paper, and both.
COLUMN, PAGE = 3.5, 7.16

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
#: Beside Okabe and Ito's: a grey, and their yellow darkened, which as a line is lost on white.
GREY, YELLOW = "#777777", "#B0A000"

SOLID: tuple[float, ...] = ()
DASHED, DOTTED, MIXED, LONG = (4.0, 2.0), (1.2, 1.6), (5.0, 1.6, 1.2, 1.6), (8.0, 2.0)


@dataclass(frozen=True)
class Look:
    """How a scheduler is drawn: `dash` in line widths, `marker` and `hatch` as matplotlib's."""

    color: str
    marker: str
    dash: tuple[float, ...]
    hatch: str

    @property
    def linestyle(self) -> str | tuple[float, tuple[float, ...]]:
        """The dashes as matplotlib takes them."""
        return (0.0, self.dash) if self.dash else "solid"

    @property
    def line(self) -> dict[str, Any]:
        """Keywords of `Axes.plot` for a line with markers."""
        return {
            "color": self.color,
            "linestyle": self.linestyle,
            "marker": self.marker,
            "markersize": 3.2,
            "markeredgewidth": 0.4,
            "markeredgecolor": "white",
        }

    @property
    def bar(self) -> dict[str, Any]:
        """Keywords of `Axes.bar`."""
        return {"facecolor": self.color, "edgecolor": "white", "hatch": self.hatch}


#: By the name of a scheduler without parameters. One that is not here has the look of its name.
LOOKS = {
    "fifo": Look(BLACK, "o", SOLID, ""),
    "efd": Look(RED, "s", SOLID, "///"),
    "fq-lanes": Look(RED, "D", DASHED, "xx"),
    "las": Look(GREEN, "^", DASHED, "..."),
    "lars": Look(PURPLE, "v", MIXED, "xxx"),
    "run2c": Look(BLUE, "D", LONG, "\\\\\\"),
    "run2c-seq": Look(BLUE, "h", DOTTED, "||"),
    "x-protect": Look(ORANGE, "P", DOTTED, "++"),
    "fq-codel": Look(SKY, "X", MIXED, "--"),
    "scfq": Look(GREY, "p", DASHED, "oo"),
    "sb": Look(BLUE, "<", DASHED, "||"),
    "sb-ko": Look(GREEN, ">", LONG, "xx"),
    "sb-sh": Look(PURPLE, "d", LONG, "\\\\"),
    "sift": Look(ORANGE, "v", DASHED, ".."),
    "lanes": Look(SKY, "h", SOLID, "//"),
    "srpt": Look(YELLOW, "d", MIXED, "**"),
    "drr": Look(GREY, "<", MIXED, "++"),
    "wfq": Look(GREY, ">", DOTTED, "--"),
    "codel": Look(YELLOW, "p", LONG, "oo"),
    "cake": Look(SKY, "P", LONG, "||"),
    "marked": Look(SKY, "H", LONG, "\\\\"),
    "red": Look(ORANGE, "^", LONG, "++"),
    "fred": Look(YELLOW, "<", DOTTED, "xx"),
    "rio-ps": Look(BLUE, "s", MIXED, "///"),
    "fsc": Look(PURPLE, "p", DOTTED, "--"),
    "rio": Look(ORANGE, ">", MIXED, ""),
    "wf2q+": Look(GREEN, "8", MIXED, ""),
    "h-fsc": Look(SKY, "H", MIXED, ""),
    "auto": Look(RED, "*", LONG, "**"),
}

COLORS = (ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY, YELLOW, BLACK)
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "h", "<", ">", "p", "d")
DASHES = (SOLID, DASHED, DOTTED, MIXED, LONG)
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "--", "oo", "||")


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The look of each name, in the order given.

    A scheduler without parameters always looks the same. The same scheduler with other parameters
    keeps the colour; marker, dashes and hatch tell the variants of one figure apart. Names that
    are no schedulers get a look of their own, which depends on nothing but the names.
    """
    names = list(dict.fromkeys(names))
    found: dict[str, Look] = {}
    # Sorted, so that the looks do not depend on the order of drawing.
    for name in sorted(names):
        base = name.split(":", 1)[0]
        look = LOOKS.get(base) or look_of_unknown(base)
        step = 0
        while look in found.values():
            step += 1
            look = variant(look, base, step)
        found[name] = look
    return {name: found[name] for name in names}


def variant(look: Look, base: str, step: int) -> Look:
    """The `step`-th other look of the same colour; of another colour where `base` is unknown."""

    def after(choices: tuple[Any, ...], value: Any) -> Any:
        return choices[(choices.index(value) + 1) % len(choices)] if value in choices else value

    other = replace(look, marker=after(MARKERS, look.marker), dash=after(DASHES, look.dash))
    other = replace(other, hatch=HATCHES[step % len(HATCHES)])
    return other if base in LOOKS else replace(other, color=after(COLORS, look.color))


def look_of_unknown(name: str) -> Look:
    """A look that a name alone decides."""
    number = zlib.crc32(name.encode())
    choice = [
        values[number // 7**k % len(values)]
        for k, values in enumerate((COLORS, MARKERS, DASHES, HATCHES))
    ]
    return Look(*choice)


#: matplotlib's settings (its keys are a type of their own, hence `Any`).
RC: Any = {
    "font.size": 8,
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.1,
    "hatch.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "figure.dpi": 150,
}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """A function that draws, with `RC` for its time; nobody else's settings change."""

    @wraps(draw)
    def with_style(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib as mpl

        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return with_style


@styled
def figure_and_axes(
    axes: Axes | None, *, width: float = COLUMN, height: float = 2.3
) -> tuple[Figure, Axes]:
    """Those of `axes`, or a new figure of `width` by `height` inches with one axes."""
    if axes is not None:
        figure = axes.get_figure(root=True)
        if figure is None:
            raise Usage("axes: found axes that belong to no figure")
        return figure, axes
    figure, grid = new_figure(1, width=width, height=height)
    return figure, grid[0]


@styled
def new_figure(panels: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of `panels` axes above each other that share x, `height` inches each.

    It belongs to no window and to no global state, so that nothing needs closing; a notebook shows
    it as it is.
    """
    from matplotlib.figure import Figure

    class Shown(Figure):
        """A figure that notebooks show without pyplot."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png", dpi=150)
            return picture.getvalue()

    figure = Shown(figsize=(width, height * panels), layout="constrained")
    grid = figure.subplots(panels, 1, sharex=True, squeeze=False)
    return figure, [row[0] for row in grid]


def save(figure: Figure, path: str | Path, *, dpi: int = 300) -> Path:
    """Writes a figure as what `path` ends in: .svg, .pdf or .png. The same figure, the same bytes.

    Text stays text in SVG and PDF. SVG is made compact (`figures.svg`).
    """
    import matplotlib as mpl

    from shortlane.figures.svg import compact

    path = Path(path)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
    if path.suffix not in undated:
        raise Usage(f"{path}: found the ending {path.suffix!r}; accepted: {', '.join(undated)}")
    fixed: Any = {"svg.fonttype": "none", "svg.hashsalt": "shortlane", "pdf.fonttype": 42}
    with mpl.rc_context(RC | fixed):
        figure.savefig(path, dpi=dpi, metadata=undated[path.suffix])
    if path.suffix == ".svg":
        path.write_text(compact(path.read_text(encoding="utf-8")), encoding="utf-8")
    return path
