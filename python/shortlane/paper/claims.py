"""A paper's claims as data: what was published, when it counts as reproduced, what to vary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "Bounds",
    "Check",
    "Grid",
    "Paper",
    "Point",
    "Quick",
    "Revision",
    "Row",
    "Variant",
]


@dataclass(frozen=True)
class Bounds:
    """What a statistic may be, both ends included; None is no bound."""

    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        """As a criterion reads: `<= 0.6`, `in [0.7, 1.1]`."""
        if self.at_least is not None and self.at_most is not None:
            return f"in [{self.at_least:g}, {self.at_most:g}]"
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "reported" if self.at_least is None else f">= {self.at_least:g}"


@dataclass(frozen=True)
class Check:
    """One inequality of a row: a statistic of the runs at a point, and its bounds.

    `hard`: it must hold in every single run, so that it has no interval. `published` is the paper's
    own value, where it gives one, and `sentence` what it says that the check stands on.
    """

    words: str
    statistic: str
    point: str
    arguments: Mapping[str, Any]
    bounds: Bounds
    hard: bool = False
    published: float | None = None
    sentence: str = ""


@dataclass(frozen=True)
class Revision:
    """A criterion that was changed after runs: why, what it was, and the checks of then."""

    why: str
    was: str
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Grid:
    """Values that nothing is judged by, as a table: for each row the same statistics."""

    title: str
    head: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Check, ...], ...]


@dataclass(frozen=True)
class Row:
    """One claim, or a question that nobody has published on: then there are no checks.

    `reports` and `grids` are values beside it that nothing is judged by. `calibrated` says which
    choice was derived from the claim, and from what of it; it is empty if none was.
    """

    id: str
    claim: str
    setting: str
    published: str
    criterion: str
    checks: tuple[Check, ...]
    reports: tuple[Check, ...] = ()
    grids: tuple[Grid, ...] = ()
    calibrated: str = ""
    figure: str = ""
    note: str = ""
    revised: Revision | None = None

    @property
    def measured(self) -> tuple[Check, ...]:
        """All that is measured for it."""
        cells = (cell for grid in self.grids for line in grid.cells for cell in line)
        before = self.revised.checks if self.revised else ()
        return (*self.checks, *self.reports, *before, *cells)


@dataclass(frozen=True)
class Point:
    """Runs that a statistic is taken of: a campaign, and which of its points.

    `figures` are those that are drawn of it, beside those of rows that are judged by it.
    """

    words: str
    campaign: str
    at: Mapping[str, Any]
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """The same campaigns with something changed that the paper leaves open.

    `scenario` is another file in the place of the campaigns' own; `set` changes keys of the
    scenario; `schedulers` runs a scheduler with other parameters in the
    place of one of the paper's names, whose other runs are kept; `arguments` are those of checks
    that go with it.
    """

    id: str
    words: str
    campaigns: tuple[str, ...]
    scenario: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    schedulers: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quick:
    """How `--quick` scales: seeds, and keys of the scenario, of all campaigns or of some."""

    seeds: str
    set: Mapping[str, Any]
    campaigns: Mapping[str, Mapping[str, Any]]

    def set_of(self, campaign: str) -> dict[str, Any]:
        """The keys that it changes of one campaign."""
        return {**self.set, **self.campaigns.get(campaign, {})}


@dataclass(frozen=True)
class Paper:
    """All that is known of a paper before anything has run."""

    id: str
    folder: Path
    title: str
    reference: str
    setting: str
    choices: tuple[str, ...]
    #: What runs name a scheduler that the paper has a name for; where its parameters go with the
    #: campaign, all these names.
    schedulers: Mapping[str, tuple[str, ...]]
    campaigns: tuple[str, ...]
    points: Mapping[str, Point]
    rows: tuple[Row, ...]
    variants: tuple[Variant, ...]
    variant_seeds: str
    quick: Quick
    #: What was found out, kept by hand: Markdown for the page.
    findings: str = ""

    def campaign_file(self, name: str) -> Path:
        """Where the campaign of that name is."""
        return self.folder / f"{name}.toml"

    def campaigns_of(self, row: Row) -> set[str]:
        """The campaigns that a row is judged by."""
        return {
            self.points[point].campaign for check in row.measured for point in self.points_of(check)
        }

    def points_of(self, check: Check) -> list[str]:
        """The points that a check reads: its own, and those that its arguments name.

        An argument may be a point, a list of points, or a table with a key for each.
        """
        named = dict.fromkeys([check.point])
        for value in check.arguments.values():
            several = value if isinstance(value, list | Mapping) else [value]
            named.update(dict.fromkeys(one for one in several if isinstance(one, str)))
        return [one for one in named if one in self.points]

    def labels(self) -> dict[str, str]:
        """The paper's names of schedulers, by what runs name them."""
        return {spec: label for label, specs in self.schedulers.items() for spec in specs}
