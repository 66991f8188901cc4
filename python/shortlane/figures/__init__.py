"""Figures of results, for print: each function gives a matplotlib figure, or draws into `axes`.

Every function takes results (`shortlane.simulate`, `replay`, `read`) or the polars table it needs.
`data` has the numbers behind them, `style` the looks; `save` writes .svg, .pdf and .png.
"""

from shortlane.figures import data, style
from shortlane.figures.draw import bars, cdf, histogram, mean_by_size, progress, time_series
from shortlane.figures.ellipses import rate_against_delay
from shortlane.figures.style import LOOKS, Look, looks, save

__all__ = [
    "LOOKS",
    "Look",
    "bars",
    "cdf",
    "data",
    "histogram",
    "looks",
    "mean_by_size",
    "progress",
    "rate_against_delay",
    "save",
    "style",
    "time_series",
]
