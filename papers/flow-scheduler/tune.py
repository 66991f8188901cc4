"""Finds the rate of new flows at which FIFO loses 1.25 % of its packets, as the paper sets it.

    python papers/flow-scheduler/tune.py s1 400 800

bisects between two rates (flows a second) for a campaign of this folder, as long as that campaign's
runs are, until the mean loss over seeds 1 to 3 is within 0.1 points.
"""

import argparse
import tempfile
import tomllib
from pathlib import Path

import polars as pl
from shortlane import campaign

LOSS, TOLERANCE = 1.25, 0.1  # percent, points


def loss(name: str, rate: int, seeds: str, jobs: int | None, set_too: dict[str, str]) -> float:
    """FIFO's mean loss in percent, at the bottleneck, over whole runs."""
    file = Path(__file__).with_name(f"{name}.toml")
    definition = tomllib.loads(file.read_text(encoding="utf-8"))
    definition["campaign"] |= {"seeds": seeds, "tables": ["links"]}
    definition["set"] |= {"traffic.0.arrivals": rate} | set_too
    definition["schedulers"] = {"run": ["fifo"]}
    with tempfile.TemporaryDirectory() as folder:
        campaign.Campaign.load(definition).run(folder, jobs=jobs)
        links = campaign.open(folder).table("links").filter(link="bottleneck")
        part = pl.col("dropped_packets") / pl.col("arrived_packets")
        found: float = links.select(100 * part.mean()).collect().item()
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("campaign")
    arguments.add_argument("low", type=int)
    arguments.add_argument("high", type=int)
    arguments.add_argument("--seeds", default="1..3")
    arguments.add_argument("--jobs", type=int)
    arguments.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = arguments.parse_args()
    low, high = given.low, given.high
    set_too = dict(one.split("=", 1) for one in given.set)
    while high - low > 1:
        rate = (low + high) // 2
        lost = loss(given.campaign, rate, given.seeds, given.jobs, set_too)
        print(f"{rate} flows/s: {lost:.3f} % lost", flush=True)
        if abs(lost - LOSS) <= TOLERANCE:
            return
        low, high = (rate, high) if lost < LOSS else (low, rate)


if __name__ == "__main__":
    main()
