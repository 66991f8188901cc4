"""The papers that can be run: claims, and the Python code that stands beside them.

A paper's folder may have `stats.py` with `STATISTICS` and `figures.py` with `FIGURES` and
`COLUMNS`. They are loaded from the folder, wherever it is, as modules of a package of their own:
`from .stats import ...` works among them.
"""

import importlib
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from shortlane.errors import InputError
from shortlane.paper import data
from shortlane.paper.claims import Paper
from shortlane.paper.loading import load
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import Statistic

__all__ = ["code", "known", "named"]


def named(name: str) -> Paper:
    """The claims of paper `name`, such as `efd`; `data.names()` has all.

    Raises:
        InputError: there is no such paper, or its files are malformed.

    """
    return known(name)[0]


def known(name: str) -> tuple[Paper, Mapping[str, Statistic], ModuleType | None]:
    """The paper, its statistics or the shared ones, the module with its figures if it has one."""
    folder = data.folder(name)
    statistics: Mapping[str, Statistic] = getattr(code(folder, "stats"), "STATISTICS", SHARED)
    return load(folder, statistics), statistics, code(folder, "figures")


def code(folder: Path, name: str) -> ModuleType | None:
    """The module `name`.py of a paper's folder, None if the folder has none.

    Raises:
        InputError: the module cannot be imported; names the file and the reason.

    """
    file = folder / f"{name}.py"
    if not file.is_file():
        return None
    # Two folders of one name, such as a paper and a changed copy of it, are two packages.
    place = zlib.crc32(str(folder.resolve()).encode())
    package = f"shortlane_paper_{folder.name.replace('-', '_')}_{place:08x}"
    if package not in sys.modules:
        parent = ModuleType(package, "The code of a paper.")
        parent.__path__ = [str(folder)]
        sys.modules[package] = parent
    try:
        return importlib.import_module(f"{package}.{name}")
    except Exception as error:
        raise InputError(f"{file}: cannot be imported: {type(error).__name__}: {error}") from error
