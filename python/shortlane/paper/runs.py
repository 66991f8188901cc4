"""The runs behind a paper's rows: its campaigns, run where results are missing, read by columns."""

import contextlib
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shortlane import campaign, simulate
from shortlane.errors import InputError, RunError, ScenarioError
from shortlane.paper.claims import Paper, Point, Row, Variant
from shortlane.paper.reader import read_text
from shortlane.paper.statistics import Statistic, Tables

__all__ = ["Job", "Runs", "affected", "jobs"]

#: Columns that tables of results have beside what they are asked for.
IDENTITY = ("scheduler", "seed")


@dataclass(frozen=True)
class Job:
    """A campaign to run, as a definition, and its folder below that of the results."""

    name: str
    folder: str
    #: The file that the definition is made from.
    file: Path
    definition: Mapping[str, Any]
    variant: str = ""

    def campaign(self) -> campaign.Campaign:
        """What runs it.

        Raises:
            InputError: it asks for something that there is not; names the file.

        """
        try:
            return campaign.Campaign.load(self.definition)
        except InputError as error:
            raise InputError(f"{self.file}: {error}") from error

    def check(self, points: Iterable[Point]) -> None:
        """Refuses what would fail or be found missing only after the runs.

        Args:
            points: those of the paper that are at this campaign.

        Raises:
            InputError: its scenario is not accepted, or there are no runs at one of the points.

        """
        found = self.campaign().points()
        for point in points:
            at = point.at
            if not any(at.items() <= one.params.items() for one in found):
                raise InputError(f"{self.file}: there are no runs of a point at {dict(at)}")
        scenario = tomllib.loads(found[0].scenario) | {"schedulers": {"run": ["fifo"]}}
        # With this bound a run ends with its first packets.
        scenario["scenario"]["bound"] = 1
        try:
            with contextlib.suppress(RunError):
                simulate(scenario, seeds=1, jobs=1, tables=["blocks"])
        except ScenarioError as error:
            said = str(error).removeprefix("<dict>: ")
            raise InputError(f"{self.file}: in its scenario, {said}") from error


def jobs(
    paper: Paper, rows: Collection[Row], *, quick: bool, variants: Collection[Variant]
) -> list[Job]:
    """The campaigns that these rows and the figures of their campaigns need, then the variants'."""
    needed = {name for row in rows for name in paper.campaigns_of(row)}
    figures = {row.figure for row in rows}
    drawn = {one.campaign for one in paper.points.values() if figures.intersection(one.figures)}
    chosen = [name for name in paper.campaigns if name in needed | drawn]
    base = [
        Job(name, name, paper.campaign_file(name), _definition(paper, name, quick))
        for name in chosen
    ]
    return base + [
        Job(
            f"{name}, {variant.words}",
            _variant_folder(name, variant),
            paper.campaign_file(name),
            _changed(paper, _definition(paper, name, quick), variant),
            variant.id,
        )
        for variant in variants
        if affected(paper, rows, variant)
        for name in variant.campaigns
        if name in needed
    ]


def affected(paper: Paper, rows: Collection[Row], variant: Variant) -> list[Row]:
    """The rows that a variant is judged for: those it names, or all that use its campaigns."""
    return [
        row
        for row in rows
        if (not variant.rows or row.id in variant.rows)
        and paper.campaigns_of(row).intersection(variant.campaigns)
    ]


def _definition(paper: Paper, name: str, quick: bool) -> dict[str, Any]:
    """The campaign's file as a table, with the scale of `--quick`."""
    file = paper.campaign_file(name)
    try:
        found = tomllib.loads(read_text(file))
        head = dict(found["campaign"])
        beside = file.parent / head["scenario"]
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: is not TOML: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: campaign.scenario is missing; it takes a scenario") from error
    if beside.is_file():
        head["scenario"] = str(beside.absolute())
    settings = dict(found.get("set", {}))
    if quick:
        head["title"] = f"{head.get('title', name)} (quick)"
        head["seeds"] = paper.quick.seeds if head.get("seeds") != "1" else "1"
        settings |= paper.quick.set_of(name)
    return found | {"campaign": head, "set": settings}


def _changed(paper: Paper, definition: dict[str, Any], variant: Variant) -> dict[str, Any]:
    head = dict(definition["campaign"]) | {"seeds": paper.variant_seeds}
    head["title"] = f"{head['title']}: {variant.words}"
    if variant.scenario:
        head["scenario"] = str((paper.folder / variant.scenario).absolute())
    changed = definition | {
        "campaign": head,
        "set": definition["set"] | dict(variant.set),
    }
    if variant.schedulers:
        changed["schedulers"] = {"run": list(variant.schedulers.values())}
        # What a rule leaves out of the paper's schedulers is not said of others.
        rules = definition.get("exclude", [])
        changed["exclude"] = [rule for rule in rules if "scheduler" not in rule]
    return changed


def _variant_folder(name: str, variant: Variant) -> str:
    return f"{name}@{variant.id}"


class Runs:
    """Results of the campaigns below a folder, as tables by point and variant.

    Of each table only the columns are read that some statistic or figure asks for. What has been
    read stays until `keep` frees it.
    """

    def __init__(
        self,
        paper: Paper,
        folder: Path | str,
        statistics: Mapping[str, Statistic],
        drawn: Mapping[str, Mapping[str, Collection[str]]] | None = None,
    ) -> None:
        """`folder` has the campaigns' folders; `drawn` are columns that figures read.

        These are by campaign and table.
        """
        self._paper = paper
        self._folder = str(folder)
        self._columns = _columns_needed(paper, statistics, drawn or {})
        self._kept: dict[tuple[str, str, str], pl.DataFrame] = {}

    def at(
        self,
        point: str,
        variant: Variant | None = None,
        seeds: Mapping[str, Collection[int]] | None = None,
    ) -> Tables:
        """The tables of the runs at a point of the paper, under a variant if given.

        `seeds` are those to read, by campaign; None: all that there are.
        """

        def load(table: str) -> pl.DataFrame:
            found = self._table(point, variant, table)
            if seeds is None:
                return found
            wanted = seeds[self._paper.points[point].campaign]
            return found.filter(pl.col("seed").is_in(list(wanted)))

        return Tables(load, lambda other: self.at(other, variant, seeds))

    def words(self, point: str) -> str:
        """What a point is, for a reader."""
        return self._paper.points[point].words

    def keep(self, points: Iterable[str]) -> None:
        """Frees what has been read of other points."""
        kept = set(points)
        self._kept = {key: table for key, table in self._kept.items() if key[0] in kept}

    def _table(self, point: str, variant: Variant | None, table: str) -> pl.DataFrame:
        key = (point, variant.id if variant else "", table)
        if key not in self._kept:
            self._kept[key] = pl.concat(self._parts(point, variant, table), how="vertical_relaxed")
        return self._kept[key]

    def _parts(self, point: str, variant: Variant | None, table: str) -> Iterator[pl.DataFrame]:
        name = self._paper.points[point].campaign
        labels = self._paper.labels()
        if variant is None or name not in variant.campaigns:
            yield self._read(name, point, table, labels)
            return
        changed = {spec: label for label, spec in variant.schedulers.items()}
        yield self._read(_variant_folder(name, variant), point, table, labels | changed)
        if changed:
            rest = self._table(point, None, table)
            yield rest.filter(~pl.col("scheduler").is_in(list(changed.values())))

    def _read(self, folder: str, point: str, table: str, labels: Mapping[str, str]) -> pl.DataFrame:
        wanted = self._columns[self._paper.points[point].campaign, table]
        results = campaign.open(f"{self._folder}/{folder}")
        there = [
            pl.col(f"param.{key}") == value for key, value in self._paper.points[point].at.items()
        ]
        frame = results.table(table, columns=wanted, runs=results.runs().filter(*there))
        chosen = frame.select(*IDENTITY, *wanted)
        return chosen.with_columns(pl.col("scheduler").replace(dict(labels))).collect()


def _columns_needed(
    paper: Paper,
    statistics: Mapping[str, Statistic],
    drawn: Mapping[str, Mapping[str, Collection[str]]],
) -> dict[tuple[str, str], list[str]]:
    """By campaign and table: what statistics of its points read, and what figures do."""
    needed: dict[tuple[str, str], set[str]] = {}

    def need(campaign: str, tables: Mapping[str, Collection[str]]) -> None:
        for table, columns in tables.items():
            needed.setdefault((campaign, table), set()).update(columns)

    for name, tables in drawn.items():
        need(name, tables)
    for row in paper.rows:
        for check in row.measured:
            for point in paper.points_of(check):
                need(paper.points[point].campaign, statistics[check.statistic].tables)
    return {key: sorted(columns - set(IDENTITY)) for key, columns in needed.items()}
