"""What a worker does: simulates a few runs and writes one file for each.

Nothing here raises for a run that fails: it is written down as failed, with what reproduces it.
"""

import io
import json
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

import shortlane
from shortlane.campaign.plan import column, failed_file, run_file
from shortlane.campaign.points import Run
from shortlane.campaign.progress import Tell
from shortlane.campaign.share import Group, Task
from shortlane.campaign.spec import Sweep
from shortlane.campaign.store import Store, StoreError
from shortlane.campaign.values import Value
from shortlane.errors import InputError

__all__ = ["Order", "Report", "carry_out", "write_failed"]

#: What the columns of a table have in common within a run: in the file they stand once.
KEY = ("run", "scheduler", "seed", "round", "block")


@dataclass(frozen=True)
class Order:
    """What is the same for all tasks of a campaign."""

    title: str
    url: str
    tables: list[str]
    version: str
    schema: int
    #: Longest time of one run, in seconds.
    limit_s: float | None

    @classmethod
    def of(cls, sweep: Sweep, store: Store, limit_s: float | None) -> "Order":
        """The order for a sweep whose results go to `store`."""
        version, schema = shortlane.__version__, shortlane.SCHEMA_VERSION
        return cls(sweep.title, store.url, sweep.tables, version, schema, limit_s)


@dataclass
class Report:
    """What a worker says of its task."""

    worker: str
    done: list[str] = field(default_factory=list)
    #: Run -> why.
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def carry_out(worker: str, order: Order, task: Task) -> Report | str:
    """Simulates the runs of a task; gives a text where no further one could be written down."""
    report = Report(worker)
    started = time.monotonic()
    try:
        store = Store(order.url)
        for group in task:
            _carry_out(order, store, group, report)
    except (StoreError, InputError) as error:
        return f"{worker}: {error}"
    report.seconds = time.monotonic() - started
    return report


def _carry_out(order: Order, store: Store, group: Group, report: Report) -> None:
    """One simulation for all runs of a group; one by one if that fails, or time is limited."""
    if len(group) > 1 and order.limit_s is not None:
        return _one_by_one(order, store, group, report)
    try:
        results = _simulate(order, group)
    except Exception as error:
        if len(group) > 1:
            return _one_by_one(order, store, group, report)
        reason = _reason(error)
        write_failed(store, order, group[0], reason)
        report.failed[group[0].id] = reason
    else:
        for run, lists in zip(group, results, strict=True):
            store.write(run_file(run.id), _file(order, run, lists))
            report.done.append(run.id)


def _one_by_one(order: Order, store: Store, group: Group, report: Report) -> None:
    for run in group:
        _carry_out(order, store, [run], report)


def _reason(error: Exception) -> str:
    """One line; the scenario has no file of its own here."""
    text = " ".join(f"{error}".split()).removeprefix("<dict>: ")
    return text or type(error).__name__


def _simulate(order: Order, group: Group) -> Iterator[list[pl.DataFrame]]:
    """The tables of each run."""
    first = group[0]
    schedulers = [run.scheduler for run in group if run.seed == first.seed]
    scenario = tomllib.loads(first.point.scenario) | {"schedulers": {"run": schedulers}}
    results = shortlane.simulate(
        scenario,
        seeds=[run.seed for run in group[:: len(schedulers)]],
        jobs=1,
        tables=order.tables or None,
        progress=_deadline(order.limit_s),
    )
    wanted = order.tables or results.tables
    tables = [_Runs(name, results.tables[name].polars(), len(group)) for name in wanted]
    return ([table.run(place) for table in tables] for place in range(len(group)))


class _Runs:
    """A table of several runs: their blocks are numbered as they are, one after another."""

    def __init__(self, name: str, table: pl.DataFrame, runs: int) -> None:
        places = pl.int_range(runs + 1, eager=True)
        self.starts = table["block"].search_sorted(places, "left")
        self.rows = table.drop(KEY)
        self.lists = pl.all().implode().name.prefix(f"{name}.")

    def run(self, place: int) -> pl.DataFrame:
        """One row: every column of one run's rows as a list `<table>.<column>`."""
        start, end = self.starts[place], self.starts[place + 1]
        return self.rows.slice(start, end - start).select(self.lists)


def _deadline(limit_s: float | None) -> Tell | None:
    """What stops a run that takes longer than `limit_s`: it is called as the run goes on."""
    if limit_s is None:
        return None
    end = time.monotonic() + limit_s

    def check(_fraction: float, _text: str) -> None:
        if time.monotonic() > end:
            raise TimeoutError(f"longer than {limit_s:g} s, the limit of a run")

    return check


def _file(order: Order, run: Run, lists: list[pl.DataFrame]) -> bytes:
    """One row: who the run is, and its tables."""
    identity = [
        pl.Series("run_id", [run.id]),
        pl.Series("campaign", [order.title]),
        pl.Series("point", [run.point.id]),
        *(_parameter(key, value) for key, value in run.point.params.items()),
        pl.Series("scheduler", [run.scheduler]),
        pl.Series("seed", [run.seed], pl.Int64),
        pl.Series("version", [order.version]),
        pl.Series("schema", [order.schema], pl.Int64),
        pl.Series("scenario", [run.scenario]),
    ]
    content = io.BytesIO()
    whole = pl.concat([pl.DataFrame(identity), *lists], how="horizontal")
    # Zstandard would take a third less room, and twice the time of all else here.
    whole.write_parquet(content, compression="lz4", statistics=False)
    return content.getvalue()


def _parameter(key: str, value: Value) -> pl.Series:
    kind, shown = column([value])
    return pl.Series(f"param.{key}", shown, kind)


def write_failed(store: Store, order: Order, run: Run, reason: str) -> None:
    """Writes down that a run failed, why, and what reproduces it; raises `StoreError`."""
    document = {
        "run_id": run.id,
        "campaign": order.title,
        "point": run.point.id,
        "params": run.point.params,
        "scheduler": run.scheduler,
        "seed": run.seed,
        "version": order.version,
        "error": reason,
        "command": run.command,
    }
    store.write(failed_file(run.id, "toml"), run.scenario.encode())
    store.write(failed_file(run.id), json.dumps(document, indent=2).encode())
