"""One self-contained HTML page from a directory of results, or of several side by side."""

from __future__ import annotations

import argparse
import json
import webbrowser
from pathlib import Path

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`shortlane report DIR...`."""
    parser.add_argument(
        "directories",
        metavar="DIR",
        type=Path,
        nargs="+",
        help="what `--out` of sim, replay or lab wrote, Parquet or CSV; several of one scenario in "
        "different engines are held side by side",
    )
    parser.add_argument(
        "--out",
        metavar="FILE.html",
        type=Path,
        help="the page; by default report.html in that directory, of several in the current one",
    )
    parser.add_argument("--open", action="store_true", help="show it in a browser")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="no page, but its figures as a Markdown table on standard output",
    )
    parser.add_argument(
        "--against",
        metavar="SCHEDULERS",
        help="no page, but Markdown tables of every other discipline against the better of these "
        "(kernel:cake,kernel:fq_codel), a row for each DIR, with 95 %% intervals",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def run(arguments: argparse.Namespace) -> None:
    """Writes the page and says where it is."""
    from shortlane.report.build import missing_in, write
    from shortlane.report.engines import markdown_of

    directories: list[Path] = arguments.directories
    if arguments.against:
        from shortlane.report.against import map_of

        print(map_of(directories, arguments.against.split(",")), end="")
        return
    if arguments.markdown:
        print(markdown_of(directories), end="")
        return
    alone = len(directories) == 1
    out = arguments.out or (directories[0] if alone else Path()) / "report.html"
    missing = [what for directory in directories for what in missing_in(directory)]
    write(directories[0] if alone else directories, out)
    size = out.stat().st_size
    if arguments.json:
        print(json.dumps({"page": str(out), "bytes": size, "missing": missing}))
    else:
        print(f"{out} ({size / 1e6:.1f} MB)")
        for what in missing:
            print(f"incomplete; missing: {what}")
    if arguments.open:
        webbrowser.open(out.resolve().as_uri())
