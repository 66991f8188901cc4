#!/usr/bin/env python3
"""Writes the types of the classes that the Python package makes from the definitions in Rust.

    scripts/python-definitions.py

writes `sections.pyi`, a dataclass for each section of scenarios, and `disciplines.pyi`, a class for
each discipline, into `python/shortlane`: for editors and type checkers. `make python` calls it. It
takes the extension and no other library.
"""

import json
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "shortlane"

# The package without what its own `__init__` imports, such as polars.
package = ModuleType("shortlane")
package.__path__ = [str(PACKAGE)]
sys.modules["shortlane"] = package

from shortlane import _native, disciplines, sections  # noqa: E402

SECTIONS_HEAD = """\
# Types of shortlane.sections: made from the definitions of the keys.
# Do not change this file: scripts/python-definitions.py writes it.

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from shortlane._section import Scheduler, Section

CLASSES: dict[str, str | None]

def definitions() -> list[tuple[str, dict[str, Any]]]: ...
def field_name(key: dict[str, Any]) -> str: ...
def annotation(key: dict[str, Any]) -> str: ...
def help_of(key: dict[str, Any]) -> str: ...
def about(section: dict[str, Any]) -> str: ...
"""

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
    for name, text in {"sections.pyi": section_stubs(), "disciplines.pyi": stubs()}.items():
        (PACKAGE / name).write_text(text)


def section_stubs() -> str:
    return SECTIONS_HEAD + "".join(section_stub(*one) for one in sections.definitions())


def section_stub(name: str, section: dict[str, Any]) -> str:
    lines = [
        "",
        "@dataclass(kw_only=True, slots=True)",
        f"class {name}(Section):",
        *docstring(sections.about(section), heading=section["title"]),
    ]
    for key in section["keys"]:
        if key["name"] == "kind":
            lines.append("    KIND: ClassVar[str | None]")
            continue
        declared = f"    {sections.field_name(key)}: {sections.annotation(key)}"
        lines.append(declared if key["needed"] else f"{declared} = None")
        lines += docstring(sections.help_of(key))
    return "\n".join(lines) + "\n"


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


def stub(info: dict[str, Any]) -> str:
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
