"""Runs: a scenario through the simulator, a capture through each discipline."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shortlane import _native
from shortlane._section import Scheduler
from shortlane._toml import scenario_text
from shortlane.errors import InputError, RunError
from shortlane.results import Results, of_native, schema
from shortlane.scenario import Scenario

__all__ = ["Progress", "replay", "simulate"]

#: Told how far things are: a part between 0 and 1, and a few words. True draws a bar.
Progress = Callable[[float, str], object] | bool | None


def simulate(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    schedulers: Iterable[Scheduler] | None = None,
    seeds: str | int | Iterable[int] | None = None,
    duration: str | float | None = None,
    *,
    jobs: int | None = None,
    events: bool = False,
    tables: Iterable[str] | None = None,
    progress: Progress = None,
) -> Results:
    """Run a scenario through the simulator: every scheduler with every seed.

    `scenario` is the name of a ready scenario, the path of a TOML file, a mapping with the keys of
    such a file, or a `shortlane.Scenario`. The next three replace what it has: `schedulers` are
    names with parameters (`"efd:threshold=30packets"`) or objects of `shortlane.disciplines`,
    `seeds` are `"1..10"`, `7` or a list, `duration` is a text with its unit or seconds.

    `jobs` runs go on at the same time, one for each processor if it is None. With `events` there is
    a row per packet at the first bottleneck, of the first seed. `tables` names the tables to keep,
    where others would only take memory. `progress` is called now and then with a part between 0
    and 1 and a few words; what it raises ends the run. True draws a bar on standard error.

    Raises `ScenarioError` for a scenario and `InputError` for arguments that are not accepted, and
    `RunError`, with what there is as its `results`, if a run could not go on. Ctrl-C raises
    `KeyboardInterrupt` once the runs have stopped. Other Python threads run meanwhile.
    """
    finished = _native.simulate(
        _source(scenario),
        schedulers=_schedulers(schedulers),
        seeds=_seeds(seeds),
        duration=_time(duration),
        jobs=_jobs(jobs),
        tables=_tables(tables, events),
        progress=_progress(progress),
    )
    return _whole(finished)


def replay(
    capture: str | os.PathLike[str],
    rate: str,
    limit: str | int = "300packets",
    schedulers: Iterable[Scheduler] | None = None,
    *,
    seed: int = 1,
    idle: str | float = "60s",
    events: bool = False,
    tables: Iterable[str] | None = None,
    progress: Progress = None,
) -> Results:
    """Send a capture through each scheduler, open loop: packets arrive when they were captured.

    `capture` is a pcap or pcapng file, also gzipped; it is read once from front to back. `rate` is
    that of the link, `limit` the queue limit of every scheduler that is not given one (a number is
    packets). A flow that is silent for longer than `idle` has ended. With `events` there is a row
    per packet and scheduler. The rest is as in `simulate`; `results.warnings` has what should be
    known before the figures are believed.

    Raises `InputError` for a capture or arguments that are not accepted.
    """
    if not 0 <= seed < 1 << 64:
        raise InputError(f"seed {seed} is not accepted: it takes a number from 0 to 2^64 - 1")
    capture, idle = os.fsdecode(capture), _time(idle) or ""
    limit = f"{limit}packets" if isinstance(limit, int) else limit
    named = _schedulers(schedulers) or []
    command = ["shortlane", "replay", capture, "--rate", rate, "--limit", limit]
    command += [word for scheduler in named for word in ("--scheduler", scheduler)]
    finished = _native.replay(
        capture,
        rate=rate,
        limit=limit,
        schedulers=named,
        seed=seed,
        idle=idle,
        tables=_tables(tables, events),
        progress=_progress(progress),
        command=[*command, "--seed", str(seed), "--idle", idle],
    )
    return _whole(finished)


def _source(scenario: Any) -> str | tuple[str, str]:
    if isinstance(scenario, Scenario):
        scenario = scenario.to_dict()
    if isinstance(scenario, Mapping):
        return ("scenario", scenario_text(scenario))
    return os.fsdecode(scenario)


def _whole(finished: _native.Finished) -> Results:
    results = of_native(finished)
    if finished.ended_early is not None:
        raise RunError(finished.ended_early, results)
    return results


def _schedulers(schedulers: Iterable[Scheduler] | None) -> list[str] | None:
    if schedulers is None:
        return None
    # One name is a likely slip, and an iterable of letters.
    named = [schedulers] if isinstance(schedulers, str) else list(schedulers)
    if not named:
        raise InputError("schedulers is empty; it takes at least one, or None for the scenario's")
    return [str(scheduler) for scheduler in named]


def _seeds(seeds: str | int | Iterable[int] | None) -> str | None:
    if seeds is None or isinstance(seeds, str):
        return seeds
    return ",".join(str(seed) for seed in ([seeds] if isinstance(seeds, int) else seeds))


def _time(time: str | float | None) -> str | None:
    if time is None or isinstance(time, str):
        return time
    seconds = float(time)
    is_time = 0 <= seconds < 1e10
    return f"{round(seconds * 1e9)}ns" if is_time else str(time)


def _jobs(jobs: int | None) -> int | None:
    if jobs is not None and not 1 <= jobs <= 1024:
        raise InputError(f"jobs {jobs} is not accepted: it takes a number from 1 to 1024")
    return jobs


def _tables(wanted: Iterable[str] | None, events: bool) -> list[str]:
    every = [name for name in schema() if name != "events"]
    tables = every if wanted is None else list(wanted)
    for name in tables:
        if name not in every:
            takes = ", ".join(every)
            raise InputError(f"tables: {name!r} is not accepted: it takes {takes}")
    return [*tables, "events"] if events else tables


def _progress(progress: Progress) -> Callable[[float, str], object] | None:
    if progress is True:
        return _bar
    return progress or None


def _bar(part: float, text: str) -> None:
    """Draw a bar on standard error, where it stays on one line."""
    width = 24
    done = round(part * width)
    end = "\n" if part >= 1 else ""
    line = f"\r{'█' * done}{'░' * (width - done)} {100 * part:3.0f} %  {text}"
    print(line, end=end, file=sys.stderr, flush=True)
