"""Scenarios of Python values as TOML text, so that one reader checks all scenarios."""

import json
import os
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from shortlane import _native
from shortlane._section import Section
from shortlane.errors import ScenarioError


def scenario_text(scenario: Mapping[str, Any]) -> str:
    """Write a scenario: tables under headers, everything inside them in one line a key."""
    plain, tables = [], []
    for key, given in scenario.items():
        value = _plain(given)
        if isinstance(value, Mapping):
            tables.append(f"[{_key(key, '')}]\n{_lines(value, key)}")
        elif _is_list_of_tables(value):
            for place, item in enumerate(value):
                tables.append(f"[[{_key(key, '')}]]\n{_lines(item, f'{key}[{place}]')}")
        else:
            plain.append(f"{_key(key, '')} = {_value(value, key)}\n")
    return "\n".join(["".join(plain), *tables] if plain else tables)


def _lines(table: Mapping[str, Any], path: str) -> str:
    pairs = ((_key(key, path), _value(value, f"{path}.{key}")) for key, value in table.items())
    return "".join(f"{key} = {value}\n" for key, value in pairs)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _plain(value: Any) -> Any:
    """Sections of `shortlane.scenario` as mappings, sequences as lists."""
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
        return [_plain(item) for item in value]
    return value


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        place = path or "a scenario"
        raise ScenarioError(f"<dict>: {place} has the key {key!r}; it takes keys that are text")
    is_bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if is_bare else _text(key)


def _value(value: Any, path: str) -> str:
    match _plain(value):
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case os.PathLike():
            return _text(os.fsdecode(value))
        case Integral():
            return str(int(value))
        case Real():
            return repr(float(value))
        case Mapping() as table:
            pairs = [
                f"{_key(key, path)} = {_value(item, f'{path}.{key}')}"
                for key, item in table.items()
            ]
            return "{ " + ", ".join(pairs) + " }" if pairs else "{}"
        case list() as items:
            texts = (_value(item, f"{path}[{place}]") for place, item in enumerate(items))
            return "[" + ", ".join(texts) + "]"
        case _native.Queue():
            return _text(value.spec)
    raise ScenarioError(
        f"<dict>: {path} is {value!r}; a scenario takes text, numbers, true or false, "
        "lists and tables of these"
    )


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for one character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
