"""How values, intervals and verdicts are written."""

import textwrap
from collections.abc import Sequence

from shortlane.paper.judge import Judged
from shortlane.paper.verdict import Measured, Outcome

__all__ = ["SIGNS", "cell", "criterion", "document", "interval", "number", "seeds", "table"]

#: Widths of the columns on a terminal: 100 together with what stands between them.
WIDTHS = (6, 30, 33, 24)

#: Signs beside a verdict, for whoever scans a page.
SIGNS = {
    Outcome.REPRODUCED: "✓",
    Outcome.CALIBRATED: "≈",
    Outcome.INCONCLUSIVE: "?",
    Outcome.NOT_REPRODUCED: "✗",
    Outcome.REPORTED: "·",
}


def number(value: float) -> str:
    """Three digits, never in powers of ten."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def interval(measured: Measured) -> str:
    """`0.07 x [0.06, 0.08]`; without an interval the value alone."""
    if measured.value is None:
        return "no value"
    unit = f" {measured.unit}" if measured.unit else ""
    text = f"{number(measured.value)}{unit}"
    if measured.low is not None and measured.high is not None:
        return f"{text} [{number(measured.low)}, {number(measured.high)}]"
    return text if measured.check.hard else f"{text} (too few seeds)"


def cell(measured: Measured) -> str:
    """`0.07 ±0.01`, for tables: the larger half of the interval, without the unit."""
    if measured.value is None:
        return "-"
    text = number(measured.value)
    if measured.low is None or measured.high is None:
        return text
    half = max(measured.high - measured.value, measured.value - measured.low)
    return f"{text} ±{float(f'{half:.1g}'):g}" if half else text


def seeds(checks: Sequence[Measured], most: int = 0) -> str:
    """How many seeds the checks of a row took, `5 to 20 of 30`; `most` are those declared."""
    counts = sorted({one.n for one in checks})
    if not counts:
        return ""
    text = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{text} of {most}" if most else text


def criterion(measured: Measured) -> str:
    """The bounds of a check as a reader wants them."""
    always = ", always" if measured.check.hard else ""
    return f"{measured.check.bounds}{always}"


def document(measured: Measured) -> dict[str, object]:
    """A check as JSON."""
    bounds = measured.check.bounds
    return {
        "what": measured.check.words,
        "statistic": measured.check.statistic,
        "point": measured.check.point,
        "arguments": dict(measured.check.arguments),
        "at_least": bounds.at_least,
        "at_most": bounds.at_most,
        "hard": measured.check.hard,
        "published": measured.check.published,
        "sentence": measured.check.sentence,
        "value": measured.value,
        "low": measured.low,
        "high": measured.high,
        "unit": measured.unit,
        "confidence": measured.confidence,
        "seeds": measured.n,
        "outcome": str(measured.outcome),
    }


def table(judged: Sequence[Judged]) -> str:
    """The verdicts for a terminal, 100 columns wide at most."""
    rule = "-" * (sum(WIDTHS) + 2 * (len(WIDTHS) - 1))
    lines = _cells(["row", "claim", "our worst value [95 % of the row]", "verdict"])
    for one in judged:
        worst = one.verdict.worst
        value = ""
        if worst is not None:
            value = f"{interval(worst)}; {criterion(worst)}\n({worst.check.words})"
        lines += [rule, *_cells([one.row.id, one.row.claim, value, _verdict(one)])]
    return "\n".join(lines)


def _verdict(one: Judged) -> str:
    if one.verdict.worst is None:
        return f"{SIGNS[one.verdict.outcome]} {one.verdict.outcome}"
    fitting = sum(check.outcome is Outcome.REPRODUCED for check in one.verdict.checks)
    of = f"{fitting} of {len(one.verdict.checks)} checks hold"
    return f"{SIGNS[one.verdict.outcome]} {one.verdict.outcome}\n{of}"


def _cells(texts: Sequence[str]) -> list[str]:
    columns = [
        [line for part in text.split("\n") for line in textwrap.wrap(part, width)]
        for text, width in zip(texts, WIDTHS, strict=True)
    ]
    height = max(map(len, columns))
    padded = [column + [""] * (height - len(column)) for column in columns]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, WIDTHS, strict=True)).rstrip()
        for row in zip(*padded, strict=True)
    ]
