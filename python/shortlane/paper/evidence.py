"""`verdicts.tsv`: what was found of a paper, a line for each verdict and each value.

Above the table stand lines `# key: value` with what is said of the paper as a whole. The table has
these lines of a row of the paper:

* `verdict`: the row's claim and its outcome, before all others of it;
* `check`: an inequality with its bounds, our value and the outcome;
* `before`: the same of a criterion that has been revised, with its outcome by that;
* `report`: a value that nothing is judged by. Those of a row's tables stand on the page alone.

`note` of a verdict says what `calibrated` is calibrated on, that a criterion was revised, and that
a row ended before all its seeds since these would hardly decide it.

The line `# intervals` says that they hold at all looks together; a file without it has intervals
for a number of seeds that was fixed before.

Of a row under a variant, whose id stands in `variant`, it has the verdict and the check that
decided it. Numbers have six digits. The arguments of a statistic stand in `paper.toml`; `--json`
prints everything.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shortlane.errors import InputError
from shortlane.paper.claims import Bounds, Check
from shortlane.paper.judge import Judged
from shortlane.paper.reader import read_text
from shortlane.paper.verdict import Measured, Outcome, worst_of

__all__ = ["FILE", "Count", "Evidence", "Found", "Head", "read", "text"]

#: The name of the file, in the folder of a paper's results.
FILE = "verdicts.tsv"
COLUMNS = (
    *("row", "variant", "kind", "what", "statistic", "point", "at_least", "at_most", "always"),
    *("published", "value", "low", "high", "unit", "seeds", "note", "outcome"),
)


#: What is said of intervals.
ANYTIME = "anytime-valid, looks after 1/6, 1/3, 2/3 and all of the seeds declared"


@dataclass(frozen=True)
class Count:
    """How a campaign stands."""

    runs: int
    done: int
    failed: int


@dataclass(frozen=True)
class Head:
    """What is said of a paper as a whole."""

    paper: str
    title: str
    reference: str
    quick: bool
    version: str
    #: What repeats it.
    command: str
    #: By campaign.
    runs: Mapping[str, Count]
    #: For which looks at the seeds the intervals hold; empty of one look at all of them.
    intervals: str = ANYTIME


@dataclass(frozen=True)
class Found:
    """A row as it was judged."""

    id: str
    claim: str
    verdict: Outcome
    checks: tuple[Measured, ...]
    #: What `note` gave.
    note: str = ""

    @property
    def worst(self) -> Measured | None:
        """The check that decided; a row that only reports has none."""
        return worst_of(self.checks) if self.checks else None


@dataclass(frozen=True)
class Evidence:
    """What the index of papers needs of one: rows without variants, reports and tables."""

    head: Head
    rows: tuple[Found, ...]


def text(
    head: Head,
    judged: Sequence[Judged],
    variants: Mapping[str, Sequence[Judged]],
) -> str:
    """The file of a paper; `variants` are the rows judged under each, by its id."""
    out = io.StringIO()
    for key, value in _said(head):
        out.write(f"# {key}: {_line(value)}\n")
    table = csv.writer(out, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE)
    table.writerow(COLUMNS)
    for one in judged:
        table.writerows([one.row.id, "", *map(_line, line)] for line in _lines(one))
    for variant, rows in variants.items():
        for one in rows:
            table.writerows([one.row.id, variant, *map(_line, line)] for line in _decided(one))
    return out.getvalue()


def _said(head: Head) -> Iterator[tuple[str, str]]:
    yield "paper", head.paper
    yield "title", head.title
    yield "reference", head.reference
    yield "quick", "yes" if head.quick else "no"
    yield "version", head.version
    yield "command", head.command
    yield "intervals", head.intervals
    for name, count in head.runs.items():
        yield "runs", f"{name}: {count.done} of {count.runs} done, {count.failed} failed"


def _decided(one: Judged) -> Iterator[list[str]]:
    """The verdict, and the check that decided it."""
    blank = [""] * (len(COLUMNS) - 6)
    yield ["verdict", one.row.claim, *blank, note(one), str(one.verdict.outcome)]
    if one.verdict.worst is not None:
        yield _check(one.verdict.worst)


def note(one: Judged) -> str:
    """What a verdict is calibrated on, whether its criterion was revised, and why it ended."""
    told = []
    if one.verdict.outcome is Outcome.CALIBRATED:
        told.append(f"on {one.row.calibrated}")
    if one.row.revised:
        told.append("criterion revised after runs")
    if one.hopeless:
        told.append("more seeds would hardly decide")
    return "; ".join(told)


def _lines(one: Judged) -> Iterator[list[str]]:
    yield next(_decided(one))
    yield from map(_check, one.verdict.checks)
    for check in one.verdict.before.checks if one.verdict.before else ():
        yield ["before", check.check.words, *_values(check, str(check.outcome))]
    for report in one.verdict.reports:
        yield ["report", report.check.words, *_values(report, "")]


def _check(one: Measured) -> list[str]:
    return ["check", one.check.words, *_values(one, str(one.outcome))]


def _values(one: Measured, outcome: str) -> list[str]:
    check = one.check
    bounds = map(_number, (check.bounds.at_least, check.bounds.at_most))
    values = map(_number, (check.published, one.value, one.low, one.high))
    always = "always" if check.hard else ""
    return [
        check.statistic,
        check.point,
        *bounds,
        always,
        *values,
        one.unit,
        str(one.n),
        "",
        outcome,
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _line(value: str) -> str:
    """A text on one line and in one column."""
    return " ".join(value.split())


def read(file: Path) -> Evidence:
    """What `text` wrote.

    Raises:
        InputError: it cannot be read, or is malformed; names it.

    """
    content = read_text(file)
    try:
        said = [line[2:] for line in content.splitlines() if line.startswith("# ")]
        head = _head(dict(_pair(line) for line in said), [_pair(line) for line in said])
        lines = content.splitlines()
        above = next((at for at, line in enumerate(lines) if not line.startswith("# ")), len(lines))
        table = csv.reader(lines[above:], delimiter="\t", quoting=csv.QUOTE_NONE)
        rows = tuple(_rows(table, above, str(file)))
        if not rows:
            raise ValueError("there are no rows")
    except (ValueError, KeyError, csv.Error) as error:
        told = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{file}: is not what `shortlane paper` writes: {told}") from error
    return Evidence(head, rows)


def _pair(line: str) -> tuple[str, str]:
    key, found, value = line.partition(": ")
    if not found:
        raise ValueError(f"found the line '# {line}', which is no '# key: value'")
    return key, value


def _head(said: Mapping[str, str], pairs: Iterable[tuple[str, str]]) -> Head:
    return Head(
        paper=said["paper"],
        title=said["title"],
        reference=said["reference"],
        quick=said["quick"] == "yes",
        version=said["version"],
        command=said["command"],
        runs=dict(_count(value) for key, value in pairs if key == "runs"),
        intervals=said.get("intervals", ""),
    )


def _count(value: str) -> tuple[str, Count]:
    name, _, counts = value.rpartition(": ")
    words = counts.replace(",", "").split()
    if len(words) != 6:
        raise ValueError(f"found runs '{value}'")
    done, _, runs, _, failed, _ = words
    return name, Count(int(runs), int(done), int(failed))


def _rows(lines: Iterator[list[str]], above: int, file: str) -> Iterator[Found]:
    """The rows of the table below so many lines of the file."""
    names = tuple(next(lines, []))
    if names != COLUMNS:
        raise ValueError(f"its columns are {', '.join(names) or 'missing'}")
    found: dict[str, tuple[str, Outcome, str]] = {}
    checks: dict[str, list[Mapping[str, str]]] = {}
    for number, line in enumerate(lines, above + 2):
        one = dict(zip(COLUMNS, line, strict=True))
        outcome = _outcome(one, f"{file}:{number}")
        if one["variant"]:
            continue
        if one["kind"] == "verdict":
            found[one["row"]] = one["what"], outcome, one["note"]
            checks[one["row"]] = []
        elif one["kind"] == "check":
            checks[one["row"]].append(one)
    for name, (claim, verdict, told) in found.items():
        yield Found(name, claim, verdict, tuple(map(_measured, checks[name])), told)


def _outcome(one: Mapping[str, str], at: str) -> Outcome:
    """The outcome of a line of the table at a place; that of a report is empty, and is reported."""
    word = one["outcome"] or ("reported" if one["kind"] == "report" else "")
    if word not in list(Outcome):
        accepted = ", ".join(Outcome)
        raise InputError(f"{at}: the verdict of {one['row']} = {word!r}; it takes {accepted}")
    if word == Outcome.CALIBRATED and one["kind"] == "verdict" and not one["note"]:
        accepted = "what of it a choice was derived from, in the column 'note'"
        raise InputError(
            f"{at}: calibrated, of {one['row']}, does not say on what; it takes {accepted}"
        )
    return Outcome(word)


def _measured(one: Mapping[str, str]) -> Measured:
    least, most, published, value, low, high = (
        float(one[name]) if one[name] else None
        for name in ("at_least", "at_most", "published", "value", "low", "high")
    )
    hard = bool(one["always"])
    bounds = Bounds(least, most)
    check = Check(one["what"], one["statistic"], one["point"], {}, bounds, hard, published)
    outcome = Outcome(one["outcome"])
    # What an interval holds with is not written: it follows from the row and the look.
    return Measured(check, one["unit"], value, low, high, int(one["seeds"]), None, outcome)
