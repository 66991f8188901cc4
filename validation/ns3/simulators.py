"""One run of either simulator: the command, and what is kept of its output."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path

import cases
from cases import Case


class SimulatorError(Exception):
    pass


@dataclass(frozen=True)
class Run:
    """What is compared of one run."""

    fct_s: dict[str, float]  # mean over the complete transfers of a class
    complete: int
    incomplete: int
    arrived: int
    dropped: int
    cpu_s: float

    def drop_rate(self) -> float:
        return self.dropped / self.arrived


class Simulator(ABC):
    """A program that simulates a list of transfers. Runs that are known are not repeated."""

    def __init__(self, name: str, program: Path, work: Path) -> None:
        self.name = name
        self.program = program
        self.work = work
        self.digest = hashlib.sha256(program.read_bytes())

    @abstractmethod
    def simulate(self, case: Case, flows: Path, seconds: float, out: Path) -> Run:
        """Runs the program."""

    def run(self, case: Case, flows: Path, seconds: float) -> Run:
        digest = self.digest.copy()
        digest.update(flows.read_bytes())
        digest.update(f"{case.name()} {seconds}".encode())
        stem = self.work / f"{self.name}-{digest.hexdigest()[:20]}"
        known = stem.with_suffix(".json")
        if known.exists():
            return Run(**json.loads(known.read_text(encoding="utf-8")))
        run = self.simulate(case, flows, seconds, stem)
        known.write_text(json.dumps(asdict(run)), encoding="utf-8")
        return run


def execute(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SimulatorError(
            f"{' '.join(command)}: status {done.returncode}: {done.stderr[-2000:]}"
        )
    return done.stdout


def summarise(ended: list[tuple[int, float | None]], arrived: int, dropped: int, cpu: float) -> Run:
    """Of (packets, seconds it took or None) of every transfer."""
    times: dict[str, list[float]] = {name: [] for name, _ in cases.CLASSES}
    for packets, seconds in ended:
        if seconds is not None:
            name = next(name for name, largest in cases.CLASSES if packets <= largest)
            times[name].append(seconds)
    complete = sum(len(seconds) for seconds in times.values())
    return Run(
        fct_s={name: sum(seconds) / len(seconds) for name, seconds in times.items()},
        complete=complete,
        incomplete=len(ended) - complete,
        arrived=arrived,
        dropped=dropped,
        cpu_s=cpu,
    )


class Ns3(Simulator):
    def simulate(self, case: Case, flows: Path, seconds: float, out: Path) -> Run:
        rows = out.with_suffix(".csv")
        sack = case.tcp != "newreno"
        totals_text = execute([
            str(self.program),
            f"--flows={flows}",
            f"--out={rows}",
            f"--pairs={cases.PAIRS}",
            f"--access-rate={cases.ACCESS_BPS}bps",
            f"--access-delay={cases.ACCESS_DELAY_MS}ms",
            f"--rate={cases.RATE_BPS}bps",
            f"--delay={case.delay_ms()}ms",
            f"--queue={case.queue}",
            f"--buffer={case.buffer}",
            f"--tcp={'Cubic' if case.tcp == 'cubic' else 'NewReno'}",
            f"--sack={'true' if sack else 'false'}",
            f"--recovery={'prr' if sack else 'classic'}",
            f"--mss={cases.MSS}",
            f"--socket-buffer={cases.SOCKET_BUFFER}",
            f"--stop={seconds + cases.DRAIN_S}s",
        ])  # fmt: skip
        totals = dict(line.split(",") for line in totals_text.splitlines())
        ended: list[tuple[int, float | None]] = []
        with rows.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                took = (int(row["end_ns"]) - int(row["start_ns"])) / 1e9
                packets = int(row["size_bytes"]) // cases.MSS
                ended.append((packets, took if row["complete"] == "1" else None))
        rows.unlink()
        arrived, dropped = int(totals["arrived"]), int(totals["dropped"])
        return summarise(ended, arrived, dropped, float(totals["cpu_s"]))
