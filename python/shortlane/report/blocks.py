"""Building blocks of self-contained HTML pages: sections, tables, charts, text.

Everything that is text is escaped here, and nowhere else. A page loads nothing: style, scripts and
data are in it, and its content security policy forbids the rest.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import polars as pl

from shortlane.figures.style import Look, looks
from shortlane.figures.svg import inline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Block",
    "bullets",
    "chart",
    "code",
    "details",
    "facts",
    "group",
    "key",
    "notice",
    "page",
    "section",
    "table",
    "text",
]


@dataclass(frozen=True)
class Block:
    """A piece of a page: finished HTML, and whether it has charts."""

    html: str
    has_charts: bool = False


def text(words: str, *, small: bool = False) -> Block:
    """A paragraph."""
    kind = ' class="note"' if small else ""
    return Block(f"<p{kind}>{html.escape(words)}</p>")


def notice(words: str) -> Block:
    """A paragraph that must not be overlooked."""
    return Block(f'<p class="notice" role="note">{html.escape(words)}</p>')


def bullets(items: Iterable[str]) -> Block:
    """A list of sentences. Words before a colon at the begin of one stand out."""
    rows = []
    for item in items:
        head, colon, rest = item.partition(": ")
        strong = f"<b>{html.escape(head)}:</b> {html.escape(rest)}"
        rows.append(f"<li>{strong if colon else html.escape(item)}</li>")
    return Block(f"<ul>{''.join(rows)}</ul>")


def code(lines: str) -> Block:
    """Text as it stands in a file or on a terminal."""
    return Block(f'<pre tabindex="0"><code>{html.escape(lines)}</code></pre>')


def details(summary: str, *blocks: Block) -> Block:
    """Blocks that are shown when asked for."""
    inner = group(*blocks)
    words = html.escape(summary)
    return Block(f"<details><summary>{words}</summary>{inner.html}</details>", inner.has_charts)


def facts(pairs: Mapping[str, Any]) -> Block:
    """Names and values; those without a value are left out."""
    rows = [
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>"
        for name, value in pairs.items()
        if value not in (None, "", [])
    ]
    return Block(f"<dl>{''.join(rows)}</dl>")


def group(*blocks: Block) -> Block:
    """Blocks one after another."""
    return Block("".join(b.html for b in blocks), any(b.has_charts for b in blocks))


def section(heading: str, *blocks: Block) -> Block:
    """Blocks under a heading."""
    inner = group(*blocks)
    return Block(
        f"<section><h2>{html.escape(heading)}</h2>{inner.html}</section>", inner.has_charts
    )


def table(frame: pl.DataFrame, *, caption: str = "") -> Block:
    """A frame as a table: text as it is, numbers to three digits, nothing as a dash."""
    right = [dtype.is_numeric() for dtype in frame.schema.values()]
    marks = ["" if not numeric else ' class="number"' for numeric in right]
    head = "".join(
        f'<th scope="col"{mark}>{html.escape(name)}</th>'
        for mark, name in zip(marks, frame.columns, strict=True)
    )
    rows = []
    for row in frame.rows():
        cells = (f"<td{m}>{_cell(value)}</td>" for m, value in zip(marks, row, strict=True))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return Block(f'<div class="wide" tabindex="0"><table>{title}{body}</table></div>')


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return html.escape(number(value))
    return html.escape(str(value))


def number(value: float, digits: int = 3) -> str:
    """A number to `digits` significant digits, without an exponent."""
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    if abs(value) < 0.001:
        return "<0.001" if value > 0 else ">-0.001"
    shown = f"{value:.{digits}g}"
    return f"{value:.6f}".rstrip("0") if "e" in shown else shown


def key(names: Sequence[str]) -> Block:
    """What stands for which scheduler in every chart; a click sets one apart from the others."""
    items = []
    for name, look in looks(names).items():
        attribute = html.escape(json.dumps(name), quote=True)
        items.append(
            f'<button type="button" aria-pressed="false" data-name="{attribute}">'
            f"{_sample(look)}{html.escape(name)}</button>"
        )
    label = "Schedulers; choose one to set it apart"
    return Block(f'<div class="key" role="group" aria-label="{label}">{"".join(items)}</div>')


def _sample(look: Look) -> str:
    color = ink(look)
    dash = " ".join(f"{1.6 * part:g}" for part in look.dash) or "none"
    path = f'<g transform="translate(16 7)">{_mark(look.marker, color)}</g>'
    return (
        '<svg width="32" height="14" aria-hidden="true">'
        f'<line x1="1" x2="31" y1="7" y2="7" stroke="{color}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{path}</svg>'
    )


#: matplotlib's markers as SVG paths in a square from -1 to 1.
SHAPES = {
    "o": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "s": "M-.85,-.85H.85V.85H-.85Z",
    "^": "M0,-1L1,.85H-1Z",
    "v": "M0,1L1,-.85H-1Z",
    "<": "M-1,0L.85,-1V1Z",
    ">": "M1,0L-.85,-1V1Z",
    "D": "M0,-1.15L1.15,0L0,1.15L-1.15,0Z",
    "d": "M0,-1.25L.75,0L0,1.25L-.75,0Z",
    "P": "M-.4,-1H.4V-.4H1V.4H.4V1H-.4V.4H-1V-.4H-.4Z",
    "X": "M0,.45L.55,1L1,.55L.45,0L1,-.55L.55,-1L0,-.45L-.55,-1L-1,-.55L-.45,0L-1,.55L-.55,1Z",
    "h": "M0,-1.05L.95,-.5V.5L0,1.05L-.95,.5V-.5Z",
    "p": "M0,-1.05L1,-.3L.62,.9H-.62L-1,-.3Z",
}


def _mark(marker: str, color: str) -> str:
    return f'<path d="{SHAPES[marker]}" transform="scale(4)" fill="{color}"/>'


def ink(look: Look) -> str:
    """A look's colour on a page; black is the colour of text, so that it shows on a dark page."""
    return "currentColor" if look.color == "#000000" else look.color


def chart(figure: Figure, *, title: str, about: str = "") -> Block:
    """A matplotlib figure, its title, and how to read it."""
    words = f"<p>{html.escape(about)}</p>" if about else ""
    return Block(
        f"<figure><figcaption><h3>{html.escape(title)}</h3>{words}</figcaption>"
        f'<div class="chart" role="img" aria-label="{html.escape(title, quote=True)}">'
        f"{inline(figure)}</div></figure>",
        has_charts=True,
    )


def page(title: str, blocks: Sequence[Block], *, lead: str = "") -> str:
    """A whole page. If it has charts, it has the script of their key."""
    inner = group(*blocks)
    scripts = ""
    if inner.has_charts:
        scripts = f"<script>{_asset('page.js')}</script>"
    under = f'<p class="lead">{html.escape(lead)}</p>' if lead else ""
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{html.escape(title)}</title><style>{_asset('page.css')}</style></head>"
        f"<body><main><header><h1>{html.escape(title)}</h1>{under}</header>"
        f"{inner.html}</main>{scripts}</body></html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("shortlane.report").joinpath(name).read_text("utf-8")
