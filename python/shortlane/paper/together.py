"""Papers run again together, on workers that all their campaigns share.

A look ends with its longest run, and drawing a page takes seconds: meanwhile workers do what other
papers have asked for. A paper that comes first has what it asks for done first, so that its page is
there before those of the others.
"""

import sys
from collections.abc import Iterator, Sequence

from shortlane import campaign
from shortlane.paper import page
from shortlane.paper.rerun import Asked, Options, Rerun

__all__ = ["run"]

#: Failed runs of a campaign that are told in full.
SHOWN = 3
#: Tasks handed out for each worker: they last while a page is judged and drawn.
AHEAD = 16


def run(reruns: Sequence[Rerun], options: Options) -> Iterator[tuple[Rerun, page.Page]]:
    """Runs what is missing of papers, and gives each when its page is written."""
    with campaign.Pool(
        cluster=options.cluster, jobs=options.jobs, progress=True, ahead=AHEAD
    ) as pool:
        ways = [_Way(rerun, rank, pool) for rank, rerun in enumerate(reruns)]
        for way in ways:
            if told := way.go_on():
                yield way.rerun, told
        for part, outcome in pool.ended():
            _tell_failed(outcome)
            way = ways[part.rank]
            way.parts.remove(part)
            if told := way.go_on():
                yield way.rerun, told


class _Way:
    """A paper on its way to its page."""

    def __init__(self, rerun: Rerun, rank: int, pool: campaign.Pool) -> None:
        self.rerun, self.rank, self.pool = rerun, rank, pool
        self.steps = rerun.way()
        #: What is run for its next step.
        self.parts: list[campaign.Part] = []

    def go_on(self) -> page.Page | None:
        """Asks for more when nothing is run any more; its page, if that was all."""
        try:
            while not self.parts:
                self.parts = [self._added(asked) for asked in next(self.steps)]
        except StopIteration as end:
            told: page.Page = end.value
            return told
        return None

    def _added(self, asked: Asked) -> campaign.Part:
        part = self.rerun.part(asked, self.rank)
        if part.left:
            what = f"{asked.words}: {asked.job.folder}, {part.left} runs"
            print(f"{self.rerun.paper.id}, {what}", file=sys.stderr, flush=True)
        return self.pool.add(part)


def _tell_failed(outcome: campaign.Outcome) -> None:
    for failure in outcome.failed[:SHOWN]:
        print(f"failed: {failure.error}; again: {failure.command}", file=sys.stderr)
    if len(outcome.failed) > SHOWN:
        rest = f"and {len(outcome.failed) - SHOWN} more"
        print(f"{rest}: shortlane campaign status {outcome.out}", file=sys.stderr)
