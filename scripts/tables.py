#!/usr/bin/env python3
"""Writes results of scenarios into a page, a table each, as `shortlane report --markdown` has them.

    tables.py --into PAGE SCENARIO=RESULTS[,RESULTS]...

Results of several engines stand side by side. The tables go between the page's two comments.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from shortlane.report.engines import markdown_of

BEGIN = "<!-- tables: scripts/tables.py -->\n"
END = "<!-- end of tables -->\n"


def main() -> int:
    """Replace the tables of a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO=RESULTS[,RESULTS]")
    parser.add_argument("--into", type=Path, required=True, metavar="PAGE")
    arguments = parser.parse_args()
    made = []
    for words in arguments.scenarios:
        file, _, folders = words.partition("=")
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
