"""Reports: one self-contained HTML page from results, and the blocks that pages are made of.

`write(source, out)` makes the page of a directory of results, or of results in memory. For pages
of your own there are `page` (title, blocks), `section`, `chart`, `table`, `text` and others in
`shortlane.report.blocks`.
"""

from shortlane.report.blocks import (
    Block,
    bullets,
    chart,
    code,
    details,
    facts,
    group,
    key,
    notice,
    page,
    section,
    table,
    text,
)
from shortlane.report.build import html_of, write

__all__ = [
    "Block",
    "bullets",
    "chart",
    "code",
    "details",
    "facts",
    "group",
    "html_of",
    "key",
    "notice",
    "page",
    "section",
    "table",
    "text",
    "write",
]
