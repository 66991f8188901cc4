"""What `kernel-guest compare` has measured, by kernel, workload, setting and metric."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from pathlib import Path

# Student's t, two-sided 95 %, by degrees of freedom.
T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}

# One value a round.
Rounds = dict[int, float]


class Row(TypedDict):
    """A measurement of one block, as the guest writes it."""

    round: int
    setting: str
    workload: str
    metric: str
    n: int
    value: float
    values: NotRequired[list[float]]


@dataclass
class Results:
    """One kernel's rows; each round's values."""

    kernel: str
    rounds: dict[tuple[str, str, str], dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    workloads: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    void: int = 0
    blocks: int = 0

    def add(self, rows: list[Row]) -> None:
        """Take in a document's rows, but for those of void blocks."""
        void = {block_of(row) for row in rows if row["metric"] == "void" and row["value"]}
        self.void += len(void)
        self.blocks += len({block_of(row) for row in rows})
        for row in rows:
            if block_of(row) not in void:
                self._take(row)

    def _take(self, row: Row) -> None:
        values = row.get("values") or [row["value"]] * min(row["n"], 1)
        self.rounds[row["workload"], row["setting"], row["metric"]][row["round"]] = values
        if row["workload"] not in self.workloads:
            self.workloads.append(row["workload"])
        if row["setting"] not in self.settings:
            self.settings.append(row["setting"])

    def values(self, workload: str, setting: str, metric: str) -> list[float]:
        """All rounds' values together."""
        rounds = self.rounds.get((workload, setting, metric), {})
        return [value for _, values in sorted(rounds.items()) for value in values]

    def means(self, workload: str, setting: str, metric: str) -> Rounds:
        """Each round's mean."""
        rounds = self.rounds.get((workload, setting, metric), {})
        return {at: statistics.fmean(values) for at, values in rounds.items() if values}

    def tails(self, workload: str, setting: str, metric: str) -> Rounds:
        """Each round's 99th percentile."""
        rounds = self.rounds.get((workload, setting, metric), {})
        return {at: quantile(values, 0.99) for at, values in rounds.items() if values}

    def metrics(self, workload: str) -> set[str]:
        """Those of a workload."""
        return {metric for at, _, metric in self.rounds if at == workload}


def block_of(row: Row) -> tuple[str, str, int]:
    """The block that a row is of."""
    return row["workload"], row["setting"], row["round"]


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; without an interval for one round."""

    value: float
    low: float
    high: float


def estimate_of(values: list[float]) -> Estimate:
    """The mean of one value a round."""
    mean = statistics.fmean(values) if values else math.nan
    if len(values) < 2:
        return Estimate(mean, -math.inf, math.inf)
    error = statistics.stdev(values) / math.sqrt(len(values)) * T.get(len(values) - 1, 2.0)
    return Estimate(mean, mean - error, mean + error)


def ratio(ours: Rounds, theirs: Rounds) -> Estimate:
    """The geometric mean of the ratios of rounds that both have."""
    pairs = [(ours[at], theirs[at]) for at in sorted(ours.keys() & theirs.keys())]
    logs = estimate_of([math.log(x / y) for x, y in pairs if x > 0 and y > 0])
    return Estimate(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high))


def difference(ours: Rounds, theirs: Rounds) -> Estimate:
    """The mean of the differences of rounds that both have."""
    return estimate_of([ours[at] - theirs[at] for at in sorted(ours.keys() & theirs.keys())])


def quantile(values: list[float], part: float) -> float:
    """The least value that this part of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]


def read(paths: list[Path]) -> list[Results]:
    """The documents, those of one kernel as one; the newest kernel first."""
    kernels: dict[str, Results] = {}
    for path in paths:
        document = json.loads(path.read_text())
        name = document["kernel"]
        kernels.setdefault(name, Results(name)).add(document["rows"])
    return sorted(kernels.values(), key=lambda results: version(results.kernel), reverse=True)


def version(kernel: str) -> list[int]:
    """The numbers of `7.3.4+deb13-cloud-amd64`, to sort by."""
    numbers = kernel.replace("+", "-").partition("-")[0].split(".")
    return [int(number) for number in numbers if number.isdigit()]
