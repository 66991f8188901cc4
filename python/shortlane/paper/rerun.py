"""One paper run again: what is missing is run, all of it judged and drawn, and the page written."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import shortlane
from shortlane import campaign
from shortlane.campaign.plan import NAME as PLAN
from shortlane.errors import InputError
from shortlane.paper import catalog, page
from shortlane.paper.claims import Paper, Row, Variant
from shortlane.paper.drawing import draw_all
from shortlane.paper.evidence import Count
from shortlane.paper.judge import judge_rows, judge_variants
from shortlane.paper.reader import line_with, read_text
from shortlane.paper.runs import Job, Runs, affected, jobs
from shortlane.paper.statistics import Statistic

__all__ = ["Options", "Rerun"]

#: Failed runs of a campaign that are told in full.
SHOWN = 3


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
        whole = not options.quick and options.sensitivity and wanted is None
        variants = paper.variants if whole else ()
        todo = jobs(paper, rows, quick=options.quick, variants=variants)
        for job in todo:
            points = [one for one in paper.points.values() if one.campaign == job.file.stem]
            job.check(points)
        return cls(name, paper, statistics, drawing, rows, variants, tuple(todo), options, out)

    def run(self) -> page.Page:
        """Runs what is missing, judges, and writes the page."""
        counts = {}
        for place, job in enumerate(self.jobs):
            print(f"{place + 1} of {len(self.jobs)}: {job.name}", file=sys.stderr, flush=True)
            counts[job.name] = self._run(job)
        return self._write(self.rows, self.variants, counts)

    def judge(self) -> page.Page:
        """Judges by the runs that are there, and writes the page; runs nothing.

        Raises:
            InputError: there are no runs of any row.

        """
        todo = [job for job in self.jobs if (self.out / "runs" / job.folder).is_dir()]
        names = {job.name for job in todo}
        rows = [row for row in self.rows if self.paper.campaigns_of(row) <= names]
        if not rows:
            raise InputError("--judge: there are no runs yet; it takes an --out with runs")
        variants = [one for one in self.variants if self._is_there(one, rows, todo)]
        counts = {job.name: _stands(job, self.out / "runs" / job.folder) for job in todo}
        return self._write(rows, variants, counts)

    def _run(self, job: Job) -> Count:
        """Runs what is missing of a campaign; gives how it then stands."""
        outcome = job.campaign().run(
            self.out / "runs" / job.folder,
            cluster=self.options.cluster,
            jobs=self.options.jobs,
            progress=True,
        )
        for failure in outcome.failed[:SHOWN]:
            print(f"failed: {failure.error}; again: {failure.command}", file=sys.stderr)
        if len(outcome.failed) > SHOWN:
            rest = f"and {len(outcome.failed) - SHOWN} more"
            print(f"{rest}: shortlane campaign status {outcome.out}", file=sys.stderr)
        return Count(outcome.runs, outcome.done, len(outcome.failed))

    def _is_there(self, variant: Variant, rows: Sequence[Row], there: Sequence[Job]) -> bool:
        """Whether all campaigns that a variant changes for these rows are there."""
        concerned = affected(self.paper, rows, variant)
        names = {name for row in concerned for name in self.paper.campaigns_of(row)}
        changed = {job.folder for job in there if job.variant == variant.id}
        return len(names.intersection(variant.campaigns)) == len(changed)

    def _write(
        self, rows: Sequence[Row], variants: Sequence[Variant], counts: Mapping[str, Count]
    ) -> page.Page:
        print("judging", file=sys.stderr, flush=True)
        drawing = self.drawing
        columns = drawing.COLUMNS if drawing else None
        runs = Runs(self.paper, self.out / "runs", self.statistics, columns)
        judged = judge_rows(runs, rows, self.statistics)
        sensitivity = judge_variants(self.paper, runs, rows, self.statistics, variants)
        drawn = draw_all(drawing.FIGURES, runs, judged, self.out) if drawing else []
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


def _stands(job: Job, folder: Path) -> Count:
    """How a campaign stands that may still be running, or was stopped.

    Raises:
        InputError: what is there is of an older setting of the campaign; names the first such run.

    """
    wanted = {run.id for run in job.campaign().runs()}
    found = campaign.open(folder).runs().select("run_id", "state")
    done = {run: state for run, state in found.iter_rows() if state in ("done", "failed")}
    for run in sorted(done.keys() - wanted):
        file = folder / PLAN
        line = line_with(read_text(file), f'"{run}"')
        raise InputError(
            f"{file}:{line}: run {run!r} is of an older setting of {job.file}; "
            "it takes runs of the present one: run them into another --out"
        )
    states = list(done.values())
    return Count(len(wanted), states.count("done"), states.count("failed"))
