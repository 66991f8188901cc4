"""Disciplines as objects: for teaching, tests and quick trials.

>>> from shortlane.disciplines import Efd
>>> efd = Efd(threshold=2, limit="10packets")
>>> efd.enqueue(flow=7, size=1500)
[]
>>> efd.dequeue(now=0.001)
Packet(flow=7, size=1500)

There is a class for each discipline of `shortlane.schedulers()`, made from its definition: its
parameters, with their units, ranges and defaults, are in its help. A number is packets where a
parameter takes packets or bytes, bytes where it takes bytes, seconds where it takes a time, bit/s
where it takes a rate; text is as on the command line (`"30kb"`, `"5ms"`).

The objects are the disciplines of simulator, lab and engine themselves. Time is an argument, in
seconds, and does not go back.
"""

import json
import math
import textwrap
from inspect import Parameter, Signature
from typing import Any

from shortlane import _native
from shortlane._native import Backlog, Dropped, Event, Packet, Wait
from shortlane.errors import InputError

__all__ = ["Backlog", "Discipline", "Dropped", "Event", "Packet", "Wait", "named"]

#: What a plain number means for a parameter, by its unit.
SUFFIXES = {"packets or bytes": "packets", "bytes": "b", "time": "s", "bit/s": "bit"}


class Discipline(_native.Queue):
    """What every discipline does; the classes with a name are made from it."""

    _info: dict[str, Any]

    def __new__(cls, *, seed: int = 1, **parameters: Any) -> "Discipline":
        """Give a new, empty discipline; `seed` feeds its random numbers, where it has any."""
        if not hasattr(cls, "_info"):
            raise TypeError("a discipline is made by its own class, such as Efd")
        return super().__new__(cls, cls._info["name"], cls._texts(parameters), seed)

    def change(self, **parameters: Any) -> None:
        """Take over parameters while packets are queued; no packet is lost by it.

        Above a lowered limit arrivals are refused until the backlog has drained below. Raises
        `InputError` for a parameter that cannot change while the discipline runs; nothing has
        changed then.
        """
        self.set_parameters(self._texts(parameters))

    def __str__(self) -> str:
        return self.spec

    def __repr__(self) -> str:
        backlog = self.backlog
        return f"<{self.spec}: {backlog.packets} packets, {backlog.bytes} bytes>"

    @classmethod
    def _texts(cls, parameters: dict[str, Any]) -> list[tuple[str, str]]:
        units = {parameter["name"]: parameter["unit"] for parameter in cls._info["params"]}
        names = {name.replace("_", "-"): value for name, value in parameters.items()}
        return [(name, _text(value, units.get(name, ""))) for name, value in names.items()]


def _text(value: Any, unit: str) -> str:
    """Write a value as on the command line."""
    match value:
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case float() if math.isinf(value) and value > 0:
            return "inf"
        case float() if unit == "time" and 0 <= value < 1e10:
            return f"{round(value * 1e9)}ns"
        case int() | float():
            return f"{value}{SUFFIXES.get(unit, '')}"
    raise InputError(f"{value!r} is not accepted: a parameter takes text or a number")


def class_name(name: str) -> str:
    """`FqCodel` for `fq-codel`, `Wf2qPlus` for `wf2q+`."""
    return "".join(part.capitalize() for part in name.replace("+", "-plus").split("-"))


def _class_of(info: dict[str, Any]) -> type[Discipline]:
    parameters = [
        Parameter(
            parameter["name"].replace("-", "_"),
            Parameter.KEYWORD_ONLY,
            default=parameter["default"],
        )
        for parameter in info["params"]
    ]
    parameters.append(Parameter("seed", Parameter.KEYWORD_ONLY, default=1))
    contents = {
        "__doc__": documentation(info),
        "__module__": __name__,
        "__signature__": Signature(parameters),
        "_info": info,
    }
    return type(class_name(info["name"]), (Discipline,), contents)


def documentation(info: dict[str, Any]) -> str:
    """Write the help of a discipline from its definition."""
    lines = [_sentence(info["summary"]), "", f"Source: {info['source']}."]
    if info["needs"]:
        lines += [f"Packets need {', '.join(info['needs'])}."]
    lines += ["", "Parameters:"]
    for parameter in info["params"]:
        name = parameter["name"].replace("-", "_")
        live = "" if parameter["live"] else "; cannot change while it runs"
        lines += [f"    {name}: {parameter['range']}; {parameter['default']} by default{live}."]
        effect = _sentence(parameter["effect"])
        lines += textwrap.wrap(effect, 92, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def named(name: str) -> type[Discipline]:
    """Give the class of a discipline by its name on the command line, such as `fq-codel`."""
    for discipline in _CLASSES:
        if discipline._info["name"] == name:
            return discipline
    known = ", ".join(discipline._info["name"] for discipline in _CLASSES)
    raise InputError(f"no discipline is named '{name}'; there are {known}")


_CLASSES = [_class_of(info) for info in json.loads(_native.schedulers())]
for _discipline in _CLASSES:
    globals()[_discipline.__name__] = _discipline
    __all__ += [_discipline.__name__]  # noqa: PLE0604
