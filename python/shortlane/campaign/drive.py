"""Hands runs out to workers and takes in what they report, until none is left.

Short runs travel several to a task, so that a task takes about a second whatever a run takes: Dask
needs about two milliseconds for each. A task that kills its worker again and again is taken apart, and
the run that does it is given up as failed.
"""

import time
import uuid
from collections import deque
from collections.abc import Iterable
from concurrent.futures import CancelledError
from itertools import groupby
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from shortlane.campaign.points import Run
from shortlane.campaign.progress import Progress
from shortlane.campaign.store import Store
from shortlane.campaign.plan import run_file
from shortlane.campaign.work import Order, Report, carry_out, write_failed
from shortlane.errors import RunError

__all__ = ["Driver"]

#: What a task should take, in seconds.
TASK_S = 1.0
#: Most runs in a task.
MOST_RUNS = 256
#: Tasks under way for each worker, so that none waits for the client; and at least, so that an
#: adaptive cluster sees that there is something to grow for.
TASKS_EACH, LEAST_TASKS = 3, 32
#: How often the workers are counted, in seconds.
COUNT_S = 5.0

Task = list[list[Run]]


class Driver:
    """One campaign on one cluster."""

    def __init__(
        self, client: Client, order: Order, store: Store, progress: Progress, *, shared: bool
    ) -> None:
        """`shared`: the cluster is not ours: workers come and go, and may be other machines."""
        self.client = client
        self.order = order
        self.store = store
        self.progress = progress
        self.shared = shared
        self.failed: dict[str, str] = {}
        self.tasks: dict[Future, Task] = {}
        self.seen: set[str] = set()
        self.seconds = 0.0
        self.simulated_s = 0.0
        self.workers = 1
        self.counted = float("-inf")

    def run(self, runs: list[Run]) -> None:
        """Runs all; raises `RunError` where going on makes no sense. What is done is in the store."""
        key = _point_and_seed
        waiting = deque(list(group) for _, group in groupby(runs, key))
        ended = as_completed(loop=self.client.loop, with_results=True, raise_errors=False)
        self._fill(ended, waiting)
        for future, result in ended:
            task = self.tasks.pop(future)
            if isinstance(result, Report):
                self._take(result, task)
            else:
                self._lost(future, result, task, ended)
            self.progress.show()
            self._fill(ended, waiting)

    def _fill(self, ended: Any, waiting: deque[list[Run]]) -> None:
        """Hands out tasks until enough are under way."""
        self._count_workers()
        most = TASKS_EACH * self.workers
        if self.shared:
            most = max(most, LEAST_TASKS)
        while waiting and len(self.tasks) < most:
            self._submit(ended, self._next(waiting))

    def _count_workers(self) -> None:
        now = time.monotonic()
        if now - self.counted >= COUNT_S:
            self.workers = max(1, sum(self.client.nthreads().values()))
            self.counted = now

    def _next(self, waiting: deque[list[Run]]) -> Task:
        """Groups for about a second, by what runs have taken, but not so many that others idle."""
        task = [waiting.popleft()]
        if not self.simulated_s:
            return task
        pace = self.seconds / self.simulated_s
        share = len(waiting) / (2 * self.workers)
        expected = _simulated_s(task) * pace
        while waiting and len(task) < share and sum(map(len, task)) < MOST_RUNS:
            expected += _simulated_s([waiting[0]]) * pace
            if expected > TASK_S:
                break
            task.append(waiting.popleft())
        return task

    def _submit(self, ended: Any, task: Task) -> None:
        key = f"simulate-{uuid.uuid4().hex}"
        future = self.client.submit(carry_out, self.order, task, key=key, pure=False)
        self.tasks[future] = task
        ended.add(future)

    def _take(self, report: Report, task: Task) -> None:
        if report.refused is not None:
            raise RunError(report.refused)
        if report.done and report.worker not in self.seen:
            self._visible(report)
        self.seconds += report.seconds
        for run in _each(task):
            self.simulated_s += run.point.duration_s
            failed = run.id in report.failed
            self.progress.add(simulated_s=run.point.duration_s, failed=failed)
        self.failed |= report.failed

    def _visible(self, report: Report) -> None:
        """Whether what a worker writes is to be seen from here."""
        self.seen.add(report.worker)
        name = run_file(report.done[0])
        if self.shared and not self.store.has(name):
            found = f"worker {report.worker} has written {self.store.path(name)}, and it is not there"
            accepted = "--out takes a directory or a URL that this machine and all workers share"
            raise RunError(f"{found}; {accepted}")

    def _lost(self, future: Future, error: object, task: Task, ended: Any) -> None:
        """A task that has no report: its worker died too often, or the cluster is no more."""
        if isinstance(error, CancelledError) or future.cancelled():
            raise RunError("the cluster is gone: its scheduler has ended or cannot be reached")
        error = error[1] if isinstance(error, tuple) else error
        if not isinstance(error, KilledWorker):
            raise RunError(f"a worker cannot take part: {' '.join(f'{error}'.split())}")
        if len(runs := _each(task)) > 1:
            for run in runs:
                self._submit(ended, [[run]])
            return
        reason = f"it killed its worker {error.allowed_failures + 1} times (out of memory?)"
        write_failed(self.store, self.order, runs[0], reason)
        self.failed[runs[0].id] = reason
        self.progress.add(simulated_s=runs[0].point.duration_s, failed=True)


def _each(task: Task) -> list[Run]:
    return [run for group in task for run in group]


def _simulated_s(groups: Iterable[list[Run]]) -> float:
    return sum(run.point.duration_s for group in groups for run in group)


def _point_and_seed(run: Run) -> tuple[str, int]:
    return run.point.id, run.seed
