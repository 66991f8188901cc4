"""Hands runs out to workers and takes in what they report, until none is left.

A task that kills its worker again and again is taken apart, and the run that does it is given up as
failed.
"""

import time
import uuid
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from shortlane.campaign.part import Part
from shortlane.campaign.plan import run_file
from shortlane.campaign.points import Run
from shortlane.campaign.progress import Progress
from shortlane.campaign.remote import call, payload
from shortlane.campaign.share import Task, each, simulated_s
from shortlane.campaign.store import Store
from shortlane.campaign.work import Report, write_failed
from shortlane.errors import RunError

__all__ = ["Driver"]

#: At least so many tasks are under way, so that an adaptive cluster sees something to grow for.
LEAST_TASKS = 32
#: How often the workers are counted, in seconds.
COUNT_S = 5.0


class Driver:
    """Parts of campaigns on one cluster."""

    def __init__(self, client: Client, progress: Progress, *, ahead: int, shared: bool) -> None:
        """`ahead`: tasks under way for each worker, so that none waits for the client.

        `shared`: the cluster is not ours: workers come and go, and may be other machines.
        """
        self.client = client
        self.call = call()
        self.progress = progress
        self.ahead = ahead
        self.shared = shared
        self.tasks: dict[Future[Report | str], tuple[Part, Task]] = {}
        self.seen: set[tuple[str, str]] = set()
        #: What all tasks have taken, and the simulated time in them.
        self.seconds = self.simulated_s = 0.0
        self.workers = 0
        self.counted = float("-inf")
        self.results: Any = as_completed(  # type: ignore[no-untyped-call]
            loop=client.loop, with_results=True, raise_errors=False
        )

    def step(self, parts: list[Part]) -> None:
        """Takes in what one task reports; raises `RunError` where going on makes no sense."""
        try:
            self._step(parts)
        except RunError:
            raise
        except Exception as error:
            if self.client.status == "running":
                raise
            raise _gone(error) from error

    def _step(self, parts: list[Part]) -> None:
        self._fill(parts)
        if not self.seconds:
            self._show(parts, "" if self.workers else ", waiting for workers")
        future, result = next(self.results)
        part, task = self.tasks.pop(future)
        if isinstance(result, Report):
            self._take(result, part, task)
        elif isinstance(result, str):
            raise RunError(result)
        else:
            self._lost(future, result, part, task)
        self._show(parts)
        # Whoever is told of a part that ends here may take a while.
        self._fill(parts)

    def _fill(self, parts: list[Part]) -> None:
        """Hands out tasks until enough are under way: by rank, and the longest first."""
        self._count_workers()
        most = max(self.ahead * self.workers, LEAST_TASKS if self.shared else 1)
        while len(self.tasks) < most and (waiting := [part for part in parts if part.waiting]):
            part = min(waiting, key=lambda one: (one.rank, -one.next_s))
            self._submit(part, part.waiting.take(part.pace, max(self.workers, 1)))

    def _count_workers(self) -> None:
        now = time.monotonic()
        if now - self.counted >= COUNT_S:
            threads = self.client.nthreads()  # type: ignore[no-untyped-call]
            self.workers = sum(threads.values())
            self.counted = now

    def _submit(self, part: Part, task: Task) -> None:
        key = f"simulate-{uuid.uuid4().hex}"
        version, schema = part.order.version, part.order.schema
        sent = payload(part.order, task)
        future = self.client.submit(
            self.call, version, schema, sent, key=key, pure=False, priority=-part.rank
        )
        self.tasks[future] = part, task
        self.results.add(future)

    def _take(self, report: Report, part: Part, task: Task) -> None:
        if report.done:
            self._visible(report, part.store)
        self.seconds += report.seconds
        self.simulated_s += simulated_s(each(task))
        part.took(task, report.seconds)
        for run in each(task):
            self._ended(part, run, failed=run.id in report.failed)

    def _ended(self, part: Part, run: Run, *, failed: bool) -> None:
        part.ended(run, failed=failed)
        self.progress.add(failed=failed)

    def _show(self, parts: list[Part], note: str = "") -> None:
        usual = self.seconds / self.simulated_s if self.simulated_s else 1.0
        ahead_s = sum(part.left_s * (part.pace or usual) for part in parts)
        self.progress.show(self.seconds, ahead_s, note)

    def _visible(self, report: Report, store: Store) -> None:
        """Whether what a worker writes is to be seen from here."""
        if (report.worker, store.url) in self.seen:
            return
        self.seen.add((report.worker, store.url))
        name = run_file(report.done[0])
        if self.shared and not store.has(name):
            found = f"{report.worker} wrote {store.shown(name)}, and it is not there"
            accepted = "--out takes a directory or a URL that this machine and all workers share"
            raise RunError(f"{found}; {accepted}")

    def _lost(self, future: "Future[Report | str]", error: object, part: Part, task: Task) -> None:
        """A task that has no report: its worker died too often, or the cluster is no more."""
        if isinstance(error, CancelledError) or future.status == "cancelled":
            raise _gone(error)
        error = error[1] if isinstance(error, tuple) else error
        if not isinstance(error, KilledWorker):
            raise RunError(f"a worker cannot take part: {' '.join(f'{error}'.split())}")
        if len(runs := each(task)) > 1:
            for run in runs:
                self._submit(part, [[run]])
            return
        reason = f"it killed its worker {error.allowed_failures + 1} times (out of memory?)"
        write_failed(part.store, part.order, runs[0], reason)
        self._ended(part, runs[0], failed=True)


def _gone(error: object) -> RunError:
    why = " ".join(f"{error}".split())
    return RunError(f"the cluster is gone: its scheduler has ended or cannot be reached ({why})")
