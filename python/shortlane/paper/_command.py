"""Run a paper's experiments again, or those of all papers, with a verdict on each claim."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from shortlane._command import count
from shortlane.errors import InputError, RunError
from shortlane.paper import data, document, index, page, together, words
from shortlane.paper.rerun import Options, Rerun

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `shortlane paper`."""
    known = ", ".join(data.names())
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "paper", nargs="?", help=f"Run this paper: {known}, or a folder with a paper.toml"
    )
    what.add_argument(
        "--all",
        action="store_true",
        help="Run every paper, and write a page with all their verdicts",
    )
    what.add_argument(
        "--index",
        type=Path,
        metavar="DIR",
        help="Write that page again from DIR/*/verdicts.tsv, and run nothing",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="Take fewer and shorter runs, without sensitivity: an indication in a minute or two",
    )
    parser.add_argument(
        "--rows",
        metavar="IDS",
        help="Judge these claims only, such as A-F2,A-F5a, without sensitivity",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="Write page, figures and runs into this folder; what is there of them is not run "
        "again [default: PAPER-results, with --quick PAPER-quick; of --all, papers-results with "
        "a folder for each paper, or papers-quick]",
    )
    parser.add_argument(
        "--no-sensitivity",
        action="store_true",
        help="Run no variants of what the paper leaves open; those that are there are judged",
    )
    parser.add_argument(
        "--judge", action="store_true", help="Judge by the runs that are there, and run nothing"
    )
    parser.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help="Make so many runs at a time [default: one for each processor]",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the cluster of this Dask scheduler, such as tcp://host:8786",
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON document")


def run(arguments: argparse.Namespace) -> None:
    """Carries out the command; raises `RunError` if any run has failed."""
    if arguments.index is not None:
        print(index.write(arguments.index))
    elif arguments.all:
        _run_all(arguments)
    else:
        _run_one(arguments)


def _run_one(arguments: argparse.Namespace) -> None:
    name = Path(arguments.paper).name
    out = _out(arguments, name)
    rerun = Rerun.of(arguments.paper, _options(arguments), out)
    _refuse_unknown(arguments, [rerun])
    [(_, told)] = _pages([rerun], arguments)
    if arguments.json:
        _print_json(document.of(told))
    else:
        print(words.table(told.judged))
        _print_end(arguments, out)
    _raise_for_failed({out: told})


def _run_all(arguments: argparse.Namespace) -> None:
    """The index is there from the first paper on, and grows."""
    out = _out(arguments, "papers")
    options = _options(arguments)
    reruns = [Rerun.of(name, options, out / name) for name in data.names()]
    reruns.sort(key=lambda one: one.paper.rows[0].id)
    _refuse_unknown(arguments, reruns)
    reruns = [one for one in reruns if one.rows]
    if arguments.judge:
        reruns = [one for one in reruns if (one.out / "runs").is_dir()]
        if not reruns:
            raise InputError("--judge: there are no runs yet; it takes an --out with runs")
    told: dict[Path, page.Page] = {}
    for rerun, one in _pages(reruns, arguments):
        told[rerun.out] = one
        index.write(out)
        if not arguments.json:
            print(f"{one.paper.title}\n\n{words.table(one.judged)}\n", flush=True)
    if arguments.json:
        _print_json({"papers": [document.of(told[one.out]) for one in reruns]})
    else:
        _print_end(arguments, out)
    _raise_for_failed(told)


def _pages(reruns: list[Rerun], arguments: argparse.Namespace) -> Iterator[tuple[Rerun, page.Page]]:
    """Each paper with its page, when that is written."""
    for rerun in reruns:
        try:
            rerun.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{rerun.out}: {error.strerror}; --out takes a folder to write to"
            ) from error
    if arguments.judge:
        yield from ((rerun, rerun.judge()) for rerun in reruns)
    else:
        yield from together.run(reruns, _options(arguments))


def _options(arguments: argparse.Namespace) -> Options:
    rows = arguments.rows and tuple(one.strip() for one in arguments.rows.split(","))
    return Options(
        quick=arguments.quick,
        rows=rows,
        sensitivity=not arguments.no_sensitivity,
        jobs=arguments.jobs,
        cluster=arguments.cluster,
    )


def _out(arguments: argparse.Namespace, name: str) -> Path:
    given: Path | None = arguments.out
    return given or Path(f"{name}-{'quick' if arguments.quick else 'results'}")


def _refuse_unknown(arguments: argparse.Namespace, reruns: list[Rerun]) -> None:
    """Refuses `--rows` that none of the papers has."""
    known = [row.id for one in reruns for row in one.paper.rows]
    for wanted in _options(arguments).rows or ():
        if wanted not in known:
            raise InputError(f"--rows {wanted!r} is not accepted; it takes {', '.join(known)}")


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False))


def _print_end(arguments: argparse.Namespace, out: Path) -> None:
    if arguments.quick:
        print("\nQuick: fewer and shorter runs, so the verdicts are indicative.")
    print(f"\nThe page: {out / 'README.md'}")


def _raise_for_failed(told: dict[Path, page.Page]) -> None:
    failed = {
        out: sum(count.failed for count in one.scale.runs.values()) for out, one in told.items()
    }
    where = ", ".join(str(out / "runs") for out, count in failed.items() if count)
    if where:
        raise RunError(f"{sum(failed.values())} runs failed and are in no verdict; see {where}")
