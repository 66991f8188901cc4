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


def read_run(rows: Path, totals_text: str) -> Run:
    """From the rows of transfers and the totals, which both programs write in the same form."""
    times: dict[str, list[float]] = {name: [] for name, _ in cases.CLASSES}
    incomplete = 0
    with rows.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["complete"] == "1":
                packets = int(row["size_bytes"]) // cases.MSS
                name = next(name for name, largest in cases.CLASSES if packets <= largest)
                times[name].append((int(row["end_ns"]) - int(row["start_ns"])) / 1e9)
            else:
                incomplete += 1
    rows.unlink()
    totals = dict(line.split(",") for line in totals_text.splitlines())
    return Run(
        fct_s={name: sum(took) / len(took) for name, took in times.items()},
        complete=sum(len(took) for took in times.values()),
        incomplete=incomplete,
        arrived=int(totals["arrived"]),
        dropped=int(totals["dropped"]),
        cpu_s=float(totals["cpu_s"]),
    )


class Ns3(Simulator):
    def simulate(self, case: Case, flows: Path, seconds: float, out: Path) -> Run:
        rows = out.with_suffix(".csv")
        sack = case.tcp not in ("newreno", "newreno-unlimited")
        unlimited = case.tcp == "newreno-unlimited"
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
            f"--window={cases.WINDOW}",
            f"--stop={seconds + cases.DRAIN_S}s",
            *(["--ns3::TcpSocketBase::LimitedTransmit=false"] if unlimited else []),
        ])  # fmt: skip
        return read_run(rows, totals_text)


class Shortlane(Simulator):
    def simulate(self, case: Case, flows: Path, seconds: float, out: Path) -> Run:
        rows = out.with_suffix(".csv")
        totals_text = execute([
            str(self.program),
            str(flows),
            f"pairs={cases.PAIRS}",
            f"access_mbit={cases.ACCESS_BPS // 1_000_000}",
            f"access_us={cases.ACCESS_DELAY_MS * 1000}",
            f"mbit={cases.RATE_BPS // 1_000_000}",
            f"us={case.delay_ms() * 1000}",
            f"window={cases.WINDOW}",
            f"queue={case.queue}",
            f"buffer={case.buffer}",
            f"tcp={case.tcp.removesuffix('-unlimited')}",
            f"limited_transmit={str(not case.tcp.endswith('-unlimited')).lower()}",
            f"stop_s={seconds + cases.DRAIN_S}",
            f"out={rows}",
        ])  # fmt: skip
        return read_run(rows, totals_text)
