"""What a directory of results holds, complete or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import shortlane
from shortlane.errors import Usage
from shortlane.figures.tables import HasTables

__all__ = ["Folder", "open_folder"]

#: Tables that every run writes.
EXPECTED = ("blocks", "links", "flows", "probes", "samples", "drops")

KINDS: dict[str, Any] = {
    "boolean": pl.Boolean,
    "integer": pl.Int64,
    "float": pl.Float64,
    "text": pl.String,
}


@dataclass
class Folder:
    """Results as `figures` and the report take them; tables are read when used, by column."""

    name: str
    info: dict[str, Any]
    tables: Mapping[str, pl.LazyFrame]
    #: What is not there that should be, in words.
    missing: list[str] = field(default_factory=list)

    def has(self, table: str) -> bool:
        """Whether there is such a table with a row in it."""
        if table not in self.tables:
            return False
        return not self.tables[table].head(1).collect().is_empty()


def of_results(results: HasTables) -> Folder:
    """Results of a run, without files."""
    info = dict(getattr(results, "info", {}) or {})
    tables = {
        name: (table if isinstance(table, pl.DataFrame) else table.polars()).lazy()
        for name, table in results.tables.items()
    }
    return Folder(str(info.get("run", "results")), info, tables)


def open_folder(directory: Path) -> Folder:
    """Opens a directory that `sim`, `replay` or `lab` wrote, whatever is left of it.

    Raises `InputError` for one without any trace of results, and for results of another schema.
    """
    if not directory.is_dir():
        raise Usage(
            f"{directory}: not a directory; accepted: one that `--out` of sim, replay or lab wrote"
        )
    if (directory / "campaign.json").exists():
        raise Usage(
            f"{directory}: the folder of a campaign; accepted: that of one run. Its tables are "
            "had by shortlane.campaign.open"
        )
    temporary = sorted(path.name for path in directory.glob(".*.tmp"))
    missing = []
    info: dict[str, Any] = {}
    if (directory / "run.json").exists():
        info = _run_info(directory / "run.json")
    else:
        missing.append(
            "run.json, which is written last (so the run did not end, or the file was "
            "removed): scenario, seeds, command and version are not known"
        )
    tables = _tables(directory, missing)
    if not info and not tables and not temporary:
        raise Usage(
            f"{directory}: no results here: found neither run.json nor a table "
            f"({', '.join(EXPECTED)}; .parquet or .csv)"
        )
    if not tables:
        missing.append("every table: no figure can be drawn")
    elif absent := [name for name in EXPECTED if name not in tables]:
        missing.append(f"the table{'s' * (len(absent) > 1)} {', '.join(absent)}")
    if temporary:
        missing.append(
            f"what is still under a temporary name ({', '.join(temporary)}): the run "
            "was killed while it wrote, or is still at it"
        )
    return Folder(directory.resolve().name, info, tables, missing)


def _run_info(path: Path) -> dict[str, Any]:
    try:
        info = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Usage(f"{path}: not readable as JSON: {error}") from None
    found = info.get("schema") if isinstance(info, dict) else None
    if found != shortlane.SCHEMA_VERSION:
        version = info.get("version", "unknown") if isinstance(info, dict) else "unknown"
        raise Usage(
            f"{path}: found `schema` {found!r}, written by version {version}; accepted: "
            f"{shortlane.SCHEMA_VERSION}, since columns mean something else in another; use the "
            "version of shortlane that wrote it, or run it again"
        )
    return dict(info)


def _tables(directory: Path, missing: list[str]) -> dict[str, pl.LazyFrame]:
    """The tables that can be read; the others are named in `missing`."""
    tables = {}
    for name, columns in shortlane.schema().items():
        parquet, csv = directory / f"{name}.parquet", directory / f"{name}.csv"
        try:
            if parquet.exists():
                frame = pl.scan_parquet(parquet)
            elif csv.exists():
                kinds = {column["name"]: KINDS[column["kind"]] for column in columns}
                frame = pl.scan_csv(csv, schema_overrides=kinds)
            else:
                continue
            found = frame.collect_schema().names()
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            missing.append(f"table {name}, whose file is damaged ({reason})")
            continue
        # Columns that came after these results were written are empty in them.
        absent = [
            pl.lit(None, KINDS[column["kind"]]).alias(column["name"])
            for column in columns
            if column["name"] not in found and column["nullable"]
        ]
        tables[name] = frame.with_columns(absent)
    return tables
