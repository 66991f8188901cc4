"""What a paper's runs have shown, as one JSON document."""

from collections.abc import Sequence

from shortlane.paper import evidence
from shortlane.paper.claims import Grid
from shortlane.paper.page import Page
from shortlane.paper.verdict import Measured
from shortlane.paper.words import document

__all__ = ["of"]


def of(page: Page) -> dict[str, object]:
    """All that was found, for JSON."""
    paper, scale = page.paper, page.scale
    return {
        "paper": paper.id,
        "title": paper.title,
        "reference": paper.reference,
        "quick": scale.quick,
        "version": scale.version,
        "command": scale.command,
        "intervals": evidence.ANYTIME,
        "runs": {
            name: {"done": count.done, "failed": count.failed, "runs": count.runs}
            for name, count in scale.runs.items()
        },
        "rows": [
            {
                "id": one.row.id,
                "claim": one.row.claim,
                "published": one.row.published,
                "criterion": one.row.criterion,
                "verdict": str(one.verdict.outcome),
                "note": evidence.note(one),
                "seeds_declared": one.most,
                "worst": document(one.verdict.worst) if one.verdict.worst else None,
                "checks": [document(check) for check in one.verdict.checks],
                "before": [
                    document(check)
                    for check in (one.verdict.before.checks if one.verdict.before else ())
                ],
                "reports": [document(report) for report in one.verdict.reports],
                "tables": [
                    _grid_document(grid, cells)
                    for grid, cells in zip(one.row.grids, one.verdict.grids, strict=True)
                ],
            }
            for one in page.judged
        ],
        "sensitivity": [
            {
                "variant": one.variant.id,
                "what": one.variant.words,
                "rows": [
                    {
                        "id": row.row.id,
                        "verdict": str(row.verdict.outcome),
                        "worst": document(row.verdict.worst) if row.verdict.worst else None,
                        "checks": [document(check) for check in row.verdict.checks],
                    }
                    for row in one.rows
                ],
            }
            for one in page.sensitivity
        ],
    }


def _grid_document(grid: Grid, cells: Sequence[Sequence[Measured]]) -> dict[str, object]:
    """Without what all cells of a column share, which stands in `columns` once."""
    columns = [
        {"what": name, "statistic": one.check.statistic, "unit": one.unit}
        for name, one in zip(grid.columns, cells[0], strict=True)
    ]
    rows = [
        {
            grid.head: row,
            "values": [
                {"value": one.value, "low": one.low, "high": one.high, "seeds": one.n}
                for one in line
            ],
        }
        for row, line in zip(grid.rows, cells, strict=True)
    ]
    return {"title": grid.title, "columns": columns, "rows": rows}
