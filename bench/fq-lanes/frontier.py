#!/usr/bin/env python3
"""Draws the longest stall of a download against the link's use: docs/fq-lanes-frontier.svg.

    PYTHONPATH=python python3 bench/fq-lanes/frontier.py docs/disciplines/fq-lanes.md

A dot for every row of a table that ablation.py has written there; nothing is run. Rows with the
same two numbers share a dot.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ablation import BEGIN, END, HEAD, OURS
from matplotlib.figure import Figure
from shortlane import figures
from shortlane.figures import style

TITLE = "20 Mbit/s, RTT 80 ms"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "fq-lanes-frontier.svg"
LEFT_OUT = f"{OURS}:without="
#: Where the label of a dot is that is not to its right: points to the right and up, and its edge.
PLACES = {
    "cake": (0, -13, "center"),
    "fq-lanes": (9, -2, "left"),
    "fq-lanes:target=5ms": (0, -14, "center"),
    "patience": (-8, 1, "right"),
    "half-life": (0, 8, "center"),
    "ages": (-8, -3, "right"),
}


def rows(page: str, title: str) -> dict[str, tuple[float, float]]:
    """Use of the link and longest stall in seconds, by discipline."""
    tables = page.partition(BEGIN)[2].partition(END)[0]
    table = tables.partition(f"**{title}**\n")[2].partition("\n**")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == len(HEAD) and cells[0].startswith("`"):
            of_row = dict(zip(HEAD, cells, strict=True))
            stall = float(of_row["longest stall, ms"]) / 1e3
            found[cells[0].strip("`")] = (float(of_row["link used"]), stall)
    return found


def words(names: list[str]) -> str:
    """The label of a dot: disciplines by name, then what is left out."""
    whole = [name for name in names if not name.startswith(LEFT_OUT)]
    without = [name.removeprefix(LEFT_OUT) for name in names if name.startswith(LEFT_OUT)]
    left_out = [f"without {', '.join(without)}"] if without else []
    return "; ".join([*whole, *left_out])


@style.styled
def drawn(found: dict[str, tuple[float, float]]) -> Figure:
    """A dot with a label for each pair of numbers."""
    figure = Figure(figsize=(style.PAGE, 3.4), layout="constrained")
    axes = figure.subplots()
    dots: dict[tuple[float, float], list[str]] = {}
    for name, numbers in found.items():
        dots.setdefault(numbers, []).append(name)
    for (used, stall), names in dots.items():
        look = style.LOOKS[names[0].partition(":")[0]]
        is_whole = not names[0].startswith(LEFT_OUT)
        axes.plot(
            [used],
            [stall],
            marker=look.marker if is_whole else "o",
            color=look.color if is_whole else style.GREY,
            markersize=6 if is_whole else 4,
        )
        right, up, edge = PLACES.get(names[0].removeprefix(LEFT_OUT), (8, -3, "left"))
        axes.annotate(words(names), (used, stall), (right, up), textcoords="offset points", ha=edge)
    axes.set_yscale("log")
    axes.set_yticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"])
    axes.minorticks_off()
    axes.set(xlabel="part of the link used", ylabel="longest stall of a download, s", title=TITLE)
    axes.margins(x=0.08, y=0.12)
    return figure


def main() -> None:
    """Draws what a page has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, help="the page with the tables of ablation.py")
    parser.add_argument("--out", type=Path, default=PICTURE, help="default: %(default)s")
    options = parser.parse_args()
    found = rows(options.page.read_text(), TITLE)
    if not found:
        sys.exit(f"frontier: {options.page} has no table of {TITLE}")
    figures.save(drawn(found), options.out)


if __name__ == "__main__":
    main()
