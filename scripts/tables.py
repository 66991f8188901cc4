#!/usr/bin/env python3
"""Writes results of scenarios into a page, a table each, as `shortlane report --markdown` has them.

    tables.py --into PAGE [--against PEERS] SCENARIO=RESULTS[,RESULTS]...

Results of several engines stand side by side. With `--against`, maps of all scenarios come first,
as `shortlane report --against` has them. The tables go between the page's two comments.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from shortlane.report.against import map_of
from shortlane.report.engines import markdown_of

BEGIN = "<!-- tables: scripts/tables.py -->\n"
END = "<!-- end of tables -->\n"


def main() -> int:
    """Replace the tables of a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO=RESULTS[,RESULTS]")
    parser.add_argument("--into", type=Path, required=True, metavar="PAGE")
    parser.add_argument("--against", metavar="PEERS", help="begin with a map against these")
    arguments = parser.parse_args()
    scenarios = [words.partition("=")[::2] for words in arguments.scenarios]
    made = []
    if arguments.against:
        folders = [Path(folders.partition(",")[0]) for _, folders in scenarios]
        made.append("\n" + map_of(folders, arguments.against.split(",")))
    for file, folders in scenarios:
        title = tomllib.loads(Path(file).read_text())["scenario"]["title"]
        table = markdown_of([Path(folder) for folder in folders.split(",")])
        made.append(f"### {title}: `{Path(file).stem}`\n\n{table}")
    head, begin, rest = arguments.into.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        print(f"{arguments.into}: no lines '{BEGIN.strip()}' and '{END.strip()}'", file=sys.stderr)
        return 1
    arguments.into.write_text("\n".join([head + BEGIN, *made, END]) + tail)
    return 0


if __name__ == "__main__":
    sys.exit(main())
