"""The page of a paper: verdicts first, then figures, settings, choices, sensitivity, findings."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shortlane.paper import evidence
from shortlane.paper.claims import Grid, Paper, Revision
from shortlane.paper.evidence import Count
from shortlane.paper.judge import Judged, Sensitivity
from shortlane.paper.verdict import Measured, Outcome, Verdict
from shortlane.paper.words import SIGNS, cell, criterion, interval, number, seeds

__all__ = ["Drawn", "Page", "Scale", "markdown", "replace", "write"]


@dataclass(frozen=True)
class Drawn:
    """A figure: its file beside the page, None if it could not be drawn, and what it shows."""

    title: str
    file: str | None
    caption: str


@dataclass(frozen=True)
class Page:
    """All that a page tells."""

    paper: Paper
    judged: Sequence[Judged]
    sensitivity: Sequence[Sensitivity]
    scale: "Scale"
    figures: Sequence[Drawn] = ()


@dataclass(frozen=True)
class Scale:
    """How much was run."""

    quick: bool
    version: str
    #: By campaign.
    runs: Mapping[str, Count]
    #: What repeats it.
    command: str


def write(folder: Path, page: Page) -> None:
    """Writes `verdicts.tsv` and `README.md` into `folder`, each whole or not at all."""
    paper, scale = page.paper, page.scale
    head = evidence.Head(
        paper.id,
        paper.title,
        paper.reference,
        scale.quick,
        scale.version,
        scale.command,
        scale.runs,
    )
    variants = {one.variant.id: one.rows for one in page.sensitivity}
    replace(folder / evidence.FILE, evidence.text(head, page.judged, variants))
    parts = [
        _head(page),
        _verdicts(page.judged),
        _figures(page.figures),
        _findings(page.paper),
        _checks(page.judged),
        _settings(page.paper, page.scale, _has_verdicts(page.judged)),
        _sensitivity(page),
        _how(page.scale),
    ]
    replace(folder / "README.md", "\n\n".join(part for part in parts if part) + "\n")


def _head(page: Page) -> str:
    paper, judged, scale = page.paper, page.judged, page.scale
    counts = [
        f"{sum(one.verdict.outcome is outcome for one in judged)} {outcome}"
        for outcome in (
            Outcome.REPRODUCED,
            Outcome.CALIBRATED,
            Outcome.NOT_REPRODUCED,
            Outcome.INCONCLUSIVE,
        )
    ]
    found = f"Simulated again with Shortlane {scale.version}: of {len(judged)} claims "
    found += f"{', '.join(counts)}."
    if not _has_verdicts(judged):
        found = f"Simulated with Shortlane {scale.version}: {len(judged)} questions, no verdicts."
    lines = [f"# {paper.title}", "", f"{paper.reference}. {found}"]
    if scale.quick:
        what = "the verdicts are" if _has_verdicts(judged) else "the values are"
        lines += [
            "",
            f"> **Quick.** Fewer and shorter runs: {what} indicative. Run without "
            "`--quick` for those that count.",
        ]
    failed = [f"{count.failed} of {name}" for name, count in scale.runs.items() if count.failed]
    if failed:
        lines += ["", f"> **Runs failed** and are missing here: {', '.join(failed)}."]
    left = {name: one.runs - one.done - one.failed for name, one in scale.runs.items()}
    missing = [f"{count} of {name}" for name, count in left.items() if count]
    absent = [row.id for row in paper.rows if row.id not in {one.row.id for one in judged}]
    if missing:
        lines += ["", f"> **Not complete**: runs are still missing, {', '.join(missing)}."]
    if absent:
        lines += ["", f"> Not judged here: {', '.join(absent)}."]
    return "\n".join(lines)


def _has_verdicts(judged: Sequence[Judged]) -> bool:
    return any(one.verdict.worst is not None for one in judged)


def _verdicts(judged: Sequence[Judged]) -> str:
    if not _has_verdicts(judged):
        asked = [[one.row.id, one.row.claim, one.row.setting] for one in judged]
        return "\n".join(
            [
                "## Questions",
                "",
                "No paper has published on these, so there is nothing to reproduce: values are "
                "[reported](#every-value), with 95 % intervals over seeds.",
                "",
                *markdown(["row", "question", "setting"], asked),
            ]
        )
    rows = [_verdict_cells(one) for one in judged]
    return "\n".join(
        [
            "## Verdicts",
            "",
            "A row of several inequalities is judged by the worst of them, which is shown; "
            "[all of them](#every-inequality). Intervals are of all a row's inequalities together "
            "(95 %, Bonferroni), over seeds, from ratios or values of the same arrivals under "
            "every scheduler. Seeds were run until a row was decided, or all that are declared "
            "would hardly decide it: [intervals are anytime-valid](../../docs/papers.md#seeds), "
            "they hold at all looks together. *Calibrated*: a choice of ours was derived from "
            "what is named beside it. "
            "[Why criteria and settings were changed](../../docs/papers-changes.md).",
            "",
            *markdown(
                [
                    *("row", "claim", "ours, the worst", "needed", "verdict"),
                    *("checks that hold", "seeds"),
                ],
                rows,
            ),
        ]
    )


def _verdict_cells(one: Judged) -> list[str]:
    worst, outcome = one.verdict.worst, f"{SIGNS[one.verdict.outcome]} {one.verdict.outcome}"
    if told := evidence.note(one):
        outcome += f" ({told})"
    if worst is None:
        return [one.row.id, one.row.claim, "", "", outcome, "", ""]
    value = f"{worst.check.words}: **{interval(worst)}**"
    taken = seeds(one.verdict.checks, one.most)
    held = _holding(one.verdict)
    return [one.row.id, one.row.claim, value, criterion(worst), outcome, held, taken]


def _holding(verdict: Verdict) -> str:
    held = sum(check.outcome is Outcome.REPRODUCED for check in verdict.checks)
    return f"{held}/{len(verdict.checks)}"


def _figures(figures: Sequence[Drawn]) -> str:
    if not figures:
        return ""
    lines = ["## Figures"]
    for one in figures:
        shown = [f"![{one.title}]({one.file})", ""] if one.file else []
        lines += ["", f"### {one.title}", "", *shown, one.caption]
    return "\n".join(lines)


def _findings(paper: Paper) -> str:
    return f"## Findings\n\n{paper.findings}" if paper.findings else ""


def _checks(judged: Sequence[Judged]) -> str:
    lines = ["## Every inequality" if _has_verdicts(judged) else "## Every value"]
    for one in judged:
        row, verdict = one.row, one.verdict
        lines += ["", f"### {row.id}: {row.claim}", "", f"*{row.setting}.*"]
        if verdict.checks:
            lines[-1] += f" Published: {row.published}"
            lines += ["", f"Reproduced if: {row.criterion}"]
        if row.note:
            lines += ["", row.note]
        measured = [(check, criterion(check), str(check.outcome)) for check in verdict.checks]
        measured += [(report, "", "reported") for report in verdict.reports]
        if measured:
            lines += ["", *_measured(measured)]
        lines += _sentences(verdict)
        if row.revised and verdict.before:
            lines += _before(row.revised, verdict.before)
        for grid, cells in zip(row.grids, verdict.grids, strict=True):
            lines += ["", *_grid(grid, cells)]
    return "\n".join(lines)


def _sentences(verdict: Verdict) -> list[str]:
    """What checks stand on that name a sentence of their own."""
    told: dict[str, list[str]] = {}
    for one in verdict.checks:
        if one.check.sentence:
            told.setdefault(one.check.sentence, []).append(one.check.words)
    lines = [f"* {'; '.join(words)}: {sentence}" for sentence, words in told.items()]
    return ["", "What each stands on:", "", *lines] if lines else []


def _before(revised: Revision, before: Verdict) -> list[str]:
    """The criterion as it was, with what it would have come to."""
    measured = [(one, criterion(one), str(one.outcome)) for one in before.checks]
    return [
        "",
        f"**Criterion revised after runs.** {revised.why} It was: *{revised.was}* "
        f"By that the row would be {before.outcome}:",
        "",
        *_measured(measured),
    ]


def _grid(grid: Grid, cells: Sequence[Sequence[Measured]]) -> list[str]:
    """With the unit of a column at its head, and the seeds below."""
    heads = [
        f"{name} ({one.unit})" if one.unit else name
        for name, one in zip(grid.columns, cells[0], strict=True)
    ]
    most = max(one.n for line in cells for one in line)

    def written(one: Measured) -> str:
        few = 0 < one.n < most
        return f"{cell(one)} ({one.n})" if few else cell(one)

    lines = [[row, *map(written, line)] for row, line in zip(grid.rows, cells, strict=True)]
    some = any(0 < one.n < most for line in cells for one in line)
    told = "; where only some have a value, how many" if some else ""
    head = f"**{grid.title}** ({most} seeds{told})"
    return [head, "", *markdown([grid.head, *heads], lines)]


def _measured(found: Sequence[tuple[Measured, str, str]]) -> list[str]:
    """Ours with what was needed and came out, beside the paper's own where there are such."""
    head = ["what", "ours", "needed", "seeds", ""]
    rows = [
        [one.check.words, interval(one), needed, str(one.n), outcome]
        for one, needed, outcome in found
    ]
    published = [one.check.published for one, _, _ in found]
    if any(value is not None for value in published):
        head.insert(1, "published")
        for row, value in zip(rows, published, strict=True):
            row.insert(1, "" if value is None else number(value))
    return markdown(head, rows)


def _settings(paper: Paper, scale: Scale, judged: bool) -> str:
    runs = [[name, str(count.done), str(count.failed)] for name, count in scale.runs.items()]
    return "\n".join(
        [
            "## Setting",
            "",
            paper.setting,
            "",
            "What the paper leaves open, and what is taken:" if judged else "What is chosen:",
            "",
            *(f"* {choice}" for choice in paper.choices),
            "",
            *markdown(["campaign", "runs", "failed"], runs),
        ]
    )


def _sensitivity(page: Page) -> str:
    judged, sensitivity = page.judged, page.sensitivity
    if not sensitivity:
        return ""
    names = [one.row.id for one in judged]
    base = ["as above", *(_sign(one) for one in judged)]
    signs = [base]
    values = []
    for one in sensitivity:
        by_row = {row.row.id: row for row in one.rows}
        signs.append(
            [
                one.variant.words,
                *(_sign(by_row[name]) if name in by_row else "" for name in names),
            ]
        )
        for name, row in by_row.items():
            worst = row.verdict.worst
            if worst is None:
                continue
            text = f"{worst.check.words}: {interval(worst)}"
            values.append(
                [name, one.variant.words, text, criterion(worst), str(row.verdict.outcome)]
            )
    values.sort(key=lambda value: names.index(value[0]))
    legend = ", ".join(f"{sign} {outcome}" for outcome, sign in SIGNS.items())
    shown = [name for place, name in enumerate(names) if any(row[place + 1] for row in signs[1:])]
    keep = [0, *(names.index(name) + 1 for name in shown)]
    return "\n".join(
        [
            "## Sensitivity",
            "",
            "Each variant changes one thing that the paper leaves open, for all rows at once. "
            f"Seeds {page.paper.variant_seeds}. {legend}, with the number of checks that hold; "
            "empty: not concerned.",
            "",
            *markdown(["variant", *shown], [[row[place] for place in keep] for row in signs]),
            "",
            "<details><summary>The values</summary>",
            "",
            *markdown(["row", "variant", "ours, the worst", "needed", "verdict"], values),
            "",
            "</details>",
        ]
    )


def _sign(one: Judged) -> str:
    return f"{SIGNS[one.verdict.outcome]} {_holding(one.verdict)}"


def _how(scale: Scale) -> str:
    return "\n".join(
        [
            "## Again",
            "",
            "```sh",
            scale.command,
            "```",
            "",
            "[How verdicts are made](../../docs/papers.md); all numbers are in `verdicts.tsv`.",
        ]
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]


def replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
