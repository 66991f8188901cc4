"""The statistics of the fair service curve paper's claims, beside the shared ones."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import polars as pl
from shortlane.paper.shared import SHARED
from shortlane.paper.statistics import (
    PerSeed,
    Sample,
    Statistic,
    Tables,
    by_seed,
    combine,
    ratio,
    statistic,
)

__all__ = ["STATISTICS", "departures", "fsc", "group_ratios", "times"]

#: By name, for `paper.toml`.
STATISTICS: dict[str, Statistic] = dict(SHARED)

#: What transfer times are computed from.
TIMES = ("traffic", "completion_ns")


#: What the paper's files call the scheduler with BPR 1.
PFQ = "pfq"


def fsc(bpr: float, pbs: int) -> str:
    """The scheduler with a preferred burst of so many bytes, as runs name it."""
    return f"fsc:bpr={bpr:g},pbs={pbs}b"


@statistic(STATISTICS, "time", scale="plain", unit="s", flows=TIMES)
def time(tables: Tables, scheduler: str, of: str) -> Sample:
    """Mean transfer time of a group of flows."""
    return PerSeed(times(tables, scheduler, of))


@statistic(STATISTICS, "time-ratio", scale="ratio", unit="x", flows=TIMES)
def time_ratio(tables: Tables, scheduler: str, to: str, of: str) -> Sample:
    """Mean transfer time of a group of flows over that under another scheduler."""
    return ratio(*(times(tables, one, of) for one in (scheduler, to)))


def times(tables: Tables, scheduler: str, of: str) -> dict[int, float]:
    """Mean transfer time of a group of flows in seconds, by seed."""
    flows = tables["flows"].lazy()
    chosen = flows.filter(pl.col("scheduler") == scheduler, pl.col("traffic") == of)
    return by_seed(chosen, pl.col("completion_ns").mean() / 1e9)


@statistic(STATISTICS, "groups-faster", scale="plain", unit="groups", flows=TIMES)
def groups_faster(tables: Tables, scheduler: str, to: str, groups: Sequence[str]) -> Sample:
    """How many groups have a lower mean transfer time than under another scheduler."""
    ratios = group_ratios(tables, scheduler, to, groups)
    return PerSeed(combine(lambda *each: sum(one < 1 for one in each), *ratios))


@statistic(STATISTICS, "best-group", scale="ratio", unit="x", flows=TIMES)
def best_group(tables: Tables, scheduler: str, to: str, groups: Sequence[str]) -> Sample:
    """The least that the mean transfer time of a group is of that under another scheduler."""
    return PerSeed(combine(min, *group_ratios(tables, scheduler, to, groups)))


def group_ratios(
    tables: Tables, scheduler: str, to: str, groups: Sequence[str]
) -> list[Mapping[int, float]]:
    """Mean transfer time of each group over that under another scheduler, by seed."""
    pairs = ([times(tables, one, group) for one in (scheduler, to)] for group in groups)
    return [ratio(*pair).values for pair in pairs]


@statistic(
    STATISTICS,
    "departures-differ",
    scale="plain",
    unit="flows",
    flows=["traffic", "index", "end_ns"],
)
def departures_differ(tables: Tables, scheduler: str, other: str) -> Sample:
    """Flows that do not end at the very same time under two schedulers."""
    key = ["seed", "traffic", "index"]
    ours, others = (
        tables["flows"].lazy().filter(pl.col("scheduler") == one).select(*key, "end_ns")
        for one in (scheduler, other)
    )
    both = ours.join(others, on=key, how="full", coalesce=True, suffix="_other")
    differ = pl.col("end_ns").ne_missing(pl.col("end_ns_other"))
    return PerSeed(by_seed(both, differ.sum()))


@statistic(STATISTICS, "best-pbs", scale="ratio", unit="x", flows=TIMES)
def best_pbs(tables: Tables, of: str, bpr: float, grid: Sequence[int], length: float) -> Sample:
    """The preferred burst of the grid with the least mean transfer time, over the flows' length."""
    means = [times(tables, fsc(bpr, pbs), of) for pbs in grid]
    return PerSeed(combine(lambda *each: grid[each.index(min(each))] / length, *means))


def _best(means: Sequence[Mapping[int, float]], grid: Sequence[int], seeds: Sequence[int]) -> int:
    whole = [fmean(mean[seed] for seed in seeds) for mean in means]
    return grid[whole.index(min(whole))]


@statistic(STATISTICS, "gain", scale="plain", unit="", flows=TIMES)
def gain(
    tables: Tables, of: str, ratios: Sequence[float], *, at: float, grid: Sequence[int]
) -> Sample:
    """What a group's transfer time falls by between two `ratios` (BPR), in parts of that at BPR 1.

    All at the preferred burst of the grid that is best at BPR `at`, of all seeds together.
    """
    means = [times(tables, fsc(at, pbs), of) for pbs in grid]
    seeds = sorted(set(means[0]).intersection(*means[1:]))
    pbs = _best(means, grid, seeds) if seeds else grid[0]
    plain = times(tables, PFQ, of)
    from_to = [plain if bpr == 1 else times(tables, fsc(bpr, pbs), of) for bpr in ratios]
    return PerSeed(combine(lambda before, after, one: (before - after) / one, *from_to, plain))


#: What is known of packets.
PROBES = ("stream", "sent_ns", "delay_ns")
#: The flow that sends bursts, and the time between two bursts, in ns, that tells them apart.
BURST, APART = "burst", 1_000_000_000


def departures(probes: pl.DataFrame, scheduler: str) -> pl.DataFrame:
    """The packets of the bursts in the order of their departures.

    Columns `seed`; `burst`, 0 or 1; `place`, from 1; `since_ns`, from the start of its burst to the
    packet's departure; `wait_ns`, from its arrival; `others`, the packets of others that have left.
    """
    ours = pl.col("stream") == BURST
    left = pl.col("sent_ns") + pl.col("delay_ns")
    return (
        probes.lazy()
        .filter(pl.col("scheduler") == scheduler, pl.col("delay_ns").is_not_null())
        .with_columns(left=left, ours=ours)
        .sort("seed", "left")
        .with_columns(others=(~pl.col("ours")).cum_sum().over("seed"))
        .filter("ours")
        .with_columns(burst=((pl.col("sent_ns") - pl.col("sent_ns").min().over("seed")) // APART))
        .select(
            "seed",
            "burst",
            place=pl.int_range(1, pl.len() + 1).over("seed", "burst"),
            since_ns=pl.col("left") - pl.col("sent_ns").min().over("seed", "burst"),
            wait_ns=pl.col("delay_ns"),
            others=pl.col("others").cast(pl.Int64),
        )
        .collect()
    )


@statistic(STATISTICS, "burst-delay", scale="plain", unit="ms", probes=PROBES)
def burst_delay(tables: Tables, scheduler: str) -> Sample:
    """Mean delay of a packet of the bursts."""
    return PerSeed(_delay(tables, scheduler))


@statistic(STATISTICS, "burst-delay-ratio", scale="ratio", unit="x", probes=PROBES)
def burst_delay_ratio(tables: Tables, scheduler: str, to: str) -> Sample:
    """Mean delay of a packet of the bursts, over that under another scheduler."""
    return ratio(*(_delay(tables, one) for one in (scheduler, to)))


@statistic(STATISTICS, "second-burst", scale="ratio", unit="x", probes=PROBES)
def second_burst(tables: Tables, scheduler: str) -> Sample:
    """Mean delay of a packet of the second burst, over that of the first."""
    return ratio(*(_delay(tables, scheduler, burst) for burst in (1, 0)))


def _delay(tables: Tables, scheduler: str, burst: int | None = None) -> dict[int, float]:
    chosen = departures(tables["probes"], scheduler).lazy()
    if burst is not None:
        chosen = chosen.filter(pl.col("burst") == burst)
    return by_seed(chosen, pl.col("wait_ns").mean() / 1e6)


@statistic(STATISTICS, "spacing-ratio", scale="ratio", unit="x", probes=PROBES)
def spacing_ratio(tables: Tables, scheduler: str, preferred: int) -> Sample:
    """Packets of others between two of a burst: among the `preferred` first, over later ones."""
    first = _spacing(tables, scheduler, 1, preferred)
    return ratio(first, _spacing(tables, scheduler, preferred + 1, None))


@statistic(STATISTICS, "spacing", scale="plain", unit="packets", probes=PROBES)
def spacing(tables: Tables, scheduler: str, first: int, last: int) -> Sample:
    """Packets of others between two of a burst, from the `first` to the `last` of it."""
    return PerSeed(_spacing(tables, scheduler, first, last))


def _spacing(tables: Tables, scheduler: str, first: int, last: int | None) -> dict[int, float]:
    found = departures(tables["probes"], scheduler)
    chosen = found.filter(pl.col("place").is_between(first, last if last is not None else math.inf))
    between: dict[int, list[int]] = {}
    for (seed, _), rows in chosen.group_by("seed", "burst", maintain_order=True):
        steps = [after - before for before, after in pairwise(rows["others"].to_list())]
        between.setdefault(int(str(seed)), []).extend(steps)
    return {seed: fmean(steps) for seed, steps in between.items() if steps}
