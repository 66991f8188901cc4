"""Write one HTML page from a directory of results, or from several side by side."""

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
        help="Read what `--out` of sim, replay or lab wrote here, Parquet or CSV; several of one "
        "scenario in different engines are held side by side",
    )
    parser.add_argument(
        "--out",
        metavar="FILE.html",
        type=Path,
        help="Write the page here [default: report.html in that directory, of several in the "
        "current one]",
    )
    parser.add_argument("--open", action="store_true", help="Show it in a browser")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="Print its figures as a Markdown table, and write no page",
    )
    parser.add_argument(
        "--against",
        metavar="SCHEDULERS",
        help="Print Markdown tables of every other discipline against the better of these "
        "(kernel:cake,kernel:fq_codel), a row for each DIR, with 95 %% intervals; write no page",
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON document")


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
