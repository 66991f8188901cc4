"""A sweep as it is written: the sections of its TOML file, read and checked.

An error names file, key, what was found and what is accepted. What the keys of the scenario take is
for the scenario reader to judge, run by run: see `shortlane.campaign.points`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import shortlane
from shortlane.campaign import values
from shortlane.campaign.values import Value
from shortlane.errors import InputError

__all__ = ["Axis", "Sweep"]

#: One key that varies, or several that vary together: the settings that it goes through.
Axis = list[dict[str, Value]]

SECTIONS = ("campaign", "set", "grid", "zip", "exclude", "schedulers")
HEAD = ("title", "description", "scenario", "seeds", "tables")
SEEDS = 'one seed such as 7, a range such as "1..10", or a list such as [1, 2]; at most 10000 seeds'
MOST_SEEDS = 10_000
MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Sweep:
    """What a sweep says; `shortlane.campaign.points` makes runs of it."""

    file: str
    title: str
    #: The scenario's name: that of a ready one, or of its file.
    name: str
    #: The scenario as a table, before anything is set in it.
    scenario: dict[str, Any]
    #: Where files that the scenario names are looked for.
    directory: Path
    seeds: list[int]
    #: Kept tables of results; all if empty.
    tables: list[str]
    #: Set in every run.
    fixed: dict[str, Value]
    #: Every combination of one setting of each is a point.
    axes: list[Axis]
    #: Combinations to leave out: for each key the values that it concerns.
    excluded: list[dict[str, list[Value]]]
    schedulers: list[str]
    description: str = field(default="", compare=False)

    @classmethod
    def load(cls, source: str | Path | Mapping[str, Any]) -> "Sweep":
        """Reads a TOML file, or a table with the same keys.

        Raises `InputError` that names file, key, what was found and what is accepted.
        """
        if isinstance(source, Mapping):
            return _Reader("campaign", Path.cwd(), source).sweep()
        path = Path(source)
        return _Reader(str(path), path.absolute().parent, _toml(path)).sweep()


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; it takes a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error


class _Reader:
    """The sections of one file."""

    def __init__(self, file: str, directory: Path, document: Mapping[str, Any]) -> None:
        self.file = file
        self.directory = directory
        self.document = document

    def sweep(self) -> Sweep:
        self._known("the file", self.document, SECTIONS)
        head = self._table("campaign")
        self._known("[campaign]", head, HEAD)
        name, scenario, directory = self._scenario(head)
        fixed = self._flat("set")
        axes = [[{key: value} for value in found] for key, found in self._grid().items()]
        axes += self._zips()
        self._once(fixed, axes)
        schedulers = self._schedulers(scenario)
        return Sweep(
            file=self.file,
            title=self._text(head, "title", default=None),
            description=self._text(head, "description", default=""),
            name=name,
            scenario=scenario,
            directory=directory,
            seeds=self._seeds(head, scenario),
            tables=self._tables(head),
            fixed=fixed,
            axes=axes,
            excluded=self._excluded(axes, schedulers),
            schedulers=schedulers,
        )

    def refuse(self, key: str, found: object, accepted: str) -> InputError:
        return InputError(f"{self.file}: {key} = {found!r} is not accepted; it takes {accepted}")

    def _known(self, where: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
        for key in table:
            if key not in keys:
                accepted = ", ".join(keys)
                raise InputError(f"{self.file}: {where} has no key {key!r}; it takes {accepted}")

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self.document.get(name, {})
        if not isinstance(table, Mapping):
            raise self.refuse(name, table, "a table")
        return table

    def _list_of_tables(self, name: str) -> list[Mapping[str, Any]]:
        found = self.document.get(name, [])
        if not isinstance(found, list) or not all(isinstance(table, Mapping) for table in found):
            raise self.refuse(name, found, f"tables, each under [[{name}]]")
        return found

    def _text(self, table: Mapping[str, Any], key: str, default: str | None) -> str:
        found = table.get(key, default)
        if not isinstance(found, str) or (default is None and not found.strip()):
            raise self.refuse(f"campaign.{key}", found, "text")
        return found

    def _scenario(self, head: Mapping[str, Any]) -> tuple[str, dict[str, Any], Path]:
        """Name, content and directory: of a table, a file beside this one, or a ready scenario."""
        found = head.get("scenario")
        if isinstance(found, Mapping):
            return "scenario", dict(found), self.directory
        ready = shortlane.scenarios()
        path = self.directory / found if isinstance(found, str) else None
        if path is not None and path.is_file():
            return path.stem, _toml(path), path.absolute().parent
        if found in ready:
            return str(found), tomllib.loads(ready[found]), self.directory
        names = ", ".join(ready)
        accepted = f"a scenario file beside this one, or a ready scenario: {names}"
        raise self.refuse("campaign.scenario", found, accepted)

    def _seeds(self, head: Mapping[str, Any], scenario: dict[str, Any]) -> list[int]:
        given = head.get("seeds", scenario.get("scenario", {}).get("seeds", "1..10"))
        found = _seeds(given)
        fine = 0 < len(found) <= MOST_SEEDS and len(set(found)) == len(found)
        if not fine or not all(0 <= seed <= MOST_SEED for seed in found):
            raise self.refuse("campaign.seeds", given, SEEDS)
        return found

    def _tables(self, head: Mapping[str, Any]) -> list[str]:
        known = [name for name in shortlane.schema() if name != "events"]
        found = head.get("tables", [])
        if not isinstance(found, list) or not all(table in known for table in found):
            raise self.refuse("campaign.tables", found, f"a list of {', '.join(known)}")
        return [table for table in known if table in found]

    def _flat(self, name: str) -> dict[str, Any]:
        """Dotted keys, quoted or not: `"tcp.window" = x` is `tcp.window = x`."""
        flat: dict[str, Any] = {}

        def visit(table: Mapping[str, Any], way: str) -> None:
            for key, value in table.items():
                place = f"{way}{key}"
                if isinstance(value, Mapping) and not values.is_range(value):
                    visit(value, f"{place}.")
                else:
                    flat[place] = value

        visit(self._table(name), "")
        for key in flat:
            self._settable(name, key)
        return flat

    def _settable(self, section: str, key: str) -> None:
        elsewhere = {"scenario.seeds": "[campaign] seeds", "schedulers": "[schedulers]"}
        for start, place in elsewhere.items():
            if f"{key}.".startswith(f"{start}."):
                where = f"{self.file}: {section}: {key!r}"
                raise InputError(f"{where} is not accepted here; it is set by {place}")

    def _values(self, section: str, given: Mapping[str, Any]) -> dict[str, list[Value]]:
        where = f"{self.file}: {section}."
        return {key: values.values(value, where + key) for key, value in given.items()}

    def _grid(self) -> dict[str, list[Value]]:
        return self._values("grid", self._flat("grid"))

    def _zips(self) -> list[Axis]:
        """Lists that go together: the first values of all, then the second ones, and so on."""
        axes = []
        for index, table in enumerate(self._list_of_tables("zip")):
            reader = _Reader(self.file, self.directory, {"zip": table})
            columns = reader._values("zip", reader._flat("zip"))
            lengths = {key: len(column) for key, column in columns.items()}
            if len(set(lengths.values())) != 1:
                found = ", ".join(f"{key} {length}" for key, length in lengths.items())
                accepted = "as many values for each key"
                raise InputError(
                    f"{self.file}: zip[{index}] has {found or 'no key'}; it takes {accepted}"
                )
            rows = zip(*columns.values(), strict=True)
            axes.append([dict(zip(columns, row, strict=True)) for row in rows])
        return axes

    def _once(self, fixed: dict[str, Any], axes: list[Axis]) -> None:
        seen = set(fixed)
        for axis in axes:
            for key in axis[0]:
                if key in seen:
                    accepted = "each key in one place of set, grid and zip"
                    raise InputError(f"{self.file}: {key!r} is given twice; it takes {accepted}")
                seen.add(key)

    def _schedulers(self, scenario: dict[str, Any]) -> list[str]:
        """Those of `run`, then each discipline with every combination of its parameters."""
        table = self._table("schedulers")
        if not table:
            found = scenario.get("schedulers", {}).get("run", [])
            return [spec for spec in found if isinstance(spec, str)]
        run = table.get("run", [])
        if not isinstance(run, list) or not all(isinstance(spec, str) for spec in run):
            raise self.refuse("schedulers.run", run, "a list of schedulers, as in a scenario")
        specs = list(run)
        for name, parameters in table.items():
            if name != "run":
                specs += self._parameter_grid(name, parameters)
        for spec in specs:
            if specs.count(spec) > 1:
                raise InputError(f"{self.file}: schedulers has {spec!r} twice; each is run once")
        if not specs:
            raise self.refuse("schedulers.run", run, "at least one scheduler")
        return specs

    def _parameter_grid(self, name: str, parameters: object) -> list[str]:
        if not isinstance(parameters, Mapping) or not parameters:
            accepted = 'a table of parameters, such as { threshold = ["10packets", "30packets"] }'
            raise self.refuse(f"schedulers.{name}", parameters, accepted)
        several = {
            key: value if isinstance(value, list | Mapping) else [value]
            for key, value in parameters.items()
        }
        specs = [name]
        for key, column in self._values(f"schedulers.{name}", several).items():
            mark = ":" if specs == [name] else ","
            specs = [f"{spec}{mark}{key}={_word(value)}" for spec in specs for value in column]
        return specs

    def _excluded(self, axes: list[Axis], schedulers: list[str]) -> list[dict[str, list[Value]]]:
        known: dict[str, list[Value]] = {"scheduler": list(schedulers)}
        for axis in axes:
            for key in axis[0]:
                known[key] = [setting[key] for setting in axis]
        excluded = []
        for table in self._list_of_tables("exclude"):
            reader = _Reader(self.file, self.directory, {"exclude": table})
            found = reader._flat("exclude")
            self._known("[[exclude]]", found, tuple(known))
            lists = {k: v if isinstance(v, list) else [v] for k, v in found.items()}
            for key, column in lists.items():
                for value in column:
                    if value not in known[key]:
                        accepted = ", ".join(repr(value) for value in known[key])
                        raise self.refuse(f"exclude.{key}", value, f"one of {accepted}")
            if not lists:
                raise self.refuse("exclude", dict(table), f"at least one of {', '.join(known)}")
            excluded.append(lists)
        return excluded


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seeds(given: object) -> list[int]:
    """The seeds, or none where `given` is not accepted."""
    if isinstance(given, str):
        first, dots, last = given.partition("..")
        parts = [first, last] if dots else given.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            return []
        numbers = [int(part) for part in parts]
        if dots and numbers[1] - numbers[0] >= MOST_SEEDS:
            return []
        return list(range(numbers[0], numbers[1] + 1)) if dots else numbers
    listed = given if isinstance(given, list) else [given]
    numbers = [seed for seed in listed if isinstance(seed, int) and not isinstance(seed, bool)]
    return numbers if len(numbers) == len(listed) else []
