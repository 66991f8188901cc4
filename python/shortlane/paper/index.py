"""The index of papers: one page with the verdict on every row of every paper of a folder."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from shortlane.errors import InputError
from shortlane.paper import evidence, page
from shortlane.paper.evidence import Count, Evidence, Found
from shortlane.paper.verdict import Outcome
from shortlane.paper.words import SIGNS, criterion, interval, seeds

__all__ = ["read", "text", "without", "write"]

#: Outcomes in the order of the totals.
OUTCOMES = (
    Outcome.REPRODUCED,
    Outcome.CALIBRATED,
    Outcome.NOT_REPRODUCED,
    Outcome.INCONCLUSIVE,
)


def write(folder: Path) -> Path:
    """Writes the index of the papers in folders of `folder` into it; gives the page."""
    file = folder / "README.md"
    page.replace(file, text(read(folder), without(folder)))
    return file


def without(folder: Path) -> list[str]:
    """Folders of papers whose verdicts are not there."""
    papers = (claims.parent for claims in folder.glob("*/paper.toml"))
    return sorted(one.name for one in papers if not (one / evidence.FILE).is_file())


def read(folder: Path) -> dict[str, Evidence]:
    """What papers in folders of `folder` have found, by folder, in the order of their rows' ids.

    Raises:
        InputError: there is none, or one is malformed; names it.

    """
    files = sorted(folder.glob(f"*/{evidence.FILE}"))
    if not files:
        raise InputError(f"{folder}: found no */{evidence.FILE}; it takes a folder of papers run")
    every = {file.parent.name: evidence.read(file) for file in files}
    return dict(sorted(every.items(), key=lambda one: one[1].rows[0].id))


def text(papers: Mapping[str, Evidence], missing: Sequence[str] = ()) -> str:
    """The page: totals, then a table for each paper. `missing` are papers to name without one."""
    every = [row for found in papers.values() for row in found.rows]
    parts = [
        "# The papers run again",
        f"Of {len(every)} claims in {len(papers)} papers: {_told(every)}. "
        "[How verdicts are made](../docs/papers.md). A row of several inequalities is judged by "
        "the worst of them, which is shown with its interval; the page of the paper has all.",
        "\n".join(_totals(papers)),
        *(f"> Not among these: [{name}]({name}/README.md)." for name in missing),
        *(_section(name, found) for name, found in papers.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _totals(papers: Mapping[str, Evidence]) -> list[str]:
    kinds = _outcomes(row for found in papers.values() for row in found.rows)
    head = ["paper", "claims", *(f"{_sign(kind)}{kind}" for kind in kinds)]
    rows = []
    for name, found in papers.items():
        outcomes = [str(row.verdict) for row in found.rows]
        link = f"[{found.head.title}]({name}/README.md)"
        counts = [str(outcomes.count(kind) or "") for kind in kinds]
        rows.append([link, str(len(outcomes)), *counts])
    return page.markdown(head, rows)


def _section(name: str, found: Evidence) -> str:
    here = f"{name}/README.md"
    head = found.head
    reference = f"{head.reference}. " if head.reference else ""
    notes = ["", "> **Quick**: the verdicts are indicative."] if head.quick else []
    if not head.intervals and any(row.checks for row in found.rows):
        notes += ["", "> From a number of seeds that was fixed before; no row ended early."]
    lines = [
        f"## [{head.title}]({here})",
        "",
        f"{reference}Of {len(found.rows)} claims {_told(found.rows)}.",
        *notes,
        *_standing(head.runs),
        "",
        *page.markdown(
            ["row", "claim", "ours, the worst", "needed", "verdict", "checks that hold", "seeds"],
            [_row(row, here) for row in found.rows],
        ),
    ]
    return "\n".join(lines)


def _standing(runs: Mapping[str, Count]) -> list[str]:
    failed = sum(count.failed for count in runs.values())
    missing = sum(count.runs - count.done - count.failed for count in runs.values())
    lines = []
    if failed:
        lines += ["", f"> {failed} runs failed and are in no verdict."]
    if missing:
        lines += ["", f"> {missing} runs are still missing."]
    return lines


def _row(row: Found, here: str) -> list[str]:
    # A row that only reports has no worst.
    worst = row.worst
    held = sum(check.outcome is Outcome.REPRODUCED for check in row.checks)
    return [
        _link(row, here),
        row.claim,
        f"{worst.check.words}: **{interval(worst)}**" if worst else "",
        criterion(worst) if worst else "",
        f"{_sign(row.verdict)}{row.verdict}" + (f" ({row.note})" if row.note else ""),
        f"{held}/{len(row.checks)}" if row.checks else "",
        seeds(row.checks),
    ]


def _link(row: Found, here: str) -> str:
    """To the row on the page of its paper."""
    heading = f"{row.id}: {row.claim}"
    return f"[{row.id}]({here}#{_anchor(heading)})"


def _told(rows: Sequence[Found]) -> str:
    outcomes = [str(row.verdict) for row in rows]
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in _outcomes(rows))


def _outcomes(rows: Iterable[Found]) -> list[str]:
    """The four outcomes, then whatever else there is."""
    others = sorted({row.verdict for row in rows}.difference(OUTCOMES))
    return [*map(str, OUTCOMES), *others]


def _sign(outcome: str) -> str:
    return f"{SIGNS[Outcome(outcome)]} " if outcome in list(Outcome) else ""


def _anchor(heading: str) -> str:
    """What GitHub calls a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
