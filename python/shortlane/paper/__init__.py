"""Papers run again: claims as data, a verdict on each, figures and one page.

`shortlane paper NAME` does it all; `known`, `named`, `judge_row` and `Tables` are for notebooks.
"""

from shortlane.paper.catalog import known, named
from shortlane.paper.claims import Paper
from shortlane.paper.judge import judge_row
from shortlane.paper.loading import load
from shortlane.paper.statistics import Tables

__all__ = ["Paper", "Tables", "judge_row", "known", "load", "named"]
