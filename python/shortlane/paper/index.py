"""The index of papers: one page with the verdict on every row of every paper of a folder."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlane.errors import InputError
from shortlane.paper import page
from shortlane.paper.reader import read_text
from shortlane.paper.verdict import Outcome
from shortlane.paper.words import SIGNS, criterion, interval, measured

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
    return sorted(one.name for one in papers if not (one / "verdicts.json").is_file())


def read(folder: Path) -> list[dict[str, Any]]:
    """What papers in folders of `folder` have in `verdicts.json`, in the order of their rows' ids.

    Raises:
        InputError: there is none, or one is malformed; names it.

    """
    files = sorted(folder.glob("*/verdicts.json"))
    if not files:
        raise InputError(f"{folder}: found no */verdicts.json; it takes a folder of papers run")
    return sorted((_read(file) for file in files), key=lambda found: str(found["rows"][0]["id"]))


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(file))
        if not found["rows"]:
            raise ValueError("there are no rows")
        # Whatever is missing of what is written below is missed here.
        _section(found | {"paper": file.parent.name})
        str(found["quick"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{file}: is not what `shortlane paper` writes: {said}") from error
    return dict(found) | {"paper": file.parent.name}


def text(documents: Sequence[Mapping[str, Any]], missing: Sequence[str] = ()) -> str:
    """The page: totals, then a table for each paper. `missing` are papers to name without one."""
    every = [row for found in documents for row in found["rows"]]
    parts = [
        "# The papers run again",
        f"Of {len(every)} claims in {len(documents)} papers: {_told(every)}. "
        "[How verdicts are made](../docs/papers.md). A row of several inequalities is judged by "
        "the worst of them, which is shown with its interval; the page of the paper has all.",
        "\n".join(_totals(documents)),
        *(f"> Not among these: [{name}]({name}/README.md)." for name in missing),
        *map(_section, documents),
    ]
    return "\n\n".join(parts) + "\n"


def _totals(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    kinds = _outcomes(row for found in documents for row in found["rows"])
    head = ["paper", "claims", *(f"{_sign(kind)}{kind}" for kind in kinds)]
    rows = []
    for found in documents:
        outcomes = [row["verdict"] for row in found["rows"]]
        link = f"[{found['title']}]({found['paper']}/README.md)"
        counts = [str(outcomes.count(kind) or "") for kind in kinds]
        rows.append([link, str(len(outcomes)), *counts])
    return page.markdown(head, rows)


def _section(found: Mapping[str, Any]) -> str:
    here = f"{found['paper']}/README.md"
    reference = f"{found['reference']}. " if found.get("reference") else ""
    notes = ["", "> **Quick**: the verdicts are indicative."] if found["quick"] else []
    lines = [
        f"## [{found['title']}]({here})",
        "",
        f"{reference}Of {len(found['rows'])} claims {_told(found['rows'])}.",
        *notes,
        *_standing(found["runs"]),
        "",
        *page.markdown(
            ["row", "claim", "ours, the worst", "needed", "verdict", "checks that hold"],
            [_row(row, here) for row in found["rows"]],
        ),
    ]
    return "\n".join(lines)


def _standing(runs: Mapping[str, Mapping[str, int]]) -> list[str]:
    failed = sum(count["failed"] for count in runs.values())
    missing = sum(count["runs"] - count["done"] - count["failed"] for count in runs.values())
    lines = []
    if failed:
        lines += ["", f"> {failed} runs failed and are in no verdict."]
    if missing:
        lines += ["", f"> {missing} runs are still missing."]
    return lines


def _row(row: Mapping[str, Any], here: str) -> list[str]:
    # A row that only reports has no worst.
    worst = measured(row["worst"]) if row["worst"] else None
    held = sum(check["outcome"] == Outcome.REPRODUCED for check in row["checks"])
    return [
        _link(row, here),
        row["claim"],
        f"{worst.check.words}: **{interval(worst)}**" if worst else "",
        criterion(worst) if worst else "",
        f"{_sign(row['verdict'])}{row['verdict']}",
        f"{held}/{len(row['checks'])}" if row["checks"] else "",
    ]


def _link(row: Mapping[str, Any], here: str) -> str:
    """To the row on the page of its paper."""
    heading = f"{row['id']}: {row['claim']}"
    return f"[{row['id']}]({here}#{_anchor(heading)})"


def _told(rows: Sequence[Mapping[str, Any]]) -> str:
    outcomes = [row["verdict"] for row in rows]
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in _outcomes(rows))


def _outcomes(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The four outcomes, then whatever else there is."""
    others = sorted({row["verdict"] for row in rows}.difference(OUTCOMES))
    return [*map(str, OUTCOMES), *others]


def _sign(outcome: str) -> str:
    return f"{SIGNS[Outcome(outcome)]} " if outcome in list(Outcome) else ""


def _anchor(heading: str) -> str:
    """What GitHub calls a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
