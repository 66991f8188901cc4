"""Reads tables of a TOML file so that whatever is wrong is named: file, place, found, accepted."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from shortlane.errors import InputError

__all__ = ["Reader", "line_of", "line_with", "one_of", "read", "read_text"]

T = TypeVar("T")


class Reader:
    """One table of a file; every key is taken once, and `done` refuses what is left."""

    def __init__(
        self, file: Path, place: str, content: Mapping[str, Any], source: str = ""
    ) -> None:
        """The table `content` at `place` of `file`; at its top, `place` is empty.

        `source` is the whole file, for the lines of what is refused.
        """
        self.file = file
        self.source = source
        self.place = place
        self._left = dict(content)
        self._taken: list[str] = []

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty, unless the default is."""
        return self._value(key, str, "a text", default)

    def flag(self, key: str) -> bool:
        """True or false; false if it is not there."""
        return self._value(key, bool, "true or false", False)

    def number(self, key: str) -> float | None:
        """A number, if it is there."""
        self._taken.append(key)
        value = self._left.pop(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refused(key, value, "a number")
        return float(value)

    def numbers(self, key: str) -> list[float]:
        """A list of numbers, or a number by itself; empty if it is not there."""
        if not isinstance(self._left.get(key), list):
            one = self.number(key)
            return [] if one is None else [one]
        values = self._value(key, list, "a list of numbers", [])
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.refused(key, values, "a number, or a list of numbers")
        return [float(value) for value in values]

    def table(self, key: str) -> dict[str, Any]:
        """A table, empty if it is not there."""
        return self._value(key, dict, "a table", {})

    def texts(self, key: str) -> list[str]:
        """A list of texts, empty if it is not there."""
        values = self._value(key, list, "a list of texts", [])
        if not all(isinstance(value, str) for value in values):
            raise self.refused(key, values, "a list of texts")
        return values

    def tables(self, key: str) -> list["Reader"]:
        """A list of tables, empty if it is not there."""
        values = self._value(key, list, f"tables [[{self._name(key)}]]", [])
        for value in values:
            if not isinstance(value, dict):
                raise self.refused(key, value, f"tables [[{self._name(key)}]]")
        return [
            Reader(self.file, f"{self._name(key)}[{place}]", value, self.source)
            for place, value in enumerate(values)
        ]

    def with_each(self, name: str, values: list[Any]) -> "Reader":
        """A copy of a table that has not been read, in which `each.name` is `values`."""
        each = self._left.get("each", {})
        if not isinstance(each, dict) or name in each:
            raise self.refused("each", each, f"a table without {name}")
        left = self._left | {"each": {name: values} | each}
        return Reader(self.file, self.place, left, self.source)

    def named_tables(self, key: str) -> dict[str, "Reader"]:
        """A table of tables, empty if it is not there."""
        readers = {}
        for name, value in self.table(key).items():
            if not isinstance(value, dict):
                raise self.refused(f"{key}.{name}", value, "a table")
            readers[name] = Reader(self.file, f"{self._name(key)}.{name}", value, self.source)
        return readers

    def has(self, key: str) -> bool:
        """Whether a key is there that has not been taken."""
        return key in self._left

    def inner(self, key: str) -> "Reader | None":
        """A table with keys of its own, None if it is not there."""
        found = self.table(key)
        return Reader(self.file, self._name(key), found, self.source) if found else None

    def done(self) -> None:
        """Refuses a key that nobody asked for."""
        for key in self._left:
            accepted = ", ".join(self._taken)
            where = self.place or "the file"
            raise InputError(f"{self._at(key)}: {where} has no key '{key}'; it takes {accepted}")

    def refused(self, key: str, found: object, accepted: str) -> InputError:
        """The error of a value that is not accepted."""
        return InputError(f"{self._at(key)}: {self._name(key)} = {found!r}; it takes {accepted}")

    def missing(self, key: str, accepted: str) -> InputError:
        """The error of a key that is not there."""
        return InputError(f"{self._at(key)}: {self._name(key)} is missing; it takes {accepted}")

    def _value(self, key: str, kind: type[T], accepted: str, default: T | None) -> T:
        self._taken.append(key)
        if key not in self._left:
            if default is None:
                raise self.missing(key, accepted)
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (value == "" and default != ""):
            raise self.refused(key, value, accepted)
        return value

    def _at(self, key: str) -> str:
        """The file and the line of a key."""
        return f"{self.file}:{line_of(self.source, self.place, key)}"

    def _name(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


#: The head of a table, or of a table of a list.
HEAD = re.compile(r"(\[\[?)([A-Za-z0-9_.-]+)\]\]?\s*(?:#.*)?")


def line_of(source: str, place: str, key: str) -> int:
    """The line of `key` in the table at `place`, such as `row[3].check[1]`.

    If the key is not there, the line of the table's head; if that is not there either (a table
    that is written within a line), that of what it stands in; else 1.
    """
    first = key.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]
    if place.rpartition(".")[2] == first:  # A table that was asked for by its own name.
        place = place.rpartition(".")[0]
    counts: dict[str, int] = {}
    heads = {"": 1}
    here = ""
    for number, line in enumerate(source.splitlines(), 1):
        if head := HEAD.fullmatch(line.strip()):
            here = _resolved(head[2], counts, is_item=head[1] == "[[")
            heads.setdefault(here, number)
            continue
        named = re.match(r"\s*([A-Za-z0-9_-]+)\s*[=.]", line)
        if named and here == place and named[1] == first:
            return number
    below = f"{place}.{first}" if place else first
    for known in (below, f"{below}[0]"):
        if known in heads:
            return heads[known]
    while place not in heads:
        place = place.rpartition(".")[0]
    return heads[place]


def line_with(source: str, text: str) -> int:
    """The first line that has `text`, else 1."""
    lines = enumerate(source.splitlines(), 1)
    return next((number for number, line in lines if text in line), 1)


def _resolved(path: str, counts: dict[str, int], *, is_item: bool) -> str:
    """The place of a table's head: `row.check` is the next check of the last row."""
    *outer, last = path.split(".")
    place = ""
    for name in outer:
        place = f"{place}.{name}" if place else name
        if place in counts:
            place = f"{place}[{counts[place] - 1}]"
    place = f"{place}.{last}" if place else last
    if is_item:
        counts[place] = counts.get(place, 0) + 1
        return f"{place}[{counts[place] - 1}]"
    return place


def read(file: Path) -> Reader:
    """The whole of a TOML file.

    Raises:
        InputError: it is not there, cannot be read, or is no TOML.

    """
    try:
        source = read_text(file)
        return Reader(file, "", tomllib.loads(source), source)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: is not TOML: {error}") from error


def read_text(file: Path) -> str:
    """The whole of a text file.

    Raises:
        InputError: it is not there, cannot be read, or is no text.

    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8: {error}") from error


def one_of(reader: Reader, key: str, value: str, known: Iterable[str]) -> str:
    """`value` if it is known.

    Raises:
        InputError: it is not; names those that are.

    """
    accepted = sorted(known)
    if value not in accepted:
        raise reader.refused(key, value, ", ".join(accepted))
    return value
