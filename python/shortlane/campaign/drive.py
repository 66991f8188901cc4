"""Hands runs out to workers and takes in what they report, until none is left.

A task that kills its worker again and again is taken apart, and the run that does it is given up as
failed.
"""

import time
import uuid
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from shortlane.campaign.plan import run_file
from shortlane.campaign.points import Run
from shortlane.campaign.progress import Progress
from shortlane.campaign.remote import call, payload
from shortlane.campaign.share import Task, Waiting, each, simulated_s
from shortlane.campaign.store import Store
from shortlane.campaign.work import Order, Report, write_failed
from shortlane.errors import RunError

__all__ = ["Driver"]

#: Tasks under way for each worker, so that none waits for the client; and at least, so that an
#: adaptive cluster sees that there is something to grow for.
TASKS_EACH, LEAST_TASKS = 3, 32
#: How often the workers are counted, in seconds.
COUNT_S = 5.0


class Driver:
    """One campaign on one cluster."""

    def __init__(
        self, client: Client, order: Order, store: Store, progress: Progress, *, shared: bool
    ) -> None:
        """`shared`: the cluster is not ours: workers come and go, and may be other machines."""
        self.client = client
        self.call = call()
        self.order = order
        self.store = store
        self.progress = progress
        self.shared = shared
        self.tasks: dict[Future[Report | str], Task] = {}
        self.seen: set[str] = set()
        #: What tasks have taken, and the simulated time in them.
        self.seconds = self.simulated_s = 0.0
        self.workers = 0
        self.counted = float("-inf")
        self.ended: Any = as_completed(  # type: ignore[no-untyped-call]
            loop=client.loop, with_results=True, raise_errors=False
        )

    def run(self, runs: list[Run]) -> None:
        """Runs all; raises `RunError` where going on makes no sense."""
        try:
            self._run(Waiting(runs))
        except RunError:
            raise
        except Exception as error:
            if self.client.status == "running":
                raise
            raise _gone(error) from error

    def _run(self, waiting: Waiting) -> None:
        self._fill(waiting)
        self.progress.show("" if self.workers else ", waiting for workers")
        for future, result in self.ended:
            task = self.tasks.pop(future)
            if isinstance(result, Report):
                self._take(result, task)
            elif isinstance(result, str):
                raise RunError(result)
            else:
                self._lost(future, result, task)
            self.progress.show()
            self._fill(waiting)

    def _fill(self, waiting: Waiting) -> None:
        """Hands out tasks until enough are under way."""
        self._count_workers()
        most = max(TASKS_EACH * self.workers, LEAST_TASKS if self.shared else 1)
        pace = self.seconds / self.simulated_s if self.simulated_s else 0.0
        while waiting and len(self.tasks) < most:
            self._submit(waiting.take(pace, max(self.workers, 1)))

    def _count_workers(self) -> None:
        now = time.monotonic()
        if now - self.counted >= COUNT_S:
            threads = self.client.nthreads()  # type: ignore[no-untyped-call]
            self.workers = sum(threads.values())
            self.counted = now

    def _submit(self, task: Task) -> None:
        key = f"simulate-{uuid.uuid4().hex}"
        version, schema = self.order.version, self.order.schema
        sent = payload(self.order, task)
        future = self.client.submit(self.call, version, schema, sent, key=key, pure=False)
        self.tasks[future] = task
        self.ended.add(future)

    def _take(self, report: Report, task: Task) -> None:
        if report.done and report.worker not in self.seen:
            self._visible(report)
        self.seconds += report.seconds
        self.simulated_s += simulated_s(each(task))
        for run in each(task):
            failed = run.id in report.failed
            self.progress.add(simulated_s=run.point.duration_s, failed=failed)

    def _visible(self, report: Report) -> None:
        """Whether what a worker writes is to be seen from here."""
        self.seen.add(report.worker)
        name = run_file(report.done[0])
        if self.shared and not self.store.has(name):
            found = f"{report.worker} wrote {self.store.shown(name)}, and it is not there"
            accepted = "--out takes a directory or a URL that this machine and all workers share"
            raise RunError(f"{found}; {accepted}")

    def _lost(self, future: "Future[Report | str]", error: object, task: Task) -> None:
        """A task that has no report: its worker died too often, or the cluster is no more."""
        if isinstance(error, CancelledError) or future.status == "cancelled":
            raise _gone(error)
        error = error[1] if isinstance(error, tuple) else error
        if not isinstance(error, KilledWorker):
            raise RunError(f"a worker cannot take part: {' '.join(f'{error}'.split())}")
        if len(runs := each(task)) > 1:
            for run in runs:
                self._submit([[run]])
            return
        reason = f"it killed its worker {error.allowed_failures + 1} times (out of memory?)"
        write_failed(self.store, self.order, runs[0], reason)
        self.progress.add(simulated_s=runs[0].point.duration_s, failed=True)


def _gone(error: object) -> RunError:
    why = " ".join(f"{error}".split())
    return RunError(f"the cluster is gone: its scheduler has ended or cannot be reached ({why})")
