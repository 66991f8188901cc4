"""A campaign from its sweep to its results: load, run, resume."""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shortlane.campaign import points as expand
from shortlane.campaign.plan import Plan, failed_file
from shortlane.campaign.points import Point, Run
from shortlane.campaign.progress import Progress, Tell, on_stderr
from shortlane.campaign.results import Failure, Results
from shortlane.campaign.spec import Sweep
from shortlane.campaign.store import Store
from shortlane.campaign.work import Order
from shortlane.errors import RunError

if TYPE_CHECKING:
    from shortlane.campaign.drive import Driver

__all__ = ["Campaign", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """How a campaign stands when `Campaign.run` returns."""

    #: Where the results are.
    out: str
    #: Runs of the campaign, in all, or those that were asked for.
    runs: int
    #: Runs with results, those of earlier starts included.
    done: int
    #: Runs that this start has simulated.
    ran: int
    #: Runs that failed in this start: each is tried again by the next.
    failed: list[Failure] = field(default_factory=list)

    def results(self) -> Results:
        """Reads the results."""
        return Results(self.out)


class Campaign:
    """A sweep: scenarios, schedulers and seeds to run, on this machine or a cluster."""

    def __init__(self, sweep: Sweep) -> None:
        """Expands a sweep; raises `InputError` for keys that its scenario has no place for."""
        self.sweep = sweep
        self._runs = expand.runs(sweep)

    @classmethod
    def load(cls, source: str | Path | Mapping[str, Any]) -> "Campaign":
        """Reads a sweep from a TOML file, or from a table with the same keys.

        Raises `InputError` that names file, key, what was found and what is accepted.
        """
        return cls(Sweep.load(source))

    @property
    def title(self) -> str:
        """Its title, which also says whose a folder of results is."""
        return self.sweep.title

    def points(self) -> list[Point]:
        """Every combination of what varies, but scheduler and seed."""
        return expand.points(self.sweep)

    def runs(self) -> list[Run]:
        """Every run, in the order in which they are started."""
        return list(self._runs)

    def run(
        self,
        out: str | Path,
        *,
        cluster: str | None = None,
        jobs: int | None = None,
        progress: Tell | bool | None = None,
        limit_s: float | None = None,
        tries: int = 3,
        hang_s: float = 60.0,
        again: bool = False,
        only: Collection[str] | None = None,
    ) -> Outcome:
        """Runs what is not done yet, and returns when everything is done or has failed.

        `out` is a directory or a URL that fsspec knows. `cluster` is the address of a Dask
        scheduler; without one, `jobs` processes of this machine work, one per core by default.
        `progress` takes a fraction and a text, or is True for a line on standard error. A run that
        takes longer than `limit_s` seconds of real time has failed, as has one whose worker died
        `tries` times; a local worker that has not answered for `hang_s` seconds is replaced.
        `again` goes on in a folder with results of another version, or of runs that this campaign
        no longer has, without reading them. `only` are the ids of the runs to do now, of which the
        outcome then tells; a later call does others.

        Raises `InputError` if `out` is another campaign's or in use, or no cluster answers, and
        `RunError` if it cannot go on (a full disk, a cluster that is gone, workers of another
        version). Whatever stops it, the runs that were done stay done.
        """
        store = Store(out)
        order = Order.of(self.sweep, store, limit_s)
        with store.lock():
            done = store.names("runs", ".parquet")
            self._claim(store, done, again=again)
            chosen = [run for run in self._runs if only is None or run.id in only]
            left = [run for run in chosen if run.id not in done]
            tell = on_stderr() if progress is True else progress or None
            shown = Progress(tell, len(chosen), [run.point.duration_s for run in left])
            if left:  # Dask takes a while to import.
                from shortlane.campaign.cluster import connect
                from shortlane.campaign.drive import Driver

                with connect(cluster, jobs, hang_s=hang_s, tries=tries) as client, shown:
                    driver = Driver(client, order, store, shown, shared=cluster is not None)
                    self._drive(driver, left)
            failed = self._settle(store)
            failed = [one for one in failed if only is None or one.run_id in only]
        return Outcome(store.url, len(chosen), shown.done, shown.done - shown.before, failed)

    def _claim(self, store: Store, done: set[str], *, again: bool) -> None:
        """Makes the folder this campaign's; raises `InputError` if it is another's."""
        plan = Plan.of(self.sweep, self._runs)
        there = Plan.read(store)
        if there is not None:
            plan.may_follow(there, done, store.url, again=again)
        if plan != there:
            plan.write(store)
        store.clean()

    def _drive(self, driver: "Driver", left: list[Run]) -> None:
        try:
            driver.run(left)
        except RunError as error:
            done = f"{driver.progress.done} of {len(self._runs)} runs are done"
            raise RunError(f"{error}; {done}, and the same command continues") from error

    def _settle(self, store: Store) -> list[Failure]:
        """The runs that failed; those that have been done since are no failures any more."""
        results = Results(store)
        with contextlib.suppress(RunError):
            for run in store.names("failed", ".json") & store.names("runs", ".parquet"):
                store.remove(failed_file(run))
                store.remove(failed_file(run, "toml"))
        return results.failures()
