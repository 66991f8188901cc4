"""The sections of a scenario as dataclasses, made from the definitions of the keys.

A field is a key of the TOML file with `_` for `-` (`from_` for `from`); None is a key that is not
given. The help of a class has what its keys mean and take.
"""

import dataclasses
import json
import textwrap
from typing import Any

from shortlane import _native
from shortlane._section import Section

#: The classes, by the headings of their sections. Those of [scenario] and [schedulers] are fields
#: of Scenario itself, in scenario.py.
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

#: The types of values, by the kinds of keys.
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


def definitions() -> list[tuple[str, dict[str, Any]]]:
    """Give the name of each class with the definition of its section, in the program's order."""
    found = ((CLASSES[section["title"]], section) for section in _SECTIONS)
    return [(name, section) for name, section in found if name is not None]


def field_name(key: dict[str, Any]) -> str:
    """Give the field of a key: `back_rate` for `back-rate`, `from_` for `from`."""
    name: str = key["name"].replace("-", "_")
    return "from_" if name == "from" else name


def annotation(key: dict[str, Any]) -> str:
    """Give the type of a key's value."""
    match key["kind"]:
        case "word":
            kind = f"Literal[{', '.join(json.dumps(word) for word in key['words'])}]"
        case "table":
            kind = str(CLASSES[_SECTIONS[key["section"]]["title"]])
        case "tables":
            kind = f"Sequence[{CLASSES[_SECTIONS[key['section']]['title']]}]"
        case other:
            kind = TYPES[other]
    return kind if key["needed"] else f"{kind} | None"


def help_of(key: dict[str, Any]) -> str:
    """Write what a key means and takes."""
    told = [_plain(key["meaning"])] if key["meaning"] else []
    if key["kind"] not in ("table", "tables"):
        told.append(f"Takes {key['takes']}.")
    if key["default"]:
        told.append(f"Default: {_plain(key['default'])}.")
    return " ".join(told)


def about(section: dict[str, Any]) -> str:
    """Write what a section is."""
    return _plain(section["about"] or f"Keys of {section['title']}.")


def _plain(markdown: str) -> str:
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


def _class_of(name: str, section: dict[str, Any]) -> type[Section]:
    keys = [key for key in section["keys"] if key["name"] != "kind"]
    kinds = [key["words"][0] for key in section["keys"] if key["name"] == "kind"]
    contents: dict[str, Any] = {"KIND": kinds[0]} if kinds else {}
    contents |= {"__doc__": _documentation(section, keys), "__module__": __name__}
    given = [(field_name(key), annotation(key)) for key in keys]
    return dataclasses.make_dataclass(
        name,
        [
            one if key["needed"] else (*one, dataclasses.field(default=None))
            for one, key in zip(given, keys, strict=True)
        ],
        bases=(Section,),
        namespace=contents,
        kw_only=True,
        slots=True,
    )


def _documentation(section: dict[str, Any], keys: list[dict[str, Any]]) -> str:
    lines = [f"{section['title']}.", "", *textwrap.wrap(about(section), 96), "", "Keys:"]
    for key in keys:
        lines.append(f"    {field_name(key)}: {annotation(key)}")
        indent = " " * 8
        lines += textwrap.wrap(help_of(key), 92, initial_indent=indent, subsequent_indent=indent)
    return "\n".join(lines)


_SECTIONS: list[dict[str, Any]] = json.loads(_native.sections())
__all__: list[str] = []
for _name, _section in definitions():
    globals()[_name] = _class_of(_name, _section)
    __all__ += [_name]  # noqa: PLE0604
