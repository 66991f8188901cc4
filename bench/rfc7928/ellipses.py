#!/usr/bin/env python3
"""Draws rate against delay of every scenario of scenarios/rfc7928, ten seeds each: docs/suite.svg.

picture.py --shortlane target/release/shortlane --out docs/suite.svg

Needs the Python package (`make python`, PYTHONPATH=python).
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import shortlane
from matplotlib.figure import Figure
from shortlane import figures
from shortlane.figures import style
from suite import ORDER, SCENARIOS

COLUMNS = 3
#: Of a panel, in inches.
HEIGHT = 1.65
SEEDS = "1..10"


def main() -> None:
    """Simulates every scenario and draws a panel of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shortlane", type=Path, required=True, help="the program")
    parser.add_argument("--out", type=Path, required=True, help="the picture")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        figure = drawn(arguments.shortlane, Path(folder))
    figures.save(figure, arguments.out)


@style.styled
def drawn(program: Path, folder: Path) -> Figure:
    """A panel for each scenario, and one legend."""
    rows = -(-len(ORDER) // COLUMNS)
    figure = Figure(figsize=(style.PAGE, HEIGHT * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, COLUMNS).flatten()
    for name, axes in zip(ORDER, panels, strict=False):
        print(name, flush=True)
        out = folder / name
        command: list[str | Path] = [program, "sim", SCENARIOS / f"{name}.toml"]
        command += ["--seeds", SEEDS, "--out", out]
        subprocess.run(command, check=True, capture_output=True)
        figures.rate_against_delay(shortlane.read(out), stream="call", axes=axes)
        axes.get_legend().remove()
        axes.set_title(name, loc="left")
        axes.set(xlabel="", ylabel="")
    for axes in panels[len(ORDER) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    figure.supxlabel("delay of the call, p95 (ms)", fontsize=8)
    figure.supylabel("long flows (Mbit/s)", fontsize=8)
    return figure


if __name__ == "__main__":
    main()
