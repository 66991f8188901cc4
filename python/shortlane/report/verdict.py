"""What the numbers say, in plain words."""

from __future__ import annotations

import polars as pl

from shortlane.report.blocks import number
from shortlane.report.numbers import CLASSES, WRITTEN, Numbers

__all__ = ["estimate", "ratio", "sentences"]

#: What the classes are called in sentences.
CALLED = {
    "<=20": "short transfers (at most 20 packets)",
    "20-100": "transfers of 20 to 100 packets",
    "100-1000": "transfers of 100 to 1000 packets",
    ">1000": "transfers of over 1000 packets",
}

NO_INTERVAL = "too few runs to tell"


def estimate(value: float | None, low: float | None, high: float | None, unit: str = "") -> str:
    """A value with its interval, as text."""
    if value is None:
        return "–"
    if low is None or high is None or low == high:
        return f"{number(value)}{unit}"
    ends = f" [{number(low)}, {number(high)}]"
    return f"{number(value)}{unit}{ends}"


def ratio(value: float | None, low: float | None, high: float | None) -> str:
    """A ratio with its interval, as text."""
    if value is None:
        return "–"
    ends = "" if low is None or high is None else f" [{_short_number(low)}, {_short_number(high)}]"
    return f"{_short_number(value)} ×{ends}"


def _short_number(value: float) -> str:
    return f"{value:.2f}" if value >= 0.095 else f"{value:.3f}"


def sentences(found: Numbers) -> list[str]:
    """The verdict: who wins where, what long flows pay, what streams lose."""
    if found.kind == "replay":
        return _waits(found)
    return [*_winners(found), *_short(found), *_long(found), *_streams(found), *_unfinished(found)]


def _winners(found: Numbers) -> list[str]:
    """Of each class, the scheduler with the least mean."""
    said = []
    for traffic in _traffics(found.classes):
        for size_class in CLASSES:
            own = _of(found.classes, traffic=traffic, size_class=size_class).drop_nulls("mean")
            if own.height < 2:
                continue
            said.append(f"{_named(CALLED[size_class], traffic, found)}: {_fastest(own, found)}.")
    return said


def _fastest(own: pl.DataFrame, found: Numbers) -> str:
    """Who has the least mean, and who comes next; those that look the same are said together."""
    incomplete = dict(own.select("scheduler", "incomplete").rows())
    by_time: dict[str, list[str]] = {}
    place = pl.col("scheduler").replace_strict(found.schedulers, range(len(found.schedulers)))
    for row in own.sort(place).sort("mean", maintain_order=True).rows(named=True):
        by_time.setdefault(number(row["mean"] / 1e6), []).append(row["scheduler"])

    def called(names: list[str]) -> str:
        cut = {name: f" ({incomplete[name]} incomplete)" for name in names if incomplete[name]}
        ordered = sorted(names, key=found.schedulers.index)
        return " and ".join(name + cut.get(name, "") for name in ordered)

    (time, first), *others = by_time.items()
    said = f"least mean completion time under {called(first)}, {time} ms"
    if others:
        time, second = others[0]
        said += f"; next {called(second)}, {time} ms"
    return said


def _short(found: Numbers) -> list[str]:
    return [
        said
        for traffic in _traffics(found.ratios)
        for reference in found.references
        for said in _against(found, traffic, CLASSES[0], reference)
    ]


def _long(found: Numbers) -> list[str]:
    said = []
    reference = found.references[0] if found.references else ""
    for traffic in _traffics(found.ratios):
        for size_class in CLASSES[2:]:
            said += _against(found, traffic, size_class, reference)
    if "ratio" in found.long_flows.columns:
        for traffic in _traffics(found.long_flows):
            own = _of(found.long_flows, traffic=traffic).filter(pl.col("scheduler") != reference)
            parts = [
                f"{row['scheduler']} " + ratio(row["ratio"], row["ratio_low"], row["ratio_high"])
                for row in own.drop_nulls("ratio").rows(named=True)
            ]
            if parts:
                said.append(
                    f"Rate of the long flows ({traffic}) over that under {reference}: "
                    f"{'; '.join(parts)}."
                )
    return said


def _against(found: Numbers, traffic: str, size_class: str, reference: str) -> list[str]:
    """Who is faster and who slower than the reference, as far as the intervals tell."""
    own = _of(found.ratios, traffic=traffic, size_class=size_class, reference=reference)
    if own.is_empty():
        return []
    groups: dict[str, list[str]] = {
        "faster": [],
        "slower": [],
        "no difference found": [],
        NO_INTERVAL: [],
    }
    for row in own.sort("ratio").rows(named=True):
        text = f"{row['scheduler']} {ratio(row['ratio'], row['low'], row['high'])}"
        groups[_verdict(row["low"], row["high"])].append(text)
    parts = [f"{word}: {', '.join(rows)}" for word, rows in groups.items() if rows]
    what = _named(CALLED[size_class], traffic, found)
    return [f"{what}, time over {reference}'s: {'; '.join(parts)}."]


def _verdict(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NO_INTERVAL
    if high < 1:
        return "faster"
    return "slower" if low > 1 else "no difference found"


def _streams(found: Numbers) -> list[str]:
    said = []
    for stream in _values(found.streams, "stream"):
        own = found.streams.filter(pl.col("stream") == stream)
        parts = [
            f"{row['scheduler']} {estimate(row['lost_percent'], row['low'], row['high'], ' %')}"
            for row in own.sort("lost_percent").rows(named=True)
        ]
        if own["lost"].sum() == 0:
            said.append(f"Losses of {stream}: none under any scheduler.")
        else:
            said.append(f"Losses of {stream}: {'; '.join(parts)}.")
    return said


def _unfinished(found: Numbers) -> list[str]:
    if found.classes.is_empty():
        return []
    counts = found.classes.group_by("scheduler").agg(pl.col("incomplete").sum())
    by_name = dict(counts.rows())
    parts = [f"{name} {by_name[name]}" for name in found.schedulers if by_name.get(name)]
    if not parts:
        return ["Incomplete transfers: none."]
    return [f"Incomplete transfers (excluded from means): {', '.join(parts)}."]


def _waits(found: Numbers) -> list[str]:
    """A replay: how long packets waited, and how many were dropped. One run has no interval."""
    said = []
    classes = [name for name in ("all", *CLASSES) if name in _values(found.waits, "size_class")]
    for size_class in classes:
        own = found.waits.filter(pl.col("size_class") == size_class).drop_nulls("mean_ms")
        if own.is_empty():
            continue
        parts = [
            f"{row['scheduler']} {number(row['mean_ms'])} ms"
            f" ({number(row['dropped_percent'])} % dropped)"
            for row in own.sort("mean_ms").rows(named=True)
        ]
        if size_class == "all":
            head = "Mean time of a packet in the queue"
        else:
            head = f"Flows of {WRITTEN[size_class]} packets ({max(own['flows'].to_list())} of them)"
        said.append(f"{head}: {', '.join(parts)}.")
    return said


def _named(what: str, traffic: str, found: Numbers) -> str:
    several = len(_traffics(found.classes)) > 1
    what = what[0].upper() + what[1:]
    return f"{what} of {traffic}" if several else what


def _traffics(frame: pl.DataFrame) -> list[str]:
    return _values(frame, "traffic")


def _values(frame: pl.DataFrame, column: str) -> list[str]:
    return (
        frame[column].unique(maintain_order=True).drop_nulls().sort().to_list()
        if (column in frame.columns)
        else []
    )


def _of(frame: pl.DataFrame, **values: str) -> pl.DataFrame:
    return frame.filter(*(pl.col(name) == value for name, value in values.items()))
