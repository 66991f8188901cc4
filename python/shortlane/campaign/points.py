"""The runs of a sweep: every point, with every scheduler and seed, under a name that stays.

A run's name is a hash of all that its results depend on: the scenario after substitution, the
files that it names, scheduler, seed, the kept tables, the results schema's version and the
simulator's. So a campaign can be interrupted, resumed and extended, and never takes one run's
result for another's.
"""

import copy
import hashlib
import itertools
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shortlane
from shortlane._toml import scenario_text
from shortlane.campaign.spec import Sweep
from shortlane.campaign.values import Value, quantity
from shortlane.errors import InputError

__all__ = ["Point", "Run", "points", "runs"]

#: More runs are a typing mistake.
MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Point:
    """One setting of everything that varies but scheduler and seed."""

    id: str
    #: What varies, by dotted key, as the sweep writes it.
    params: dict[str, Value]
    #: The scenario as TOML, but for scheduler and seed.
    scenario: str
    #: Simulated time of a run, in seconds.
    duration_s: float


@dataclass(frozen=True)
class Run:
    """One simulation: a point, a scheduler, a seed."""

    id: str
    point: Point
    scheduler: str
    seed: int

    @property
    def scenario(self) -> str:
        """The scenario as TOML: what reproduces the run, with `command`."""
        scheduler = scenario_text({"schedulers": {"run": [self.scheduler]}})
        return f"{self.point.scenario}\n{scheduler}"

    @property
    def command(self) -> str:
        """What repeats it by hand, given its scenario as a file."""
        spec = shlex.quote(self.scheduler)
        return f"shortlane sim {self.id}.toml --scheduler {spec} --seeds {self.seed}"


def points(sweep: Sweep) -> list[Point]:
    """Every point, in the order of the file, the last key varying fastest.

    Raises `InputError` for a key that the scenario has no place for.
    """
    return [point for point, _ in _points(sweep)]


def runs(sweep: Sweep) -> list[Run]:
    """Every run, seed after seed: what is there early compares all points."""
    found = list(_points(sweep))
    number = len(sweep.seeds) * sum(len(schedulers) for _, schedulers in found)
    if number > MOST_RUNS:
        raise InputError(f"{sweep.file}: {number} runs; it takes at most {MOST_RUNS}")
    if not number:
        raise InputError(f"{sweep.file}: nothing is left to run; exclude leaves out everything")
    listed = [
        Run(_hash([point.id, scheduler, seed]), point, scheduler, seed)
        for seed in sweep.seeds
        for point, schedulers in found
        for scheduler in schedulers
    ]
    if len({run.id for run in listed}) < len(listed):
        raise InputError(f"{sweep.file}: two points are the same scenario; each is run once")
    return listed


def _points(sweep: Sweep) -> Iterator[tuple[Point, list[str]]]:
    base = copy.deepcopy(sweep.scenario)
    for key, value in sweep.fixed.items():
        _put(base, key, value, f"{sweep.file}: set")
    for settings in itertools.product(*sweep.axes):
        params = {key: value for setting in settings for key, value in setting.items()}
        schedulers = [
            scheduler
            for scheduler in sweep.schedulers
            if not any(_concerns(rule, params, scheduler) for rule in sweep.excluded)
        ]
        if schedulers:
            yield _point(sweep, base, params), schedulers


def _concerns(rule: dict[str, list[Value]], params: dict[str, Value], scheduler: str) -> bool:
    found = params | {"scheduler": scheduler}
    return all(found[key] in accepted for key, accepted in rule.items())


def _point(sweep: Sweep, base: dict[str, Any], params: dict[str, Value]) -> Point:
    scenario = copy.deepcopy(base)
    for key, value in params.items():
        _put(scenario, key, value, f"{sweep.file}: grid")
    files = _absolute_files(scenario, sweep.directory)
    _without_runs(scenario)
    return Point(
        id=_hash([_meaning(scenario), files, sweep.tables, _versions()]),
        params=params,
        scenario=scenario_text(scenario),
        duration_s=_duration_s(scenario),
    )


def _put(scenario: dict[str, Any], key: str, value: Value, where: str) -> None:
    """Sets a dotted key; tables in lists go by their name, their kind, or their place from 0."""
    *way, last = key.split(".")
    node: object = scenario
    for place in way:
        node = _enter(node, place, f"{where}: {key!r}")
    if isinstance(node, dict):
        node[last] = copy.deepcopy(value)
    elif isinstance(node, list) and last.isdecimal() and int(last) < len(node):
        node[int(last)] = copy.deepcopy(value)
    else:
        raise InputError(f"{where}: {key!r} is not accepted; there is no {last!r} in the scenario")


def _enter(node: object, place: str, where: str) -> object:
    if isinstance(node, dict):
        return node.setdefault(place, {})
    if not isinstance(node, list):
        raise InputError(f"{where} is not accepted; the scenario has {node!r} before {place!r}")
    names = [_name(entry) for entry in node]
    if names.count(place) == 1:
        return node[names.index(place)]
    if place.isdecimal() and int(place) < len(node):
        return node[int(place)]
    accepted = ", ".join(f"{index} ({name})" for index, name in enumerate(names))
    raise InputError(f"{where}: there is no {place!r} in the scenario; it takes {accepted}")


def _name(entry: object) -> str:
    named = entry if isinstance(entry, dict) else {}
    return str(named.get("name", named.get("kind", "")))


def _without_runs(scenario: dict[str, Any]) -> None:
    """Takes out what every run has of its own."""
    scenario.pop("schedulers", None)
    if isinstance(head := scenario.get("scenario"), dict):
        head.pop("seeds", None)


def _absolute_files(scenario: dict[str, Any], directory: Path) -> list[str]:
    """Makes the paths of lists of flows absolute; hashes of what is in the files."""
    traffic = scenario.get("traffic")
    contents = []
    for entry in traffic if isinstance(traffic, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("list"), str):
            path = directory / entry["list"]
            entry["list"] = str(path)
            contents.append(_file_hash(path))
    return contents


def _file_hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""  # The simulator says what is wrong with it.


def _meaning(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario without what no result depends on."""
    meaning = dict(scenario)
    if isinstance(head := meaning.get("scenario"), dict):
        words = ("title", "description")
        meaning["scenario"] = {key: value for key, value in head.items() if key not in words}
    traffic = meaning.get("traffic")
    if isinstance(traffic, list):  # The files' contents count instead of their places.
        meaning["traffic"] = [
            {key: value for key, value in entry.items() if key != "list"}
            if isinstance(entry, dict)
            else entry
            for entry in traffic
        ]
    return meaning


def _versions() -> list[object]:
    return [shortlane.SCHEMA_VERSION, shortlane.__version__]


def _duration_s(scenario: dict[str, Any]) -> float:
    """For progress and the sharing out of work only, so that nonsense is no error here."""
    try:
        return max(quantity(scenario["scenario"]["duration"]), 1e-6)
    except (InputError, KeyError, TypeError):
        return 1.0


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
