"""Reads a paper's claims from its folder."""

import itertools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from shortlane.paper.claims import (
    Bounds,
    Check,
    Grid,
    Paper,
    Point,
    Quick,
    Revision,
    Row,
    Variant,
)
from shortlane.paper.reader import Reader, one_of, read, read_text
from shortlane.paper.statistics import Statistic

__all__ = ["load"]


def load(folder: Path, statistics: Mapping[str, Statistic]) -> Paper:
    """The paper in `folder`: `paper.toml`; `sensitivity.toml` and `findings.md` if they are there.

    Args:
        folder: one of `papers/`.
        statistics: what checks may use, by name.

    Raises:
        InputError: a file is missing or malformed; names file, place, found and accepted.

    """
    top = read(folder / "paper.toml")
    points = {name: _point(reader, folder) for name, reader in top.named_tables("points").items()}
    rows = tuple(_row(reader, points, statistics) for reader in top.tables("row"))
    if not rows:
        raise top.missing("row", "at least one table [[row]]")
    for place, row in enumerate(rows):
        if row.id in {other.id for other in rows[:place]}:
            raise top.refused(f"row[{place}].id", row.id, "an id of its own")
    campaigns = tuple(dict.fromkeys(point.campaign for point in points.values()))
    variants, seeds = _variants(folder, campaigns, [row.id for row in rows])
    paper = Paper(
        id=folder.name,
        folder=folder,
        title=top.text("title"),
        reference=top.text("reference"),
        setting=top.text("setting").strip(),
        choices=tuple(top.texts("choices")),
        schedulers=_schedulers(top),
        campaigns=campaigns,
        points=points,
        rows=rows,
        variants=variants,
        variant_seeds=seeds,
        quick=_quick(top, campaigns),
        findings=_findings(folder),
    )
    top.done()
    return paper


def _point(reader: Reader, folder: Path) -> Point:
    campaign = reader.text("campaign")
    if not (folder / f"{campaign}.toml").is_file():
        raise reader.refused("campaign", campaign, f"the name of a file in {folder}, without .toml")
    figures = tuple(reader.texts("figures"))
    point = Point(reader.text("words"), campaign, reader.table("at"), figures)
    reader.done()
    return point


def _row(reader: Reader, points: Mapping[str, Point], statistics: Mapping[str, Statistic]) -> Row:
    row = Row(
        id=reader.text("id"),
        claim=reader.text("claim"),
        figure=reader.text("figure", ""),
        setting=reader.text("setting"),
        published=reader.text("published", ""),
        criterion=reader.text("criterion", ""),
        note=reader.text("note", ""),
        calibrated=reader.text("calibrated", ""),
        checks=_judged(reader, points, statistics),
        revised=_revision(reader, points, statistics),
        reports=_checks(reader, "report", points, statistics),
        grids=tuple(_grid(table, points, statistics) for table in reader.tables("table")),
    )
    if not row.measured:
        raise reader.missing("check", "at least one table [[row.check]]")
    for key, told in (("published", row.published), ("criterion", row.criterion)):
        if row.checks and not told:
            raise reader.missing(key, "a text")
    for check in row.checks:
        if check.bounds == Bounds():
            raise reader.missing("check", f"at-least or at-most for '{check.words}'")
    reader.done()
    return row


def _judged(
    row: Reader, points: Mapping[str, Point], statistics: Mapping[str, Statistic]
) -> tuple[Check, ...]:
    """The checks of a row; each stands on a sentence, its own or all that the row has published.

    Where the criterion was revised they have been written from the text, and name it one by one.
    """
    revised = row.has("revised")
    found = []
    for reader in row.tables("check"):
        if revised and not reader.has("sentence"):
            accepted = "what the paper says that this check stands on"
            raise reader.missing("sentence", accepted)
        found += _expanded(reader, points, statistics)
    return tuple(found)


def _revision(
    row: Reader, points: Mapping[str, Point], statistics: Mapping[str, Statistic]
) -> Revision | None:
    reader = row.inner("revised")
    if reader is None:
        return None
    found = Revision(
        reader.text("why"), reader.text("was"), _checks(reader, "check", points, statistics)
    )
    if not found.checks:
        raise reader.missing("check", "the checks as they were: [[row.revised.check]]")
    reader.done()
    return found


def _checks(
    row: Reader, key: str, points: Mapping[str, Point], statistics: Mapping[str, Statistic]
) -> tuple[Check, ...]:
    return tuple(
        check for reader in row.tables(key) for check in _expanded(reader, points, statistics)
    )


def _expanded(
    reader: Reader, points: Mapping[str, Point], statistics: Mapping[str, Statistic]
) -> list[Check]:
    """The checks of one table: one for every combination of `each`."""
    statistic = one_of(reader, "statistic", reader.text("statistic"), statistics)
    point = reader.text("point", "")
    words = reader.text("words")
    arguments = reader.table("with")
    bounds = Bounds(reader.number("at-least"), reader.number("at-most"))
    hard, sentence = reader.flag("hard"), reader.text("sentence", "")
    choices = _every(reader)
    checks = []
    for choice, published in zip(choices, _published(reader, len(choices)), strict=True):
        here = one_of(reader, "point", choice.pop("point", point), points)
        chosen = {**arguments, **choice}
        try:
            text = words.format(**chosen, point=points[here].words)
        except (KeyError, IndexError, ValueError) as error:
            known = ", ".join([*chosen, "point"])
            raise reader.refused("words", words, f"only {{{known}}} in braces") from error
        _complete(reader, statistics[statistic], chosen)
        checks.append(Check(text, statistic, here, chosen, bounds, hard, published, sentence))
    reader.done()
    return checks


def _grid(reader: Reader, points: Mapping[str, Point], statistics: Mapping[str, Statistic]) -> Grid:
    """A row for each value of the one argument in `rows`, a column for each `column`."""
    title, rows = reader.text("title"), reader.table("rows")
    columns = reader.tables("column")
    if len(rows) != 1 or not all(isinstance(values, list) and values for values in rows.values()):
        raise reader.refused("rows", rows, "one argument with a list that is not empty")
    if not columns:
        raise reader.missing("column", "at least one table [[row.table.column]]")
    ((argument, values),) = rows.items()
    cells = []
    for value in values:
        own = [one.with_each(argument, [value]) for one in columns]
        cells.append([check for one in own for check in _expanded(one, points, statistics)])
    reader.done()
    names = [points[value].words if argument == "point" else str(value) for value in values]
    labels = [cell.words for cell in cells[0]]
    if any([cell.words for cell in line] != labels for line in cells):
        raise reader.refused("column", argument, f"words without {{{argument}}}")
    return Grid(title, argument, tuple(names), tuple(labels), tuple(map(tuple, cells)))


def _complete(reader: Reader, statistic: Statistic, arguments: Mapping[str, Any]) -> None:
    """Refuses arguments that the statistic does not take, and the lack of those that it needs."""
    needed, taken = statistic.parameters()
    for name in arguments:
        if name not in taken:
            raise reader.refused("with", name, f"arguments of {statistic.name}: {', '.join(taken)}")
    for name in needed:
        if name not in arguments:
            raise reader.missing(f"with.{name}", f"an argument of {statistic.name}")


def _every(reader: Reader) -> list[dict[str, Any]]:
    """Every combination of `each`; one without anything if there is none."""
    each = reader.table("each")
    for name, values in each.items():
        if not isinstance(values, list) or not values:
            raise reader.refused(f"each.{name}", values, "a list that is not empty")
    return [dict(zip(each, values, strict=True)) for values in itertools.product(*each.values())]


def _published(reader: Reader, choices: int) -> list[float | None]:
    """The paper's value for each combination of `each`: a list, or a number if there is but one."""
    given = reader.numbers("published")
    if not given:
        return [None] * choices
    if len(given) != choices:
        raise reader.refused("published", given, f"a number for each of {choices} combinations")
    return [*given]


def _quick(top: Reader, campaigns: Collection[str]) -> Quick:
    reader = top.inner("quick")
    if reader is None:
        raise top.missing("quick", "a table with seeds and set")
    some = reader.table("campaigns")
    for name, value in some.items():
        one_of(reader, "campaigns", name, campaigns)
        if not isinstance(value, dict):
            raise reader.refused(f"campaigns.{name}", value, "a table")
    quick = Quick(reader.text("seeds"), reader.table("set"), some)
    reader.done()
    return quick


def _findings(folder: Path) -> str:
    file = folder / "findings.md"
    return read_text(file).strip() if file.exists() else ""


def _variants(
    folder: Path, campaigns: Collection[str], rows: Collection[str]
) -> tuple[tuple[Variant, ...], str]:
    """The variants, and the seeds that they run with."""
    file = folder / "sensitivity.toml"
    if not file.is_file():
        return (), ""
    top = read(file)
    seeds = top.text("seeds")
    variants = []
    for reader in top.tables("variant"):
        variant = Variant(
            id=reader.text("id"),
            words=reader.text("words"),
            campaigns=tuple(reader.texts("campaigns")),
            scenario=reader.text("scenario", ""),
            set=reader.table("set"),
            schedulers=_texts(reader, "schedulers"),
            arguments=reader.table("arguments"),
            rows=tuple(reader.texts("rows")),
        )
        for name in variant.campaigns:
            one_of(reader, "campaigns", name, campaigns)
        for name in variant.rows:
            one_of(reader, "rows", name, rows)
        if not variant.campaigns:
            raise reader.missing("campaigns", "a list of campaigns that it changes")
        if not variant.set and not variant.schedulers and not variant.scenario:
            accepted = "what it changes: a table 'set' or 'schedulers', or a 'scenario'"
            raise reader.missing("set", accepted)
        if variant.scenario and not (folder / variant.scenario).is_file():
            raise reader.refused("scenario", variant.scenario, f"the name of a file in {folder}")
        reader.done()
        variants.append(variant)
    top.done()
    return tuple(variants), seeds


def _schedulers(top: Reader) -> dict[str, tuple[str, ...]]:
    found = {}
    for label, specs in top.table("schedulers").items():
        listed = specs if isinstance(specs, list) else [specs]
        if not listed or not all(isinstance(spec, str) for spec in listed):
            raise top.refused(f"schedulers.{label}", specs, "a scheduler, or a list of schedulers")
        found[label] = tuple(listed)
    return found


def _texts(reader: Reader, key: str) -> dict[str, str]:
    table = reader.table(key)
    for name, value in table.items():
        if not isinstance(value, str):
            raise reader.refused(f"{key}.{name}", value, "a text")
    return table
