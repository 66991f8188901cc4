#!/usr/bin/env python3
"""What the page of `shortlane top --web` costs while 10,000 flows are there.

    PYTHONPATH=python bench/python/top_web.py --command target/release/shortlane [--engine PROGRAM]

As root: a link in network namespaces of its own, 10,000 flows of UDP and TCP beside them, the
userspace engine. Prints the share of a processor that the server takes with no page, one and four
pages open (which draw nothing); that of the engine while the server looks and while it is stopped,
in turns; for the page in a browser its bytes and when it painted first: medians of nine.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "python/tests"))
import top_help

FLOWS = 10_000
PACKETS = 4_000
STREAM = "http://127.0.0.1:9751/stream"
FLOOD = f"""
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    began = time.monotonic()
    for number in range({FLOWS}):
        try:
            out.sendto(bytes(100), ("{top_help.FAR}", 20000 + number))
        except OSError:
            pass
        if number % 40 == 0:
            time.sleep(max(0, began + number / {PACKETS} - time.monotonic()))
"""


def seconds_used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(pids: list[int], seconds: float) -> list[float]:
    """The share of a processor that each of these takes meanwhile, in per cent."""
    before = [seconds_used(pid) for pid in pids]
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [100 * (seconds_used(pid) - was) / took for pid, was in zip(pids, before, strict=True)]


def paints(made: Any, address: str) -> tuple[list[float], int]:
    """When each of nine visits painted first, in ms, and how many bytes a visit was."""
    times = []
    with (
        tempfile.TemporaryDirectory() as folder,
        top_help.browsing(made, Path(folder)) as browser,
    ):
        for _ in range(9):
            context = browser.new_context()
            page = context.new_page()
            page.goto(address)
            page.wait_for_selector(".plot canvas")
            times.append(
                page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            )
            size = page.evaluate(
                "performance.getEntries().filter(entry => entry.transferSize"
                " && !entry.name.endsWith('stream')"
                ").reduce((all, entry) => all + entry.transferSize, 0)"
            )
            context.close()
    return times, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", required=True, help="the program to measure")
    parser.add_argument("--seconds", type=int, default=30, help="how long each is measured")
    parser.add_argument("--engine", help="the program that attaches, if that is another one")
    options = parser.parse_args()
    top_help.SHORTLANE[:] = [str(Path(options.engine or options.command).resolve())]
    with (
        top_help.link() as made,
        made.attached("--rate", "20mbit", "--engine", "userspace"),
        made.traffic(),
        made.process(made.here, sys.executable, "-c", FLOOD),
    ):
        time.sleep(10)
        shown = made.shortlane("show", "t0", "--json").stdout
        engine = int(shown.split('"pid":')[1].split(",")[0])
        top_help.SHORTLANE[:] = [str(Path(options.command).resolve())]
        with top_help.served(made) as (address, server):
            with contextlib.ExitStack() as pages:
                for more in (0, 1, 3):
                    for _ in range(more):
                        reader = made.process(made.here, "curl", "-sN", "-o", os.devnull, STREAM)
                        pages.enter_context(reader)
                    [served] = share([server.pid], options.seconds)
                    print(f"{more} more pages: server {served:.2f} %")
            looked, alone = [], []
            for _ in range(9):
                looked += share([engine], options.seconds / 3)
                server.send_signal(signal.SIGSTOP)
                alone += share([engine], options.seconds / 3)
                server.send_signal(signal.SIGCONT)
            print(
                f"engine: {statistics.median(looked):.2f} % looked at,"
                f" {statistics.median(alone):.2f} % alone"
            )
            times, size = paints(made, address)
            print(f"first paint: {statistics.median(times):.0f} ms, {size} bytes")
            status = Path(f"/proc/{server.pid}/status").read_text()
            print("server:", *[line for line in status.splitlines() if line.startswith("VmHWM")])
        flows = subprocess.run(
            [*made.into(made.here), *top_help.SHORTLANE, "show", "t0"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        print(next(line.strip() for line in flows.splitlines() if "taken up" in line))


if __name__ == "__main__":
    main()
