"""Run a sweep of any size, here or on a Dask cluster, and resume it."""

import argparse
import json
import shlex
import sys

from shortlane._command import count
from shortlane.campaign import values
from shortlane.campaign.campaign import Campaign
from shortlane.campaign.results import Failure, Results
from shortlane.errors import Failed, InputError, Usage

__all__ = ["add_arguments", "run"]

#: Failed runs shown for each reason.
SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`shortlane campaign run` and `status`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="run|status")
    go = commands.add_parser(
        "run",
        help="Run what is not done yet",
        description="Run what is not done yet. The same command resumes after any interruption.",
    )
    go.add_argument("sweep", metavar="SWEEP.toml", help="Run this sweep")
    go.add_argument("--out", required=True, metavar="DIR|URL", help="Keep results here")
    go.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the cluster of this Dask scheduler, such as tcp://host:8786",
    )
    go.add_argument(
        "--jobs",
        type=count,
        metavar="N",
        help="Use so many local processes [default: one for each processor]",
    )
    go.add_argument("--limit", type=_time, metavar="TIME", help="End a run that takes longer")
    go.add_argument(
        "--tries",
        type=count,
        default=3,
        metavar="N",
        help="Give up a run that has killed so many workers [default: 3]",
    )
    go.add_argument(
        "--hang",
        type=_time,
        default=60.0,
        metavar="TIME",
        help="Replace a local worker that has not answered for so long [default: 60s]",
    )
    go.add_argument(
        "--again",
        action="store_true",
        help="Go on in a folder with results of another version, or of runs that are no more",
    )
    said = "Print what is done, what failed, what is missing"
    status = commands.add_parser("status", help=said, description=f"{said}.")
    status.add_argument("out", metavar="DIR|URL", help="Read the results that are kept here")
    for command in (go, status):
        command.add_argument("--json", action="store_true", help="Print one JSON document")


def run(arguments: argparse.Namespace) -> None:
    """Carries out the command; raises `Failed` if any run has failed."""
    if arguments.command == "status":
        _report(Results(arguments.out), as_json=arguments.json)
    else:
        _run(arguments)


def _run(arguments: argparse.Namespace) -> None:
    if arguments.cluster is not None and arguments.jobs is not None:
        raise Usage("--jobs is for local processes; with --cluster its workers are taken")
    campaign = Campaign.load(arguments.sweep)
    try:
        outcome = campaign.run(
            arguments.out,
            cluster=arguments.cluster,
            jobs=arguments.jobs,
            progress=True,
            limit_s=arguments.limit,
            tries=arguments.tries,
            hang_s=arguments.hang,
            again=arguments.again,
        )
    except KeyboardInterrupt:
        state = _counts(Results(arguments.out))
        done = f"{state['done']} of {state['runs']} runs are done"
        left = f"{state['missing']} remain"
        raise Failed(f"interrupted; {done}, {left}: the same command continues") from None
    _report(Results(outcome.out), as_json=arguments.json)


def _counts(results: Results) -> dict[str, int]:
    states = results.runs()["state"].to_list()
    counts = {state: states.count(state) for state in ("done", "failed", "missing")}
    return {"runs": len(states), **counts}


def _report(results: Results, *, as_json: bool) -> None:
    counts, failures = _counts(results), results.failures()
    if as_json:
        document = {
            "campaign": results.title,
            "out": results.store.url,
            "version": results.plan.version,
            "schema": results.plan.schema,
            **counts,
            "failures": [vars(failure) for failure in failures],
        }
        print(json.dumps(document, indent=2))
    else:
        print(_text(results, counts, failures))
    if failures:
        sys.stdout.flush()
        raise Failed(
            f"{len(failures)} of {counts['runs']} runs failed; the next start retries them"
        )


def _text(results: Results, counts: dict[str, int], failures: list[Failure]) -> str:
    missing = f", {counts['missing']} missing" if counts["missing"] else ""
    lines = [f"{results.title}: {counts['done']} of {counts['runs']} runs done{missing}"]
    by_reason: dict[str, list[Failure]] = {}
    for failure in failures:
        by_reason.setdefault(failure.error, []).append(failure)
    for reason, failed in by_reason.items():
        number = "1 run" if len(failed) == 1 else f"{len(failed)} runs"
        lines.append(f"failed, {number}: {reason}")
        for failure in failed[:SHOWN]:
            lines += _shown(failure)
        if len(failed) > SHOWN:
            lines.append(f"  and {len(failed) - SHOWN} more, which --json lists")
    return "\n".join(lines)


def _shown(failure: Failure) -> list[str]:
    """Which run it is, and what repeats it from here."""
    setting = [f"{key} = {value}" for key, value in failure.params.items()]
    named = ", ".join([*setting, failure.scheduler, f"seed {failure.seed}"])
    scenario = shlex.quote(failure.scenario)
    command = failure.command.replace(f"{failure.run_id}.toml", scenario)
    return [f"  {named}", f"    {command}"]


def _time(text: str) -> float:
    try:
        seconds = values.quantity(text) if text.endswith(("s", "min", "sec")) else 0.0
    except InputError:
        seconds = 0.0
    if not seconds > 0:
        accepted = "a time above 0 with its unit, such as 20s or 2min"
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted; it takes {accepted}")
    return seconds
