"""The report: verdict first, then charts, tables, and how it was run."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import shortlane
from shortlane.errors import Failed
from shortlane.figures.tables import HasTables, scenario_of
from shortlane.report import blocks
from shortlane.report.blocks import Block
from shortlane.report.drawn import charts_of
from shortlane.report.engines import html_of_several
from shortlane.report.numbers import Numbers, numbers_of
from shortlane.report.source import Folder, of_results, open_folder
from shortlane.report.tabled import tables_of
from shortlane.report.verdict import sentences

__all__ = ["html_of", "missing_in", "write"]


OPEN_LOOP = (
    "One capture, open loop: every packet arrives when it was captured, whatever happened to those "
    "before; TCP does not slow down for drops here. There is one run, so there are no intervals."
)
RATIOS = (
    "0.5 × [0.4, 0.6]: the ratio of mean completion times of the transfers complete under both, "
    "with its 95 % interval. Faster or slower is said where the whole interval lies on one side "
    "of 1."
)


def write(source: str | Path | HasTables | list[Path], out: str | Path) -> Path:
    """Writes the report of a directory of results, or of results in memory, to the file `out`.

    Several directories, of one scenario in different engines, are held side by side.

    Raises `InputError` for a directory without results, `RunError` if `out` cannot be written.
    """
    out = Path(out)
    content = html_of_several(source) if isinstance(source, list) else html_of(source)
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        temporary.write_text(content, "utf-8")
        temporary.replace(out)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Failed(f"{out}: cannot be written: {error.strerror}") from None
    return out


def html_of(source: str | Path | HasTables) -> str:
    """The page of a directory of results, or of results in memory."""
    folder = open_folder(Path(source)) if isinstance(source, str | Path) else of_results(source)
    return page_of(folder)


def missing_in(directory: str | Path) -> list[str]:
    """What a directory of results lacks, in words."""
    return open_folder(Path(directory)).missing


def page_of(folder: Folder) -> str:
    """The page of an opened folder."""
    found = numbers_of(folder)
    scenario = scenario_of(folder)
    title = scenario.get("title") or {
        "lab": "Lab: this machine's own TCP and UDP through each scheduler",
        "replay": f"Replay of {Path(str(scenario.get('capture', 'a capture'))).name}",
    }.get(found.kind, f"Results: {folder.info.get('run', folder.name)}")
    made = [*_warnings(folder, found)]
    if found.schedulers:
        made += [
            blocks.section("Verdict", *_verdict(found)),
            _charts(folder, found),
            blocks.section("Tables", *_tables(found)),
        ]
    made.append(blocks.section("How it was run", *_how(folder, found)))
    return blocks.page(str(title), made, lead=_lead(folder, found))


def _warnings(folder: Folder, found: Numbers) -> list[Block]:
    said = [f"These results are incomplete. Missing: {what}." for what in folder.missing]
    if folder.info.get("ended_early"):
        said.append(f"The run ended before its time: {folder.info['ended_early']}.")
    if found.void_blocks:
        said.append(
            f"{found.void_blocks} void block{'s' * (found.void_blocks > 1)} left out: a "
            "block is void where the machine disturbed it."
        )
    return [blocks.notice(words) for words in said]


def _lead(folder: Folder, found: Numbers) -> str:
    scenario = scenario_of(folder)
    parts = [
        {"sim": "Simulation", "lab": "Lab", "replay": "Replay, open loop"}.get(
            found.kind, "Results"
        )
    ]
    if found.schedulers:
        parts.append(f"{len(found.schedulers)} schedulers")
    if scenario.get("seeds"):
        parts.append(f"seeds {seeds_text(scenario['seeds'])}")
    if scenario.get("rate_bps"):
        parts.append(f"{scenario['rate_bps'] / 1e6:g} Mbit/s")
    if scenario.get("duration_ns"):
        parts.append(f"{scenario['duration_ns'] / 1e9:g} s each")
    return " · ".join(parts)


def _verdict(found: Numbers) -> list[Block]:
    said = sentences(found)
    if not said:
        return [blocks.text("The tables that there are carry none.")]
    made = [blocks.bullets(said)]
    if found.kind == "replay":
        made.append(blocks.text(OPEN_LOOP, small=True))
    elif not found.ratios.is_empty():
        made.append(blocks.text(RATIOS, small=True))
    return made


def _charts(folder: Folder, found: Numbers) -> Block:
    made = charts_of(folder, found)
    if not made:
        return blocks.section("Figures", blocks.text("The tables that there are carry none."))
    grid = blocks.group(*made)
    return blocks.section(
        "Figures",
        blocks.key(found.schedulers),
        Block(f'<div class="figures">{grid.html}</div>', has_charts=True),
    )


def _tables(found: Numbers) -> list[Block]:
    """The first as it is, the others when asked for."""
    made = tables_of(found)
    if not made:
        return [blocks.text("The tables that there are have no rows.")]
    title, first = made[0]
    others = (blocks.details(name, blocks.table(frame)) for name, frame in made[1:])
    return [blocks.table(first, caption=title), *others]


def _how(folder: Folder, found: Numbers) -> list[Block]:
    info, scenario = folder.info, scenario_of(folder)
    if not info:
        return [blocks.text("Not known: run.json is missing.")]
    command = command_of(info, found.kind)
    machine = info.get("machine") or {}
    ready = shortlane.scenarios().get(str(scenario.get("name")))
    file = scenario.get("file")
    made = [blocks.text("The command that repeats it:"), blocks.code(command)]
    if found.kind == "sim" and file and file != ready:
        made.append(blocks.text("with the scenario below in that file.", small=True))
    made.append(
        blocks.facts(
            {
                "Version": f"shortlane {info.get('version')}, schema {info.get('schema')}",
                "This page by": f"shortlane {shortlane.__version__}",
                "Seeds": seeds_text(scenario.get("seeds") or [info.get("seed")]),
                "Schedulers": ", ".join(map(str, scenario.get("schedulers", []))),
                "Started": info.get("started"),
                "Machine": ", ".join(
                    str(v)
                    for v in (
                        machine.get("cpu"),
                        f"{machine.get('processors')} processors" if machine else None,
                        f"kernel {machine.get('kernel')}" if machine else None,
                    )
                    if v
                )
                or "does not matter: a simulation depends on neither clock nor machine"
                if found.kind in {"sim", "lab"}
                else "",
            }
        )
    )
    if file:
        made.append(blocks.details("The scenario", blocks.code(str(file))))
    settings = {k: v for k, v in scenario.items() if k != "file"}
    made.append(blocks.details("All settings", blocks.code(json.dumps(settings, indent=2))))
    return made


def command_of(info: dict[str, Any], kind: str) -> str:
    """What to type to run it again; a simulation's options come from its scenario."""
    scenario = info.get("scenario") or {}
    words = [str(word) for word in info.get("command") or ["shortlane"]]
    words[0] = "shortlane"
    if kind != "sim" or "duration_ns" not in scenario:
        return shlex.join(words)
    name, file = str(scenario.get("name", "")), str(scenario.get("file", ""))
    is_ready = shortlane.scenarios().get(name) == file
    words = ["shortlane", "sim", name if is_ready else f"{name or 'scenario'}.toml"]
    try:
        own = tomllib.loads(file).get("schedulers", {}).get("run")
    except tomllib.TOMLDecodeError:
        own = None
    if own != scenario.get("schedulers"):
        words += [part for s in scenario.get("schedulers", []) for part in ("--scheduler", str(s))]
    words += ["--seeds", seeds_text(scenario.get("seeds", []))]
    words += ["--duration", duration_text(scenario["duration_ns"])]
    return shlex.join([*words, "--out", "results"])


def seeds_text(seeds: list[Any]) -> str:
    """As `--seeds` takes them: `1..10`, else `1,2,5`."""
    if (
        len(seeds) > 2
        and all(isinstance(seed, int) for seed in seeds)
        and seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    ):
        return f"{seeds[0]}..{seeds[-1]}"
    return ",".join(map(str, seeds))


def duration_text(ns: int) -> str:
    """As `--duration` takes it."""
    for size, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if ns % size == 0:
            return f"{ns // size}{unit}"
    return f"{ns}ns"
