"""One paper run again: which runs that takes, how they are judged and drawn, and the page."""

import shlex
import sys
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import polars as pl

import shortlane
from shortlane import campaign
from shortlane.campaign.plan import NAME as PLAN
from shortlane.errors import InputError
from shortlane.paper import catalog, looks, page
from shortlane.paper.claims import Paper, Row, Variant
from shortlane.paper.course import Course
from shortlane.paper.drawing import draw_all
from shortlane.paper.evidence import Count
from shortlane.paper.judge import judge_variants
from shortlane.paper.reader import line_with, read_text
from shortlane.paper.runs import Job, Runs, affected, jobs
from shortlane.paper.statistics import Statistic

__all__ = ["Asked", "Options", "Rerun"]


@dataclass(frozen=True)
class Options:
    """How papers are run again."""

    quick: bool = False
    #: Ids of rows; None: all.
    rows: tuple[str, ...] | None = None
    sensitivity: bool = True
    jobs: int | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class Asked:
    """Runs that a paper's way to its page takes next."""

    job: Job
    #: What for.
    words: str
    #: Their ids; None: all of the campaign.
    only: Collection[str] | None


@dataclass(frozen=True)
class Rerun:
    """A paper with what is to be run and judged of it, and the folder for all that."""

    #: As it was asked for: a name, or a folder.
    name: str
    paper: Paper
    statistics: Mapping[str, Statistic]
    drawing: ModuleType | None
    rows: tuple[Row, ...]
    variants: tuple[Variant, ...]
    jobs: tuple[Job, ...]
    options: Options
    out: Path

    @classmethod
    def of(cls, name: str, options: Options, out: Path) -> "Rerun":
        """Reads all that it takes, so that nothing is run of a paper with a malformed file.

        Raises:
            InputError: there is no such paper, or a file of it is missing or malformed.

        """
        paper, statistics, drawing = catalog.known(name)
        wanted = options.rows
        rows = tuple(row for row in paper.rows if wanted is None or row.id in wanted)
        whole = not options.quick and wanted is None
        variants = paper.variants if whole else ()
        todo = jobs(paper, rows, quick=options.quick, variants=variants)
        for job in todo:
            points = [one for one in paper.points.values() if one.campaign == job.file.stem]
            job.check(points)
        return cls(name, paper, statistics, drawing, rows, variants, tuple(todo), options, out)

    def way(self) -> Generator[list[Asked], None, page.Page]:
        """Gives the runs that each look takes, judges when they have ended, and writes the page.

        What it gives follows from results alone, so that it is the same whatever ran beside.
        """
        base = [job for job in self.jobs if not job.variant]
        runs = self._runs()
        course = Course(self.paper, self.rows, self.statistics, base, runs)
        for stage in range(len(looks.PARTS)):
            needs = course.needs(stage)
            look = f"look {stage + 1} of {len(looks.PARTS)}"
            yield [Asked(job, look, needs[job.name]) for job in base if needs.get(job.name)]
            course.look(stage, self._settled(base))
        changed = [job for job in self.jobs if job.variant and self.options.sensitivity]
        yield [Asked(job, "a variant", None) for job in changed]
        there = self._there()
        variants = [one for one in self.variants if self._is_there(one, self.rows, there)]
        return self._write(course, runs, self.rows, variants, there)

    def part(self, asked: Asked, rank: int) -> campaign.Part:
        """What runs that are asked for are to a pool."""
        folder = self.out / "runs" / asked.job.folder
        return asked.job.campaign().part(folder, only=asked.only, rank=rank)

    def _there(self) -> list[Job]:
        """The campaigns that have been begun."""
        return [job for job in self.jobs if (self.out / "runs" / job.folder).is_dir()]

    def judge(self) -> page.Page:
        """Judges by the runs that are there, and writes the page; runs nothing.

        Raises:
            InputError: there are no runs of any row.

        """
        todo = self._there()
        names = {job.name for job in todo}
        rows = [row for row in self.rows if self.paper.campaigns_of(row) <= names]
        if not rows:
            raise InputError("--judge: there are no runs yet; it takes an --out with runs")
        variants = [one for one in self.variants if self._is_there(one, rows, todo)]
        for job in todo:
            _refuse_older(job, self.out / "runs" / job.folder)
        base = [job for job in todo if not job.variant]
        runs = self._runs()
        course = Course(self.paper, rows, self.statistics, base, runs)
        settled = self._settled(base)
        for stage in range(len(looks.PARTS)):
            course.needs(stage)
            course.look(stage, settled)
        return self._write(course, runs, rows, variants, todo)

    def _runs(self) -> Runs:
        columns = self.drawing.COLUMNS if self.drawing else None
        return Runs(self.paper, self.out / "runs", self.statistics, columns)

    def _states(self, job: Job) -> dict[str, str]:
        """Which runs of a campaign are done, and which have failed."""
        found = campaign.open(self.out / "runs" / job.folder).runs().select("run_id", "state")
        return {run: state for run, state in found.iter_rows() if state in ("done", "failed")}

    def _settled(self, base: Sequence[Job]) -> dict[str, set[str]]:
        return {job.name: set(self._states(job)) for job in base}

    def _is_there(self, variant: Variant, rows: Sequence[Row], there: Sequence[Job]) -> bool:
        """Whether all campaigns that a variant changes for these rows are there."""
        concerned = affected(self.paper, rows, variant)
        names = {name for row in concerned for name in self.paper.campaigns_of(row)}
        changed = {job.folder for job in there if job.variant == variant.id}
        return len(names.intersection(variant.campaigns)) == len(changed)

    def _write(
        self,
        course: Course,
        runs: Runs,
        rows: Sequence[Row],
        variants: Sequence[Variant],
        done: Sequence[Job],
    ) -> page.Page:
        print(f"judging: {self.paper.title}", file=sys.stderr, flush=True)
        judged = course.judged()
        sensitivity = judge_variants(self.paper, runs, rows, self.statistics, variants)
        drawing = self.drawing
        figures = drawing.FIGURES if drawing else []
        drawn = draw_all(figures, runs, judged, self.out, quick=self.options.quick)
        states = {job.name: self._states(job) for job in done}
        counts = course.counts(states) | {
            job.name: _count(job, states[job.name]) for job in done if job.variant
        }
        scale = page.Scale(self.options.quick, shortlane.__version__, counts, self._again())
        told = page.Page(self.paper, judged, sensitivity, scale, drawn)
        page.write(self.out, told)
        return told

    def _again(self) -> str:
        """The command that gives the same page."""
        words = ["shortlane", "paper", self.name]
        words += ["--quick"] if self.options.quick else []
        words += ["--rows", ",".join(row.id for row in self.rows)] if self.options.rows else []
        words += [] if self.options.sensitivity else ["--no-sensitivity"]
        return shlex.join(words)


def _count(job: Job, states: Mapping[str, str]) -> Count:
    """How a campaign stands that has all its runs from the start."""
    told = [states.get(run.id) for run in job.campaign().runs()]
    return Count(len(told), told.count("done"), told.count("failed"))


def _refuse_older(job: Job, folder: Path) -> None:
    """Refuses runs of an older setting of a campaign; names the first such run."""
    wanted = {run.id for run in job.campaign().runs()}
    found = campaign.open(folder).runs().filter(pl.col("state") != "missing")["run_id"]
    for run in sorted(set(found) - wanted):
        file = folder / PLAN
        line = line_with(read_text(file), f'"{run}"')
        raise InputError(
            f"{file}:{line}: run {run!r} is of an older setting of {job.file}; "
            "it takes runs of the present one: run them into another --out"
        )
