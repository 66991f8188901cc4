#!/usr/bin/env python3
"""Times Shortlane's simulator, ns-3 and ns-2 on the same TCP transfers, and writes a page on it.

A dumbbell of three links, and N transfers without end that start within the first second. Every
program reads the same list and says how long its run took, without what came before it.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ACCESS_MBIT = 100_000
ACCESS_MS = 1
BOTTLENECK_MS = 48  # 100 ms there and back
WINDOW = 44  # segments
MOST_PAIRS = 100


@dataclass(frozen=True)
class Setting:
    """1 Mbit/s for each flow, and a buffer of one bandwidth-delay product."""

    flows: int
    seconds: float

    @property
    def pairs(self) -> int:
        return min(self.flows, MOST_PAIRS)

    @property
    def buffer(self) -> int:
        return self.flows * 25 // 3


@dataclass(frozen=True)
class Measured:
    hops: int
    cpu_s: float
    peak_kib: int
    events: int | None

    def speed(self) -> float:
        return self.hops / self.cpu_s / 1e6


# Long enough for 2 to 4 million packet-hops. ns-3 would take minutes for the last of them.
SLOW_LIMIT = 1000  # flows
COMPARED = (Setting(10, 1000), Setting(300, 20), Setting(3000, 4))
CURVE = tuple(
    Setting(flows, max(2, 3_000 / flows))
    for flows in (1, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
)
ROUNDS = 3

Command = Callable[[Setting, Path], list[str]]


def write_list(setting: Setting, work: Path) -> Path:
    path = work / f"endless-{setting.flows}.csv"
    rows = [f"{i / setting.flows:.9f},10000000000\n" for i in range(setting.flows)]
    path.write_text("start_s,size_bytes\n" + "".join(rows), encoding="utf-8")
    return path


def ours(program: Path) -> Command:
    return lambda s, flows: [
        str(program),
        str(flows),
        f"pairs={s.pairs}",
        f"access_mbit={ACCESS_MBIT}",
        f"access_us={ACCESS_MS * 1000}",
        f"mbit={s.flows}",
        f"us={BOTTLENECK_MS * 1000}",
        f"buffer={s.buffer}",
        f"window={WINDOW}",
        f"stop_s={s.seconds}",
    ]


def ns3(program: Path) -> Command:
    return lambda s, flows: [
        str(program),
        f"--flows={flows}",
        f"--pairs={s.pairs}",
        f"--access-rate={ACCESS_MBIT}Mbps",
        f"--access-delay={ACCESS_MS}ms",
        f"--rate={s.flows}Mbps",
        f"--delay={BOTTLENECK_MS}ms",
        f"--buffer={s.buffer}",
        f"--window={WINDOW}",
        f"--stop={s.seconds}s",
    ]


def ns2(program: Path, script: Path) -> Command:
    return lambda s, flows: [
        str(program),
        str(script),
        str(flows),
        *map(str, [s.pairs, ACCESS_MBIT, ACCESS_MS, s.flows, BOTTLENECK_MS]),
        *map(str, [s.buffer, WINDOW, s.seconds]),
    ]


def measure(command: list[str]) -> Measured:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}: status {done.returncode}: {done.stderr[-2000:]}")
    found = dict(line.split(",") for line in done.stdout.splitlines())
    return Measured(
        hops=int(found["hops"]),
        cpu_s=float(found["cpu_s"]),
        peak_kib=int(found["peak_kib"]),
        events=int(found["events"]) if "events" in found else None,
    )


def least(command: list[str], rounds: int) -> Measured:
    """The run that was disturbed least: they all do the same."""
    return min((measure(command) for _ in range(rounds)), key=lambda run: run.cpu_s)


def compared_table(programs: dict[str, Command], work: Path) -> list[str]:
    lines = [
        "| flows | simulator | simulated, s | CPU, s | packet-hops | events | M packet-hops per "
        "CPU-second | peak memory, MiB |",
        "| --: | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for setting in COMPARED:
        flows = write_list(setting, work)
        for name, command in programs.items():
            slow = name.startswith("ns-3")
            if slow and setting.flows > SLOW_LIMIT:
                continue
            rounds = 1 if slow else ROUNDS
            run = least(command(setting, flows), rounds)
            events = f"{run.events:,}" if run.events else "not counted"
            speed = f"{run.speed():.3f}" if run.speed() < 1 else f"{run.speed():.1f}"
            cells = [f"{setting.flows:,}", name, f"{setting.seconds:g}", f"{run.cpu_s:.3f}"]
            cells += [f"{run.hops:,}", events, f"**{speed}**", f"{run.peak_kib / 1024:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def curve_table(command: Command, work: Path) -> list[str]:
    lines = [
        "| flows | packet-hops | ns per packet-hop | events per packet-hop | peak memory, MiB |",
        "| --: | --: | --: | --: | --: |",
    ]
    for setting in CURVE:
        run = least(command(setting, write_list(setting, work)), ROUNDS)
        assert run.events is not None
        cells = [f"{setting.flows:,}", f"{run.hops:,}", f"{run.cpu_s / run.hops * 1e9:.0f}"]
        cells += [f"{run.events / run.hops:.2f}", f"{run.peak_kib / 1024:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


TEXT = """\
# What a simulated packet costs, beside ns-3 and ns-2

    make bench-sim

Every program simulates the same thing from the same list: N TCP transfers without end, started
evenly over the first second, NewReno with SACK, packets of 1500 bytes, delayed acknowledgments, 64
kB windows, initial window 10; a dumbbell of up to {pairs} pairs of hosts whose access links carry
100 Gbit/s with 1 ms of delay; a bottleneck of 1 Mbit/s for each flow, 48 ms of delay, and a
drop-tail queue of one bandwidth-delay product. So each packet crosses three links.

A *packet-hop* is one packet over one link, acknowledgments included. CPU is user and system time
of the run alone: reading the list, building the network and, in ns-2, the connections are left
out; nothing is traced or recorded. Of {rounds} runs (ns-3: one) the one that took least; peak
memory is that of the whole process. {cpu}, one core, on a
machine whose load average was {load:.0f} at the end: above its cores, trust the ratios only.

{compared}

* **ns-3.37** is Debian's package, an optimised build, left out at 3,000 flows where it takes
  minutes; static routes, one application callback per connection, `validation/ns3/dumbbell.cc`.
* **ns-2.35** is Debian's package, `bench/sim/dumbbell.tcl`: its one-way agents have no handshake
  and no receive window, and packet headers that nobody uses are switched off. It counts no
  events, and its packet-hops are computed from what the senders counted.
* **Shortlane** is `crates/sim/examples/dumbbell.rs`, a FIFO of the same kind as every discipline,
  with its ledger, at the bottleneck.

## Cost against the number of flows

Shortlane alone, the same setting:

{curve}

"""
#: What follows it in the page is written by hand, and stays.
END = "<!-- end of what bench.py writes -->"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--ours", type=Path, required=True, help="the example dumbbell")
    options.add_argument("--ns3", type=Path, required=True, help="the program of dumbbell.cc")
    options.add_argument("--ns2", type=Path, default=Path("ns"), help="the interpreter of ns-2")
    options.add_argument("--work", type=Path, required=True, help="directory for lists")
    options.add_argument("--out", type=Path, required=True, help="the page to write into")
    chosen = options.parse_args()

    chosen.work.mkdir(parents=True, exist_ok=True)
    script = Path(__file__).with_name("dumbbell.tcl")
    programs = {
        "Shortlane": ours(chosen.ours),
        "ns-2.35": ns2(chosen.ns2, script),
        "ns-3.37": ns3(chosen.ns3),
    }
    compared = compared_table(programs, chosen.work)
    curve = curve_table(programs["Shortlane"], chosen.work)
    page = TEXT.format(
        pairs=MOST_PAIRS,
        rounds=ROUNDS,
        cpu=processor(),
        load=os.getloadavg()[0],
        compared="\n".join(compared),
        curve="\n".join(curve),
    )
    by_hand = chosen.out.read_text(encoding="utf-8").partition(END)[2]
    chosen.out.write_text(f"{page}{END}{by_hand}", encoding="utf-8")


if __name__ == "__main__":
    main()
