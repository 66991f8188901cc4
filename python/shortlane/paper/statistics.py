"""Statistics that claims are judged by: the registry, and what many papers share.

A statistic takes the `Tables` of the runs at one point, and arguments from the claim, and gives one
value a seed (`PerSeed`), each from all schedulers on the same arrivals, or parts a seed that make
one value together (`Pooled`).
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from shortlane.errors import RunError

__all__ = ["MSS", "PerSeed", "Pooled", "Sample", "Statistic", "Tables", "packets", "statistic"]

#: Payload of a full packet of 1500 bytes, by which sizes are counted in packets.
MSS = 1460


class Tables:
    """Results tables of the runs at one point, with the paper's names in column `scheduler`.

    Tables have a column `seed` as well. `at` gives those of another point.
    """

    def __init__(
        self,
        load: Callable[[str], pl.DataFrame],
        others: Callable[[str], "Tables"] | None = None,
    ) -> None:
        """`load` gives a table by its name, `others` the tables of a point by its name."""
        self._load = load
        self._others = others

    def __getitem__(self, table: str) -> pl.DataFrame:
        """The table of that name."""
        return self._load(table)

    def at(self, point: str) -> "Tables":
        """The tables of another point."""
        if self._others is None:
            raise RunError(f"there are no runs at '{point}'")
        return self._others(point)

    @staticmethod
    def of(tables: Mapping[str, pl.DataFrame], **points: "Tables") -> "Tables":
        """Those given: for tests and notebooks."""
        return Tables(tables.__getitem__, points.__getitem__)


@dataclass(frozen=True)
class PerSeed:
    """One value for each seed that has one."""

    values: Mapping[int, float]


@dataclass(frozen=True)
class Pooled:
    """Parts of each seed, and the value that any collection of seeds makes together."""

    parts: Sequence[Any]
    value: Callable[[Sequence[Any]], float]


Sample = PerSeed | Pooled
#: `ratio`: intervals by its logarithm; `plain`: as it is.
Scale = Literal["ratio", "plain"]


@dataclass(frozen=True)
class Statistic:
    """A statistic with the columns that it reads, by table, and how its values are written."""

    name: str
    function: Callable[..., Sample]
    scale: Scale
    unit: str
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __call__(self, tables: Tables, **arguments: Any) -> Sample:
        """The sample of these runs."""
        return self.function(tables, **arguments)

    def parameters(self) -> tuple[list[str], list[str]]:
        """The names of the arguments that it needs, and of all that it takes."""
        _, *own = inspect.signature(self.function).parameters.values()
        needed = [one.name for one in own if one.default is inspect.Parameter.empty]
        return needed, [one.name for one in own]


def statistic(
    known: dict[str, Statistic], name: str, *, scale: Scale, unit: str, **tables: Sequence[str]
) -> Callable[[Callable[..., Sample]], Callable[..., Sample]]:
    """Enters a function into `known` under `name`; `tables` are the columns that it reads."""

    def enter(function: Callable[..., Sample]) -> Callable[..., Sample]:
        columns = {table: tuple(columns) for table, columns in tables.items()}
        known[name] = Statistic(name, function, scale, unit, columns)
        return function

    return enter


def packets(column: str) -> pl.Expr:
    """Bytes of a transfer as full packets, begun ones counted."""
    return ((pl.col(column) + (MSS - 1)) // MSS).cast(pl.Int64)


def size_between(sizes: Sequence[int] | None) -> pl.Expr:
    """Transfers whose size in packets is in `[first, last]`; all of them for None."""
    if sizes is None:
        return pl.lit(True)
    return packets("size_bytes").is_between(sizes[0], sizes[1])


def transfers(flows: pl.DataFrame, scheduler: str) -> pl.LazyFrame:
    """The TCP transfers of one scheduler."""
    return flows.lazy().filter(pl.col("scheduler") == scheduler, pl.col("kind") == "transfer")


def by_seed(frame: pl.LazyFrame, value: pl.Expr) -> dict[int, float]:
    """One value a seed; seeds whose value is empty or not finite are left out."""
    rows = frame.group_by("seed").agg(value.cast(pl.Float64).alias("value")).collect()
    return {
        seed: one
        for seed, one in sorted(rows.select("seed", "value").iter_rows())
        if one is not None and math.isfinite(one)
    }


def combine(function: Callable[..., float | None], *parts: Mapping[int, Any]) -> dict[int, float]:
    """The function of the values of each seed that all parts have; None leaves a seed out."""
    seeds = sorted(set(parts[0]).intersection(*parts[1:]))
    found = {seed: function(*(part[seed] for part in parts)) for seed in seeds}
    return {seed: value for seed, value in found.items() if value is not None}


def ratio(above: Mapping[int, float], below: Mapping[int, float]) -> PerSeed:
    """The ratios of each seed; where one is not positive there is none."""
    return PerSeed(
        combine(lambda top, foot: top / foot if top > 0 and foot > 0 else None, above, below)
    )
