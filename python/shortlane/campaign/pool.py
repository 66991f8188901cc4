"""Workers that several campaigns share, so that none of them waits for another's longest run."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shortlane.campaign.part import Outcome, Part
from shortlane.campaign.progress import Progress, Tell, on_stderr
from shortlane.errors import RunError

if TYPE_CHECKING:
    from shortlane.campaign.drive import Driver

__all__ = ["Pool"]


class Pool:
    """Runs parts of campaigns, to which more may be added whenever one has ended.

    Its workers are started with the first run that is missing, and stay until it is left.
    """

    def __init__(
        self,
        *,
        cluster: str | None = None,
        jobs: int | None = None,
        progress: Tell | bool | None = None,
        tries: int = 3,
        hang_s: float = 60.0,
        ahead: int = 3,
    ) -> None:
        """All as of `Campaign.run`; `ahead` is how many tasks are handed to each worker before.

        A task takes about a second. Whoever thinks long between two parts hands out more.
        """
        self._cluster, self._jobs = cluster, jobs
        self._tries, self._hang_s, self._ahead = tries, hang_s, ahead
        self._progress = Progress(on_stderr() if progress is True else progress or None)
        self._parts: list[Part] = []
        self._open = contextlib.ExitStack()
        self._driver: Driver | None = None

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever stops it, the runs that were done stay done."""
        self._open.close()
        for part in self._parts:
            part.close()

    def add(self, part: Part) -> Part:
        """From now on it is worked at, and `ended` gives it."""
        self._parts.append(part)
        self._progress.expect(len(part.chosen), part.done)
        return part

    def ended(self) -> Iterator[tuple[Part, Outcome]]:
        """Every part, when all its runs are done or have failed, and how they stand.

        Raises `InputError` if no cluster answers, and `RunError` if it cannot go on.
        """
        while self._parts:
            over = [part for part in self._parts if not part.left]
            if not over:
                self._step()
                continue
            self._progress.clear()
            for part in over:
                self._parts.remove(part)
                outcome = part.outcome()
                part.close()
                yield part, outcome

    def _step(self) -> None:
        driver = self._driver = self._driver or self._connected()
        try:
            driver.step(self._parts)
        except RunError as error:
            done = f"{self._progress.done} of {self._progress.runs} runs are done"
            raise RunError(f"{error}; {done}, and the same command continues") from error

    def _connected(self) -> "Driver":
        # Dask takes a while to import.
        from shortlane.campaign.cluster import connect
        from shortlane.campaign.drive import Driver

        workers = connect(self._cluster, self._jobs, hang_s=self._hang_s, tries=self._tries)
        client = self._open.enter_context(workers)
        progress = self._open.enter_context(self._progress)
        return Driver(client, progress, ahead=self._ahead, shared=self._cluster is not None)
