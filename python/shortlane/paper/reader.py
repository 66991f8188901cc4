"""Reads tables of a TOML file so that whatever is wrong is named: file, place, found, accepted."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from shortlane.errors import InputError

__all__ = ["Reader", "one_of", "read", "read_text"]

T = TypeVar("T")


class Reader:
    """One table of a file; every key is taken once, and `done` refuses what is left."""

    def __init__(self, file: Path, place: str, content: Mapping[str, Any]) -> None:
        """The table `content` at `place` of `file`; at its top, `place` is empty."""
        self.file = file
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
            Reader(self.file, f"{self._name(key)}[{place}]", value)
            for place, value in enumerate(values)
        ]

    def named_tables(self, key: str) -> dict[str, "Reader"]:
        """A table of tables, empty if it is not there."""
        readers = {}
        for name, value in self.table(key).items():
            if not isinstance(value, dict):
                raise self.refused(f"{key}.{name}", value, "a table")
            readers[name] = Reader(self.file, f"{self._name(key)}.{name}", value)
        return readers

    def done(self) -> None:
        """Refuses a key that nobody asked for."""
        for key in self._left:
            accepted = ", ".join(self._taken)
            where = self.place or "the file"
            raise InputError(f"{self.file}: {where} has no key '{key}'; it takes {accepted}")

    def refused(self, key: str, found: object, accepted: str) -> InputError:
        """The error of a value that is not accepted."""
        return InputError(f"{self.file}: {self._name(key)} = {found!r}; it takes {accepted}")

    def missing(self, key: str, accepted: str) -> InputError:
        """The error of a key that is not there."""
        return InputError(f"{self.file}: {self._name(key)} is missing; it takes {accepted}")

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

    def _name(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def read(file: Path) -> Reader:
    """The whole of a TOML file.

    Raises:
        InputError: it is not there, cannot be read, or is no TOML.

    """
    try:
        return Reader(file, "", tomllib.loads(read_text(file)))
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
