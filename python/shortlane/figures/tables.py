"""The rows that count: tables of results without void blocks and warm-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import polars as pl

from shortlane.errors import Usage

__all__ = ["Frame", "HasTables", "Source", "names", "observations", "rows", "scenario_of"]

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame


class HasTables(Protocol):
    """Results: what `shortlane.simulate`, `replay` and `read` give."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """Tables by name; each a frame, or something with a method `polars` that gives one."""


#: Results, or the one table that a figure needs. Of a plain frame every row counts, except where a
#: column `void` says otherwise.
Source: TypeAlias = HasTables | Frame

#: What tells independent observations apart: workloads. Flows of one meet in one queue.
OBSERVATION = ("seed", "round")

#: Which column says when a row began.
_BEGIN = {"flows": pl.coalesce("planned_ns", "start_ns"), "probes": pl.col("sent_ns")}


def rows(source: Source, table: str, *, warm_up: bool = False) -> pl.LazyFrame:
    """The rows of `table` that count: none of void blocks.

    With `warm_up=False` also no sample, probe, transfer or request of a simulation's warm-up,
    as in the summary that the command prints.
    """
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        frame = source.lazy()
        return frame.filter(~pl.col("void")) if "void" in columns(frame) else frame
    frame = frame_of(source, table)
    if "blocks" in source.tables and table != "blocks":
        blocks = frame_of(source, "blocks").filter(~pl.col("void")).select("run", "block")
        frame = frame.join(blocks, on=["run", "block"], how="semi", maintain_order="left")
    elif table == "blocks":
        frame = frame.filter(~pl.col("void"))
    begin_ns = 0 if warm_up else scenario_of(source).get("warm_up_ns", 0)
    if begin_ns and table == "flows":
        # Long flows and streams begin once, and last.
        lasting = ~pl.col("kind").is_in(["transfer", "request"])
        return frame.filter(lasting | (_BEGIN[table] >= begin_ns))
    if begin_ns and table == "probes":
        return frame.filter(_BEGIN[table] >= begin_ns)
    if begin_ns and table == "samples":
        return frame.filter(pl.col("t_ns") >= begin_ns)
    return frame


def frame_of(source: HasTables, table: str) -> pl.LazyFrame:
    """All rows of a table."""
    if table not in source.tables:
        raise Usage(f"results: found no table `{table}`, but {', '.join(source.tables) or 'none'}")
    found = source.tables[table]
    if not isinstance(found, pl.DataFrame | pl.LazyFrame):
        found = found.polars()
    frame: pl.LazyFrame = found.lazy()
    return frame


def scenario_of(source: Source) -> dict[str, Any]:
    """The scenario in `run.json`; nothing where the source has none."""
    info = getattr(source, "info", None) or {}
    scenario = info.get("scenario") if isinstance(info, Mapping) else None
    return dict(scenario) if isinstance(scenario, Mapping) else {}


def columns(frame: pl.LazyFrame) -> list[str]:
    """The names of a frame's columns."""
    return frame.collect_schema().names()


def need(frame: pl.LazyFrame, wanted: Sequence[str], table: str) -> None:
    """Raises `InputError` unless the frame has all the columns."""
    found = columns(frame)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise Usage(
            f"table {table}: found no column `{'`, `'.join(missing)}`; it has {', '.join(found)}"
        )


def observations(frame: pl.LazyFrame) -> list[str]:
    """Those columns of `frame` that tell independent observations apart."""
    found = columns(frame)
    return [name for name in OBSERVATION if name in found]


def names(source: Source, frame: pl.LazyFrame, by: str) -> list[Any]:
    """The values of column `by` in the order of the scenario, else of the rows."""
    found = frame.select(pl.col(by).unique(maintain_order=True)).collect()[by].to_list()
    wanted = scenario_of(source).get("schedulers") if by == "scheduler" else None
    order = {name: place for place, name in enumerate(wanted or [])}
    return sorted((x for x in found if x is not None), key=lambda x: order.get(x, len(order)))
