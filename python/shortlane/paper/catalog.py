"""The papers that can be run: claims, and what is written in Python for them."""

import importlib
import importlib.util
from collections.abc import Mapping
from types import ModuleType

from shortlane.paper import data
from shortlane.paper.claims import Paper, load
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import Statistic

__all__ = ["known", "named"]


def named(name: str) -> Paper:
    """The claims of paper `name`, such as `efd`; `data.names()` has all.

    Raises:
        InputError: there is no such paper, or its files are malformed.

    """
    return known(name)[0]


def known(name: str) -> tuple[Paper, Mapping[str, Statistic], ModuleType | None]:
    """The paper, its statistics or the shared ones, the module with its figures if it has one."""
    folder = data.folder(name)
    statistics = getattr(_module(folder.name), "STATISTICS", SHARED)
    return load(folder, statistics), statistics, _module(f"{folder.name}_figures")


def _module(name: str) -> ModuleType | None:
    """What is written in Python for a paper: `flow_scheduler` for `flow-scheduler`."""
    full = f"shortlane.paper.{name.replace('-', '_')}"
    return importlib.import_module(full) if importlib.util.find_spec(full) else None
