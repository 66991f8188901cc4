#!/usr/bin/env python3
"""Draws the picture of the README, light and dark, from a run of the lab.

    shortlane lab --json > lab.json
    PYTHONPATH=python scripts/picture.py lab.json

writes `docs/picture-light.svg` and `docs/picture-dark.svg`; `make picture` does both steps. What
shares one link, under each discipline: transfers of two sizes, a voice call, long downloads.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from shortlane.figures import save
from shortlane.figures.style import RC, looks

DOCS = Path(__file__).resolve().parent.parent / "docs"
NAMES = {
    "fifo": "FIFO",
    "fq-codel": "FQ-CoDel",
    "efd": "EFD",
    "las": "LAS",
    "cake": "CAKE",
    "fq-lanes": "fq-lanes",
}


@dataclass(frozen=True)
class Theme:
    """Colours of text and of a bar without a colour of its own; the page is what lies behind."""

    name: str
    text: str
    plain: str


THEMES = (Theme("light", "#1f2328", "#8c959f"), Theme("dark", "#e6edf3", "#6e7681"))


@dataclass(frozen=True)
class Bar:
    """A value of a discipline: its number as it is written, the interval where there is one."""

    value: float
    written: str
    interval: tuple[float, float] | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="what `shortlane lab --json` printed")
    parser.add_argument(
        "--only", default="fifo,fq-codel,fq-lanes", help="these disciplines, in this order"
    )
    parser.add_argument("--out", type=Path, default=DOCS, help="the folder of both pictures")
    arguments = parser.parse_args()
    run = json.loads(arguments.run.read_text())
    found = {one["scheduler"]: one for one in run["summary"]["schedulers"]}
    names = arguments.only.split(",")
    missing = [name for name in names if name not in found]
    if missing:
        sys.exit(f"{arguments.run}: has {', '.join(found)}; --only asks for {', '.join(missing)}")
    panels = panels_of([found[name] for name in names])
    for theme in THEMES:
        with mpl.rc_context(RC | {"font.size": 9}):
            draw(panels, names, told(run), theme, arguments.out / f"picture-{theme.name}.svg")


def panels_of(found: list[dict[str, Any]]) -> dict[str, list[Bar]]:
    """By what is shown: a bar for each discipline."""
    return {
        "up to 20 packets\ntime to complete, ms": [transfer(one, "<=20") for one in found],
        "20 to 100 packets\ntime to complete, ms": [transfer(one, "20-100") for one in found],
        "voice call\n95 % arrive within, ms": [voice(one) for one in found],
        "two downloads\ntogether, Mbit/s": [downloads(one) for one in found],
    }


def transfer(one: dict[str, Any], packets: str) -> Bar:
    (of_size,) = (each for each in one["classes"] if each["packets"] == packets)
    mean = of_size["completion_ms"]["mean"]
    return Bar(mean["value"], f"{mean['value']:.0f}", mean["interval"])


def voice(one: dict[str, Any]) -> Bar:
    p95 = one["voice"]["delay_ms"]["p95"]["value"]
    lost = 100 * one["voice"]["lost"] / one["voice"]["sent"]
    return Bar(p95, f"{p95:.0f}" + (f" ({lost:.1f} % lost)" if lost >= 0.05 else ""))


def downloads(one: dict[str, Any]) -> Bar:
    rate = one["downloads_mbit"]
    return Bar(rate["value"], f"{rate['value']:.1f}", rate["interval"])


def told(run: dict[str, Any]) -> str:
    """What was run, in a line."""
    scenario, tcp = run["scenario"], "/".join(run["scenario"]["tcp"]).upper()
    load = scenario["transfers"]["load"]
    rate, rtt = scenario["rate_bps"] / 1e6, scenario["rtt_ns"] / 1e6
    return (
        f"One link of {rate:g} Mbit/s, {rtt:g} ms; {tcp} of a Linux kernel; "
        f"{scenario['downloads']} downloads beside a load of {load:.0%} in transfers. "
        f"{run['summary']['rounds']} rounds of `shortlane lab`, 95 % intervals."
    )


def draw(
    panels: dict[str, list[Bar]], names: list[str], note: str, theme: Theme, path: Path
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 0.95 + 0.3 * len(names)), layout="constrained")
    figure.patch.set_alpha(0)
    grid = figure.subplots(1, len(panels), sharey=True)
    own = looks(names)
    colors = [theme.plain if name in ("fifo", "fq-codel") else own[name].color for name in names]
    for axes, (title, bars) in zip(grid, panels.items(), strict=True):
        places = range(len(bars))
        axes.barh(places, [bar.value for bar in bars], color=colors, height=0.62)
        for place, bar in zip(places, bars, strict=True):
            end = bar.value
            if bar.interval:
                axes.hlines(place, *bar.interval, colors=theme.text, linewidth=1)
                end = max(end, bar.interval[1])
            axes.annotate(
                bar.written,
                (end, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                color=theme.text,
            )
        axes.set_title(title, loc="left", color=theme.text, fontsize=8.5)
        axes.set_yticks(places, [NAMES.get(name, name) for name in names])
        axes.set_xlim(0, 1.3 * max(max(bar.value, *(bar.interval or (0,))) for bar in bars))
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        axes.spines["left"].set_color(theme.text)
        axes.tick_params(length=0, colors=theme.text, labelsize=9)
        axes.patch.set_alpha(0)
    grid[0].invert_yaxis()
    figure.supxlabel(note, fontsize=7, color=theme.text, x=0.01, ha="left")
    save(figure, path)


if __name__ == "__main__":
    main()
