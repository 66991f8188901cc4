#!/usr/bin/env python3
"""Writes what the Python package has of the definitions in Rust, as source with types and help.

    scripts/python-definitions.py            writes both files
    scripts/python-definitions.py --check    says which of them is not up to date

`python/shortlane/sections.py` has a dataclass for each section of scenarios,
`python/shortlane/disciplines.pyi` the types of the classes of disciplines. The package must be
importable: PYTHONPATH=python, with the extension built (`make python`).
"""

import argparse
import json
import sys
import textwrap
from pathlib import Path

from shortlane import _native, disciplines

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "shortlane"

# The classes of sections, by their headings. Those of [scenario] and [schedulers] are fields of
# Scenario itself, in scenario.py.
CLASSES = {
    "[scenario]": None,
    "[schedulers]": None,
    '[topology] of kind "dumbbell"': "Dumbbell",
    '[topology] of kind "chain"': "Chain",
    '[topology] of kind "star"': "Star",
    "[[topology.arms]] of a star": "Arm",
    '[topology] of kind "free"': "Free",
    "[[topology.links]] of a free topology": "FreeLink",
    "[[topology.routes]] of a free topology": "Route",
    "A link": "Link",
    "A bottleneck": "Bottleneck",
    "[tcp]": "Tcp",
    '[[traffic]] of kind "transfers"': "Transfers",
    '[[traffic]] of kind "persistent"': "Persistent",
    '[[traffic]] of kind "periodic"': "Periodic",
    '[[traffic]] of kind "web"': "Web",
    '[[traffic]] of kind "requests"': "Requests",
    '[[traffic]] of kind "cbr"': "Cbr",
    '[[traffic]] of kind "on-off"': "OnOff",
    '[[traffic]] of kind "trace"': "Trace",
    '[[traffic]] of kind "open-loop"': "OpenLoop",
    "[record]": "Record",
}

SECTIONS_HEAD = '''\
"""The sections of a scenario as dataclasses: made from the definitions of the keys.

Do not change this file: scripts/python-definitions.py writes it.

A field is a key of the TOML file with `_` for `-` (`from_` for `from`); None is a key that is not
given.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from shortlane._section import Scheduler, Section

'''

TYPES = {
    "text": "str",
    "flag": "bool",
    "count": "int",
    "number": "float",
    "rate": "str",
    "time": "str",
    "bytes": "str",
    "amount": "str",
    "law": "str",
    "scheduler": "Scheduler",
    "schedulers": "Sequence[Scheduler]",
    "seeds": "int | str | Sequence[int]",
    "places": "str | Sequence[str]",
    "path": "Sequence[str]",
    "file": "str | os.PathLike[str]",
}

STUBS_HEAD = """\
# Types of shortlane.disciplines: made from the definitions of the disciplines.
# Do not change this file: scripts/python-definitions.py writes it.

from typing import Any, Literal

from shortlane import _native
from shortlane._native import Backlog as Backlog
from shortlane._native import Dropped as Dropped
from shortlane._native import Event as Event
from shortlane._native import Packet as Packet
from shortlane._native import Wait as Wait

class Discipline(_native.Queue):
    def change(self, **parameters: str | float) -> None: ...

def named(name: str) -> type[Discipline]: ...
def class_name(name: str) -> str: ...
def documentation(info: dict[str, Any]) -> str: ...
"""

STUB_TYPES = {
    "packets or bytes": "float | str",
    "bytes": "int | str",
    "time": "float | str",
    "fraction": "float | str",
    "share of limit or amount": "float | str",
    "number": "int | str",
    "bit/s": "float | str",
    "yes/no": "bool | str",
    "factor": "float | str",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = []
    for name, text in {"sections.py": sections(), "disciplines.pyi": stubs()}.items():
        path = PACKAGE / name
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run scripts/python-definitions.py")


def sections() -> str:
    every = json.loads(_native.sections())
    names = [CLASSES[section["title"]] for section in every]
    # A class is written before those that name it.
    ordered = sorted(
        (name, section) for name, section in zip(names, every, strict=True) if name is not None
    )
    written: list[str] = []
    public = "".join(f"    {quoted(name)},\n" for name, _ in ordered)
    parts = [f"__all__ = [\n{public}]\n"]
    while ordered:
        for name, section in ordered:
            sections = (key["section"] for key in section["keys"])
            if {names[place] for place in sections if place is not None} <= set(written):
                parts.append(section_class(name, section, names))
                written.append(name)
                ordered.remove((name, section))
                break
    return SECTIONS_HEAD + "\n\n".join(parts)


def section_class(name: str, section: dict, names: list[str | None]) -> str:
    about = section["about"] or f"Keys of {section['title']}."
    lines = [
        "@dataclass(kw_only=True, slots=True)",
        f"class {name}(Section):",
        *docstring(plain(about), heading=section["title"]),
        "",
    ]
    for key in section["keys"]:
        if key["name"] == "kind":
            lines += [f'    KIND: ClassVar[str | None] = "{key["words"][0]}"', ""]
    for key in section["keys"]:
        if key["name"] != "kind":
            lines += field(key, names)
    return "\n".join(lines) + "\n"


def field(key: dict, names: list[str | None]) -> list[str]:
    name = key["name"].replace("-", "_")
    name = "from_" if name == "from" else name
    if key["kind"] == "word":
        kind = literal(key["words"])
    elif key["kind"] == "table":
        kind = names[key["section"]]
    elif key["kind"] == "tables":
        kind = f"Sequence[{names[key['section']]}]"
    else:
        kind = TYPES[key["kind"]]
    declared = f"    {name}: {kind}" if key["needed"] else f"    {name}: {kind} | None = None"
    meaning = [plain(key["meaning"])] if key["meaning"] else []
    if key["kind"] not in ("table", "tables"):
        meaning.append(f"Takes {key['takes']}.")
    if key["default"]:
        meaning.append(f"Default: {plain(key['default'])}.")
    return [declared, *docstring(" ".join(meaning))]


def plain(markdown: str) -> str:
    """Text without the links of the documentation."""
    text = ""
    while "](" in markdown:
        before, rest = markdown.split("](", 1)
        start = before.rindex("[")
        # `[[tcp]](#tcp)`: the brackets of the text itself.
        start = before.rindex("[`[") if before.endswith("]`") else start
        text += before[:start] + before[start + 1 :]
        markdown = rest.split(")", 1)[1]
    return text + markdown


def docstring(text: str, heading: str = "") -> list[str]:
    """Lines of a docstring within a class."""
    lines = textwrap.wrap(text, 90, break_long_words=False)
    if heading:
        lines = [f"{heading}.", "", *lines]
    if len(lines) == 1 and len(lines[0]) <= 84 and not lines[0].endswith('"'):
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *[f"    {line}".rstrip() for line in lines[1:]], '    """']


def literal(words: list[str]) -> str:
    return f"Literal[{', '.join(map(quoted, words))}]"


def quoted(word: str) -> str:
    return f'"{word}"'


def stubs() -> str:
    return STUBS_HEAD + "".join(stub(info) for info in json.loads(_native.schedulers()))


def stub(info: dict) -> str:
    lines = ["", f"class {disciplines.class_name(info['name'])}(Discipline):", "    def __new__("]
    lines += ["        cls,", "        *,"]
    for parameter in info["params"]:
        name = parameter["name"].replace("-", "_")
        if parameter["unit"] == "word":
            kind = literal(parameter["range"].split(", "))
        else:
            # A parameter with a form of its own has what it describes in place of a unit.
            kind = STUB_TYPES.get(parameter["unit"], "str")
        default = quoted(parameter["default"])
        line = f"        {name}: {kind} = {default},"
        # As the formatter breaks it.
        within = f"            {kind.removeprefix('Literal[').removesuffix(']')}"
        broken = [f"        {name}: Literal[", within, f"        ] = {default},"]
        lines += [line] if len(line) <= 100 else broken
    class_name = disciplines.class_name(info["name"])
    lines += ["        seed: int = 1,", f"    ) -> {class_name}: ..."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
