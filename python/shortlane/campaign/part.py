"""Runs of a campaign that are to be done now: what is left of them, and what they have taken."""

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shortlane.campaign.plan import Plan, failed_file
from shortlane.campaign.points import Run
from shortlane.campaign.results import Failure, Results
from shortlane.campaign.share import Task, Waiting, each, simulated_s
from shortlane.campaign.spec import Sweep
from shortlane.campaign.store import Store
from shortlane.campaign.work import Order
from shortlane.errors import RunError

__all__ = ["Outcome", "Part"]


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


class Part:
    """Runs of one campaign, in a folder that is locked from the beginning to the end of them."""

    def __init__(
        self,
        sweep: Sweep,
        runs: Sequence[Run],
        out: str | Path,
        *,
        limit_s: float | None = None,
        again: bool = False,
        only: Collection[str] | None = None,
        rank: int = 0,
    ) -> None:
        """`runs` are all of the campaign, `rank` is less for what is to be done sooner.

        Raises `InputError` if `out` is another campaign's or in use.
        """
        self.store = Store(out)
        self.order = Order.of(sweep, self.store, limit_s)
        self.rank = rank
        self._only = only
        with contextlib.ExitStack() as lock:
            lock.enter_context(self.store.lock())
            done = self.store.names("runs", ".parquet")
            self._claim(Plan.of(sweep, list(runs)), done, again=again)
            self._lock = lock.pop_all()
        self.chosen = [run for run in runs if only is None or run.id in only]
        left = [run for run in self.chosen if run.id not in done]
        self.waiting = Waiting(left)
        #: Runs that have not ended, and the simulated time in them.
        self.left, self.left_s = len(left), simulated_s(left)
        self.before = self.done = len(self.chosen) - len(left)
        #: What tasks have taken, and the simulated time in them.
        self.seconds = self.simulated_s = 0.0

    def _claim(self, plan: Plan, done: set[str], *, again: bool) -> None:
        """Makes the folder this campaign's; raises `InputError` if it is another's."""
        there = Plan.read(self.store)
        if there is not None:
            plan.may_follow(there, done, self.store.url, again=again)
        if plan != there:
            plan.write(self.store)
        self.store.clean()

    @property
    def pace(self) -> float:
        """Seconds that a simulated second takes, 0 if not known yet."""
        return self.seconds / self.simulated_s if self.simulated_s else 0.0

    @property
    def next_s(self) -> float:
        """About how long what is next takes, in seconds: for ever, if it is not known yet."""
        return self.waiting.next_s * self.pace or float("inf")

    def took(self, task: Task, seconds: float) -> None:
        """A task has been reported."""
        self.seconds += seconds
        self.simulated_s += simulated_s(each(task))

    def ended(self, run: Run, *, failed: bool) -> None:
        """A run has ended, one way or the other."""
        self.left -= 1
        self.left_s -= run.point.duration_s
        self.done += not failed

    def outcome(self) -> Outcome:
        """How the runs stand."""
        found = self._settle()
        failed = [one for one in found if self._only is None or one.run_id in self._only]
        ran = self.done - self.before
        return Outcome(self.store.url, len(self.chosen), self.done, ran, failed)

    def close(self) -> None:
        """Lets others into the folder."""
        self._lock.close()

    def _settle(self) -> list[Failure]:
        """The runs that failed; those that have been done since are no failures any more."""
        results = Results(self.store)
        with contextlib.suppress(RunError):
            for run in self.store.names("failed", ".json") & self.store.names("runs", ".parquet"):
                self.store.remove(failed_file(run))
                self.store.remove(failed_file(run, "toml"))
        return results.failures()
