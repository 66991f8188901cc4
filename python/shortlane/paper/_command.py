"""Runs a paper's simulations again and gives a verdict on each of its claims."""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import shortlane
from shortlane import campaign
from shortlane.errors import InputError, RunError
from shortlane.paper import catalog, data, page, words
from shortlane.paper.claims import Paper, Row, Variant
from shortlane.paper.drawing import draw_all
from shortlane.paper.judge import judge_rows, judge_variants
from shortlane.paper.runs import Job, Runs, affected, jobs

__all__ = ["add_arguments", "run"]


#: Failed runs of a campaign that are told in full.
SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `shortlane paper`."""
    known = ", ".join(data.names())
    parser.add_argument("paper", help=f"one of: {known}; or a folder with a paper.toml")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer and shorter runs, without sensitivity: an indication in about two minutes",
    )
    parser.add_argument(
        "--rows", metavar="IDS", help="only these claims, such as A-F2,A-F5a, without sensitivity"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the folder for page, figures and runs; what is there of them is not run again "
        "(default: PAPER-results, with --quick PAPER-quick)",
    )
    parser.add_argument(
        "--no-sensitivity", action="store_true", help="do not vary what the paper leaves open"
    )
    parser.add_argument(
        "--judge", action="store_true", help="run nothing: judge by the runs that are there"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: all cores)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask cluster: tcp://host:port")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def run(arguments: argparse.Namespace) -> None:
    """Runs what is missing, judges, draws, writes the page, and prints the verdicts."""
    paper, statistics, drawing = catalog.known(arguments.paper)
    rows = _chosen(paper, arguments.rows)
    without = arguments.quick or arguments.no_sensitivity or arguments.rows is not None
    variants = () if without else paper.variants
    name = f"{paper.id}-{'quick' if arguments.quick else 'results'}"
    out: Path = arguments.out or Path(name)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}; --out takes a folder to write to") from error

    todo = jobs(paper, rows, quick=arguments.quick, variants=variants)
    if arguments.judge:
        todo = [job for job in todo if (out / "runs" / job.folder).is_dir()]
        rows = _with_runs(paper, rows, todo)
        variants = tuple(one for one in variants if _is_there(paper, rows, one, todo))
        counts = {job.name: _stands(out / "runs" / job.folder) for job in todo}
    else:
        counts = _run_all(todo, out / "runs", arguments)
    print("judging", file=sys.stderr, flush=True)
    runs = Runs(paper, out / "runs", statistics, drawing.COLUMNS if drawing else None)
    judged = judge_rows(runs, rows, statistics)
    sensitivity = judge_variants(paper, runs, rows, statistics, variants)
    drawn = draw_all(drawing.FIGURES, runs, rows, out) if drawing else []
    scale = page.Scale(arguments.quick, shortlane.__version__, counts, _again(arguments))
    told = page.Page(paper, judged, sensitivity, scale, drawn)
    page.write(out, told)
    if arguments.json:
        print(json.dumps(page.as_document(told), indent=1, ensure_ascii=False))
    else:
        print(words.table(judged))
        if arguments.quick:
            print("\nQuick: fewer and shorter runs, so the verdicts are indicative.")
        print(f"\nThe page: {out / 'README.md'}")
    failed = sum(campaign.failed for campaign in counts.values())
    if failed:
        raise RunError(f"{failed} runs failed and are in no verdict; see {out / 'runs'}")


def _chosen(paper: Paper, wanted: str | None) -> list[Row]:
    if wanted is None:
        return list(paper.rows)
    by_id = {row.id: row for row in paper.rows}
    ids = [one.strip() for one in wanted.split(",")]
    for one in ids:
        if one not in by_id:
            raise InputError(f"--rows {one!r} is not accepted; it takes {', '.join(by_id)}")
    return [row for row in paper.rows if row.id in ids]


def _run_all(
    todo: Sequence[Job], runs: Path, arguments: argparse.Namespace
) -> dict[str, page.Count]:
    """Runs what is missing of every campaign; gives how each then stands."""
    counts = {}
    for place, job in enumerate(todo):
        print(f"{place + 1} of {len(todo)}: {job.name}", file=sys.stderr, flush=True)
        outcome = campaign.Campaign.load(job.definition).run(
            runs / job.folder, cluster=arguments.cluster, jobs=arguments.jobs, progress=True
        )
        for failure in outcome.failed[:SHOWN]:
            print(f"failed: {failure.error}; again: {failure.command}", file=sys.stderr)
        if len(outcome.failed) > SHOWN:
            rest = f"and {len(outcome.failed) - SHOWN} more"
            print(f"{rest}: shortlane campaign status {outcome.out}", file=sys.stderr)
        counts[job.name] = page.Count(outcome.runs, outcome.done, len(outcome.failed))
    return counts


def _stands(folder: Path) -> page.Count:
    """How a campaign stands that may still be running."""
    states = campaign.open(folder).runs()["state"].to_list()
    return page.Count(len(states), states.count("done"), states.count("failed"))


def _with_runs(paper: Paper, rows: Sequence[Row], there: Sequence[Job]) -> list[Row]:
    """The rows all of whose campaigns are there."""
    names = {job.name for job in there}
    found = [row for row in rows if paper.campaigns_of(row) <= names]
    if not found:
        raise InputError("--judge: there are no runs yet; it takes an --out with runs")
    return found


def _is_there(paper: Paper, rows: Sequence[Row], variant: Variant, there: Sequence[Job]) -> bool:
    """Whether all campaigns that a variant changes for these rows are there."""
    names = {name for row in affected(paper, rows, variant) for name in paper.campaigns_of(row)}
    changed = {job.folder for job in there if job.variant == variant.id}
    return len(names.intersection(variant.campaigns)) == len(changed)


def _again(arguments: argparse.Namespace) -> str:
    """The command that gives the same page."""
    words = ["shortlane", "paper", arguments.paper]
    words += ["--quick"] if arguments.quick else []
    words += ["--rows", arguments.rows] if arguments.rows else []
    words += ["--no-sensitivity"] if arguments.no_sensitivity else []
    return shlex.join(words)
