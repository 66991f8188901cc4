"""A paper's rows on their way to verdicts: look by look, until each is decided or given up.

What a look asks for follows from the looks before it alone. So whatever stops the runs, the same
looks are taken again from what is there, and it goes on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from shortlane.paper import looks
from shortlane.paper.claims import Check, Paper, Row
from shortlane.paper.evidence import Count
from shortlane.paper.judge import Judged, assembled
from shortlane.paper.runs import Job, Runs
from shortlane.paper.statistics import Statistic
from shortlane.paper.verdict import Measured, Outcome, measure

__all__ = ["Course"]


@dataclass
class _Way:
    """How far a row has come."""

    row: Row
    #: Its checks at the last look at each, by their place.
    seen: dict[int, Measured] = field(default_factory=dict)
    chances: dict[int, tuple[float, float]] = field(default_factory=dict)
    #: All its seeds would hardly decide it.
    hopeless: bool = False
    #: Runs that it takes are not there.
    waits: bool = False

    @cached_property
    def inequalities(self) -> int:
        """Its checks that have an interval."""
        return sum(not check.hard for check in self.row.checks)

    @property
    def open(self) -> list[int]:
        """The checks that a look is for; none of a row that is decided, given up or waits."""
        failed = any(one.outcome is Outcome.NOT_REPRODUCED for one in self.seen.values())
        if self.hopeless or self.waits or failed:
            return []
        return [
            place
            for place, check in enumerate(self.row.checks)
            if not check.hard
            and (place not in self.seen or self.seen[place].outcome is Outcome.INCONCLUSIVE)
        ]


class Course:
    """The rows of a paper, and the runs that each look at them takes."""

    def __init__(
        self,
        paper: Paper,
        rows: Sequence[Row],
        statistics: Mapping[str, Statistic],
        jobs: Iterable[Job],
        runs: Runs,
    ) -> None:
        """`jobs` are campaigns without variants, `runs` reads their results."""
        self._paper = paper
        self._statistics = statistics
        self._runs = runs
        self._campaigns = {job.name: job.campaign() for job in jobs}
        self._declared = {name: one.sweep.seeds for name, one in self._campaigns.items()}
        self._ways = [_Way(row) for row in rows]
        checks = (check for row in rows for check in row.checks)
        self._judging = {name for check in checks for name in self._campaigns_of(check)}
        #: All runs that looks have asked for, by campaign.
        self._wanted: dict[str, set[str]] = {}
        #: Those that are done, or have failed.
        self._there: Mapping[str, Collection[str]] = {}

    def needs(self, stage: int) -> dict[str, set[str]]:
        """The ids of the runs that a look takes, by campaign; none if no row needs more for it.

        The first takes all points and schedulers, for tables and figures, and all seeds of what no
        check is judged by. Later ones take the points and schedulers of open checks.
        """
        found: dict[str, set[str]] = {}
        if stage == 0:
            for name, one in self._campaigns.items():
                seeds = self._seeds(stage)[name] if name in self._judging else self._declared[name]
                found[name] = {run.id for run in one.runs() if run.seed in seeds}
        else:
            for way in self._ways:
                for place in way.open:
                    check = way.row.checks[place]
                    if not looks.share_of(stage, self._most(check)):
                        continue
                    for name, ids in self._runs_of(check, stage).items():
                        found.setdefault(name, set()).update(ids)
        for name, ids in found.items():
            self._wanted.setdefault(name, set()).update(ids)
        return found

    def look(self, stage: int, there: Mapping[str, Collection[str]]) -> None:
        """Measures what is open by the runs of a look; `there` are those done, or failed.

        A row whose runs are not all there waits, and is what it was at the look before.
        """
        self._there = there
        self._runs.keep(())
        for way in self._ways:
            open_checks = [way.row.checks[place] for place in way.open]
            way.waits |= not all(self._is_there(check, stage) for check in open_checks)
            for place in way.open:
                self._look_at(way, place, stage)
            left = [way.chances[place] for place in way.open]
            if stage >= looks.HOPE_FROM and self._more(way, stage):
                way.hopeless = looks.hope(left) < looks.LEAST_HOPE

    def _more(self, way: _Way, stage: int) -> bool:
        """Whether there are seeds left for what is open of a row."""
        declared = [self._most(way.row.checks[place]) for place in way.open]
        return any(looks.seeds_at(stage, most) < most for most in declared)

    def _is_there(self, check: Check, stage: int) -> bool:
        """Whether the runs that a check takes at a look are."""
        needed = self._runs_of(check, stage)
        return all(ids <= set(self._there.get(name, ())) for name, ids in needed.items())

    def _look_at(self, way: _Way, place: int, stage: int) -> None:
        check = way.row.checks[place]
        most = self._most(check)
        share = looks.share_of(stage, most)
        if share:
            statistic = self._statistics[check.statistic]
            tables = self._runs.at(check.point, seeds=self._seeds(stage))
            sample = statistic(tables, **check.arguments)
            of = way.inequalities
            way.seen[place] = measure(check, statistic, sample, of, share)
            way.chances[place] = looks.chances(
                sample, statistic, check.bounds, inequalities=of, stage=stage, most=most
            )

    def judged(self) -> list[Judged]:
        """The verdicts as they stand. Before the first look nothing is decided."""
        found = []
        for place, way in enumerate(self._ways):
            row = way.row

            def measured(check: Check, of: int, judged: bool = bool(row.checks)) -> Measured:
                return self._measured(check, of, judged)

            checks = [
                way.seen.get(at) or measured(check, way.inequalities)
                for at, check in enumerate(row.checks)
            ]
            most = max(map(self._most, row.checks), default=0)
            found.append(Judged(row, assembled(row, checks, measured), most, way.hopeless))
            later = (check for other in self._ways[place + 1 :] for check in other.row.measured)
            self._runs.keep(point for check in later for point in self._paper.points_of(check))
        return found

    def counts(self, states: Mapping[str, Mapping[str, str]]) -> dict[str, Count]:
        """How the campaigns stand, of the runs that looks have asked for."""
        found = {}
        for name, ids in self._wanted.items():
            told = [states.get(name, {}).get(one, "missing") for one in ids]
            found[name] = Count(len(ids), told.count("done"), told.count("failed"))
        return found

    def _measured(self, check: Check, of: int, judged: bool) -> Measured:
        """A value that no look has measured: by all seeds that it has complete.

        `judged`: its row has checks, so that its seeds may have ended early.
        """
        statistic = self._statistics[check.statistic]

        def of_seeds(seeds: Mapping[str, Collection[int]] | None, share: float) -> Measured:
            tables = self._runs.at(check.point, seeds=seeds)
            return measure(check, statistic, statistic(tables, **check.arguments), of, share)

        if check.hard or not judged:
            return of_seeds(None, 1.0)
        most = self._most(check)
        for stage in reversed(range(len(looks.PARTS))):
            share = looks.share_of(stage, most)
            if share and self._is_there(check, stage):
                return of_seeds(self._seeds(stage), share)
        first = of_seeds(None, looks.share_of(0, most))
        return replace(first, outcome=Outcome.INCONCLUSIVE)

    def _runs_of(self, check: Check, stage: int) -> dict[str, set[str]]:
        """The runs that a check takes at a look: those of the schedulers that it names, if any."""
        labels = self._paper.labels()
        named = _texts(check.arguments.values())
        found: dict[str, set[str]] = {}
        for point in map(self._paper.points.__getitem__, self._paper.points_of(check)):
            campaign = self._campaigns[point.campaign]
            known = {labels.get(spec, spec) for spec in campaign.sweep.schedulers}
            read = named & known or known
            seeds = self._seeds(stage)[point.campaign]
            found.setdefault(point.campaign, set()).update(
                run.id
                for run in campaign.runs()
                if run.seed in seeds
                and labels.get(run.scheduler, run.scheduler) in read
                and point.at.items() <= run.point.params.items()
            )
        return found

    def _campaigns_of(self, check: Check) -> set[str]:
        return {self._paper.points[point].campaign for point in self._paper.points_of(check)}

    def _most(self, check: Check) -> int:
        """How many seeds are declared of what a check is measured by."""
        return max(len(self._declared[name]) for name in self._campaigns_of(check))

    def _seeds(self, stage: int) -> dict[str, set[int]]:
        """The seeds of every campaign at a look."""
        return {
            name: set(seeds[: looks.seeds_at(stage, len(seeds))])
            for name, seeds in self._declared.items()
        }


def _texts(values: Iterable[object]) -> set[str]:
    """All texts among these, and in lists among them."""
    listed = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return {one for one in listed if isinstance(one, str)}
