"""What columns of results are called in figures: label, unit, scale; and their tables."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUANTITIES", "Quantity", "quantity"]


@dataclass(frozen=True)
class Quantity:
    """A column: a value times `scale` is in `unit`."""

    column: str
    table: str
    name: str
    unit: str
    scale: float

    @property
    def label(self) -> str:
        """For an axis."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def _known() -> dict[str, Quantity]:
    flows, samples = "flows", "samples"
    rows = [
        Quantity("completion_ns", flows, "completion time", "s", 1e-9),
        Quantity("idle_ns", flows, "completion time on an idle link", "s", 1e-9),
        Quantity("slowdown", flows, "slowdown", "× idle", 1.0),
        Quantity("queueing_mean_ns", flows, "mean time in the queue", "ms", 1e-6),
        Quantity("queueing_max_ns", flows, "longest time in the queue", "ms", 1e-6),
        Quantity("stall_max_ns", flows, "longest stall", "s", 1e-9),
        Quantity("size_bytes", flows, "size", "kB", 1e-3),
        Quantity("packets", flows, "packets", "", 1.0),
        Quantity("fragments", flows, "fragments", "", 1.0),
        Quantity("retransmissions", flows, "segments sent again", "", 1.0),
        Quantity("duplicates", flows, "segments that arrived twice", "", 1.0),
        Quantity("timeouts", flows, "retransmission timeouts", "", 1.0),
        Quantity("delay_ns", "probes", "delay", "ms", 1e-6),
        Quantity("lost_percent", "probes", "packets lost", "%", 1.0),
        Quantity("backlog_packets", samples, "backlog", "packets", 1.0),
        Quantity("backlog_bytes", samples, "backlog", "kB", 1e-3),
        Quantity("short_lane_packets", samples, "backlog of the short lane", "packets", 1.0),
        Quantity("flow_entries", samples, "entries in the flow table", "", 1.0),
        Quantity("received_bytes", "progress", "received", "MB", 1e-6),
    ]
    return {row.column: row for row in rows}


QUANTITIES = _known()


def quantity(column: str, table: str = "flows") -> Quantity:
    """What is known of `column`; of a column that nothing is known of, its name."""
    return QUANTITIES.get(column) or Quantity(column, table, column.replace("_", " "), "", 1.0)
