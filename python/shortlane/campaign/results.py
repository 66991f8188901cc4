"""Reading a campaign's folder: how it stands, and its tables over all runs.

A run's file has one row: identity columns (`run_id`, `campaign`, `point`, `param.<key>`,
`scheduler`, `seed`, `version`, `schema`, `scenario`), and each column of a table of results as one
list, `<table>.<column>`, so that a reader touches only the columns it is asked for.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import shortlane
from shortlane.campaign.plan import NAME, Plan, failed_file, run_file
from shortlane.campaign.store import Store
from shortlane.campaign.values import Value
from shortlane.errors import InputError

__all__ = ["Failure", "Results", "open"]

#: Files fetched from a URL at once: bounds what is held in memory.
AT_ONCE = 256


@dataclass(frozen=True)
class Failure:
    """A run that failed, and what reproduces it."""

    run_id: str
    params: dict[str, Value]
    scheduler: str
    seed: int
    error: str
    #: The command, to be run where `scenario` is.
    command: str
    #: The scenario's file.
    scenario: str


class Results:
    """What a campaign has so far; it may still be running."""

    def __init__(self, out: str | Path | Store) -> None:
        """Raises `InputError` if there is no campaign in `out`."""
        self.store = out if isinstance(out, Store) else Store(out)
        plan = Plan.read(self.store)
        if plan is None:
            accepted = "a directory or URL that `shortlane campaign run --out` wrote"
            raise InputError(f"{out}: there is no {NAME}; it takes {accepted}")
        self.plan = plan

    @property
    def title(self) -> str:
        """The campaign's title."""
        return self.plan.title

    def runs(self) -> pl.DataFrame:
        """One row per run of the campaign, in the order in which they are started.

        Columns: `run_id`, `point` (its identity; runs of one point share the scenario),
        `scheduler`, `seed`, `param.<key>` for what varies, and `state`: `done`, `failed` or
        `missing`.
        """
        done = self.store.names("runs", ".parquet")
        failed = self.store.names("failed", ".json")
        states = [
            "done" if run in done else "failed" if run in failed else "missing"
            for run in self.plan.runs
        ]
        return self.plan.frame().with_columns(pl.Series("state", states, pl.String))

    def failures(self) -> list[Failure]:
        """The runs that failed and have not been done since."""
        failed = self.runs().filter(pl.col("state") == "failed")["run_id"].to_list()
        found = self.store.read_all([failed_file(run) for run in failed])
        failures = []
        for run in failed:
            said: dict[str, Any] = json.loads(found[failed_file(run)])
            scenario = self.store.shown(failed_file(run, "toml"))
            kept = ("run_id", "params", "scheduler", "seed", "error", "command")
            failures.append(Failure(scenario=scenario, **{key: said[key] for key in kept}))
        return failures

    def table(
        self, name: str, columns: list[str] | None = None, runs: pl.DataFrame | None = None
    ) -> pl.LazyFrame:
        """A table of results over all runs that are done.

        `columns` of the table, all by default; `runs` limits it to some rows of `runs()`. Before
        them come `run_id`, `point`, `scheduler`, `seed` and `param.<key>`. A flow under one
        scheduler and the same flow under another share `point`, `seed`, `kind` and `index`. Raises
        `InputError` for a table or column that is not there.
        """
        runs = self.runs() if runs is None else runs
        runs = runs.filter(pl.col("state") == "done").drop("state")
        wanted = self._columns(name, columns)
        lists = [f"{name}.{column}" for column in wanted]
        frame = self._scan([run_file(run) for run in runs["run_id"]], lists)
        rows = (
            frame.filter(pl.col(lists[0]).list.len() > 0)
            .explode(lists)
            .rename(dict(zip(lists, wanted, strict=True)))
        )
        identity = runs.lazy()
        taken = [column for column in runs.columns if column in wanted and column != "run_id"]
        identity = identity.drop(taken)
        joined = rows.join(identity, on="run_id", how="left", maintain_order="left")
        order = [column for column in runs.columns if column not in taken]
        return joined.select(*order, *wanted)

    def _columns(self, name: str, columns: list[str] | None) -> list[str]:
        kept = self.plan.tables or [table for table in shortlane.schema() if table != "events"]
        if name not in kept:
            raise InputError(f"table {name!r} is not there; the campaign keeps {', '.join(kept)}")
        key = ("run", "scheduler", "seed", "round", "block")
        known = [row["name"] for row in shortlane.schema()[name] if row["name"] not in key]
        wanted = known if columns is None else list(dict.fromkeys(columns))
        for column in wanted:
            if column not in known:
                found = f"table {name!r} has no column {column!r}"
                raise InputError(f"{found}; it takes {', '.join(known)}")
        if not wanted:
            raise InputError(f"columns is empty; it takes some of {', '.join(known)}")
        return wanted

    def _scan(self, names: list[str], lists: list[str]) -> pl.LazyFrame:
        columns = ["run_id", *lists]
        if not names:
            return self._empty(lists)
        if self.store.local:
            paths = [self.store.path(name) for name in names]
            # Runs of a build that knew more columns stand beside those of one that did not yet.
            frame = pl.scan_parquet(
                paths, glob=False, hive_partitioning=False, extra_columns="ignore"
            )
            return frame.select(columns)
        parts = []
        for start in range(0, len(names), AT_ONCE):
            found = self.store.read_all(names[start : start + AT_ONCE])
            for name in names[start : start + AT_ONCE]:
                parts.append(pl.read_parquet(found[name], columns=columns).select(columns))
        return pl.concat(parts).lazy()

    def _empty(self, lists: list[str]) -> pl.LazyFrame:
        kinds = {"integer": pl.Int64, "float": pl.Float64, "boolean": pl.Boolean}
        schema: dict[str, Any] = {"run_id": pl.String}
        for column in lists:
            table, _, name = column.partition(".")
            row = next(row for row in shortlane.schema()[table] if row["name"] == name)
            schema[column] = pl.List(kinds.get(str(row["kind"]), pl.String))
        return pl.LazyFrame(schema=schema)


def open(out: str | Path) -> Results:
    """Reads a campaign's folder or URL; raises `InputError` if there is no campaign."""
    return Results(out)
