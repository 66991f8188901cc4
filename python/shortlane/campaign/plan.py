"""What a campaign has to run, as its folder keeps it: `campaign.json`.

It says whose the folder is, so that two campaigns never mix, and lists the runs, so that whoever
reads the folder knows what is missing without the sweep's file.
"""

import json
from dataclasses import dataclass
from typing import Any

import polars as pl

import shortlane
from shortlane.campaign.points import Run
from shortlane.campaign.spec import Sweep
from shortlane.campaign.store import Store
from shortlane.campaign.values import Value
from shortlane.errors import InputError

__all__ = ["NAME", "Plan", "failed_file", "run_file"]

NAME = "campaign.json"
#: The version of `campaign.json` itself.
FORMAT = 1


def run_file(run_id: str) -> str:
    """Where the results of a run are."""
    return f"runs/{run_id}.parquet"


def failed_file(run_id: str, ending: str = "json") -> str:
    """Where it stands that a run failed, and (`toml`) what scenario it was."""
    return f"failed/{run_id}.{ending}"


@dataclass(frozen=True)
class Plan:
    """Whose a folder is, and all runs that belong there."""

    title: str
    scenario: str
    version: str
    schema: int
    tables: list[str]
    #: Point -> what varies.
    points: dict[str, dict[str, Value]]
    #: Run -> point, scheduler, seed.
    runs: dict[str, tuple[str, str, int]]

    @classmethod
    def of(cls, sweep: Sweep, runs: list[Run]) -> "Plan":
        """The plan of a sweep with this version of the simulator."""
        return cls(
            title=sweep.title,
            scenario=sweep.name,
            version=shortlane.__version__,
            schema=shortlane.SCHEMA_VERSION,
            tables=sweep.tables,
            points={run.point.id: run.point.params for run in runs},
            runs={run.id: (run.point.id, run.scheduler, run.seed) for run in runs},
        )

    @classmethod
    def read(cls, store: Store) -> "Plan | None":
        """What the folder says, `None` if it has no campaign.

        Raises `InputError` if what it has is not to be understood.
        """
        content = store.read(NAME)
        if content is None:
            return None
        try:
            found: dict[str, Any] = json.loads(content)
            if found.pop("format") != FORMAT:
                raise ValueError("written by another version of shortlane")
            found["runs"] = {
                run: (point, s, seed) for run, (point, s, seed) in found["runs"].items()
            }
            return cls(**found)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            accepted = "what a campaign wrote; take another directory"
            raise InputError(f"{store.shown(NAME)}: {error}; it takes {accepted}") from error

    def write(self, store: Store) -> None:
        """Makes the folder that of this campaign."""
        document = {"format": FORMAT, **vars(self)}
        store.write(NAME, json.dumps(document, indent=0).encode())

    def may_follow(self, there: "Plan", done: set[str], place: str, *, again: bool) -> None:
        """Whether this campaign may go on in the folder of another, which has results of `done`.

        It may if it is the same, or the same with more to run, or without runs that were never
        done. Raises `InputError` that names both.
        """
        if self.title != there.title:
            found = f"{place} holds the campaign {there._named()}, and this one is {self._named()}"
            raise InputError(f"{found}; take another --out")
        if (self.version, self.schema) != (there.version, there.schema) and not again:
            found = (
                f"{place} holds results of shortlane {there.version} (schema {there.schema}), and "
                f"this is {self.version} (schema {self.schema}): they are not mixed"
            )
            accepted = "take another --out, or --again to run everything again beside them"
            raise InputError(f"{found}; {accepted}")
        gone = len((there.runs.keys() & done) - self.runs.keys())
        if gone and not again:
            found = (
                f"{place} holds the campaign {there._named()}, and {gone} of the runs done there "
                f"are not in this one, {self._named()}"
            )
            accepted = "take another --out, or --again to go on without them"
            raise InputError(f"{found}; {accepted}")

    def _named(self) -> str:
        return f"{self.title!r} (scenario {self.scenario}, {len(self.runs)} runs)"

    def frame(self) -> pl.DataFrame:
        """One row per run: `run_id`, `point`, `scheduler`, `seed`, and `param.<key>` columns."""
        points, schedulers, seeds = zip(*self.runs.values(), strict=True)
        columns = [
            pl.Series("run_id", list(self.runs), pl.String),
            pl.Series("point", points, pl.String),
            pl.Series("scheduler", schedulers, pl.String),
            pl.Series("seed", seeds, pl.Int64),
        ]
        keys = list(dict.fromkeys(key for params in self.points.values() for key in params))
        for key in keys:
            values = {point: params.get(key) for point, params in self.points.items()}
            kind, shown = column(list(values.values()))
            by_point = dict(zip(values, shown, strict=True))
            columns.append(pl.Series(f"param.{key}", [by_point[p] for p in points], kind))
        return pl.DataFrame(columns)


def column(values: list[Value | None]) -> tuple[Any, list[Any]]:
    """The type of a column that holds all `values`, and the values in it; text if nothing else."""
    kinds = {type(value) for value in values if value is not None}
    for kind, accepted in ((pl.Boolean, {bool}), (pl.Int64, {int}), (pl.Float64, {int, float})):
        if kinds <= accepted:
            return kind, values
    return pl.String, [v if isinstance(v, str | None) else json.dumps(v) for v in values]
