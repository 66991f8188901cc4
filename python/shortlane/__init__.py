"""Size-based packet scheduling: simulate, replay, compare.

>>> import shortlane
>>> results = shortlane.simulate("efd-paper-8mbit", seeds=[1, 2], duration="60s")
>>> print(results)
>>> results.flows.group_by("scheduler", "size_class").agg(...)
"""

import json
from typing import Any

from shortlane import _native, disciplines, stats
from shortlane.errors import InputError, RunError, ScenarioError, ShortlaneError
from shortlane.results import SCHEMA_VERSION, Results, Table, read, schema
from shortlane.runs import replay, simulate
from shortlane.scenario import Scenario

__all__ = [
    "SCHEMA_VERSION",
    "InputError",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "ShortlaneError",
    "Table",
    "__version__",
    "disciplines",
    "read",
    "replay",
    "scenarios",
    "schedulers",
    "schema",
    "simulate",
    "stats",
]

__version__: str = _native.VERSION


def schedulers() -> list[dict[str, Any]]:
    """Every discipline: name, summary, source, parts, parameters; as `shortlane list --json`."""
    infos: list[dict[str, Any]] = json.loads(_native.schedulers())
    return infos


def scenarios() -> dict[str, str]:
    """The ready scenarios: name and TOML text."""
    return dict(_native.scenarios())
