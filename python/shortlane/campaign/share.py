"""Shares runs out among tasks: in which order, and how many to a task.

What a simulation needs once per scenario (times on an idle link, reading it) is a few
milliseconds, and so is a task: short runs of a point go together, several seeds and all schedulers
in one call. Long runs go one seed at a time through all points, so that what is there early
compares all of them.
"""

from collections import deque
from collections.abc import Iterable

from shortlane.campaign.points import Run

__all__ = ["Group", "Task", "Waiting", "each", "simulated_s"]

#: Runs of one point: some seeds, each with the same schedulers, seed after seed.
Group = list[Run]
Task = list[Group]

#: What a task should take, in seconds.
TASK_S = 1.0
#: Most runs in a task: what is lost with a worker, and what results are held in memory at once.
MOST_RUNS = 64


class Waiting:
    """Runs that are not under way yet."""

    def __init__(self, runs: Iterable[Run]) -> None:
        """`runs` in the order in which they should be started."""
        points: dict[str, dict[int, Group]] = {}
        for run in runs:
            points.setdefault(run.point.id, {}).setdefault(run.seed, []).append(run)
        self._points = deque(deque(seeds.values()) for seeds in points.values())
        self._left = sum(len(group) for seeds in self._points for group in seeds)

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return self._left > 0

    @property
    def next_s(self) -> float:
        """Simulated time of the least that `take` gives, in seconds."""
        return simulated_s(self._points[0][0])

    def take(self, pace: float, workers: int) -> Task:
        """The next task; `pace`: seconds that a simulated second takes, 0 if not known yet.

        It takes about a second, but never so much that other workers are left with nothing.
        """
        most = min(MOST_RUNS, self._left / (2 * workers))
        task = [self._next()]
        while self._left and pace:
            after = self._points[0][0]
            runs = each(task) + after
            if len(runs) > most or simulated_s(runs) * pace > TASK_S:
                break
            if _together(task[-1], after):
                task[-1] = task[-1] + self._next()
            else:
                task.append(self._next())
        if len(self._points) > 1:
            self._points.rotate(-1)
        return task

    def _next(self) -> Group:
        point = self._points[0]
        group = point.popleft()
        if not point:
            self._points.popleft()
        self._left -= len(group)
        return group


def _together(group: Group, after: Group) -> bool:
    """Whether one simulation has the runs of both: one point, each seed with all schedulers."""
    first = [run.scheduler for run in group if run.seed == group[0].seed]
    return group[0].point.id == after[0].point.id and first == [run.scheduler for run in after]


def each(task: Task) -> list[Run]:
    """The runs of a task."""
    return [run for group in task for run in group]


def simulated_s(runs: Iterable[Run]) -> float:
    """Simulated time of all together, in seconds."""
    return sum(run.point.duration_s for run in runs)
