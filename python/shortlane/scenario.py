"""Scenarios as dataclasses, for editors and type checkers: the keys of TOML files.

>>> from shortlane.scenario import Bottleneck, Dumbbell, Link, Scenario, Transfers
>>> scenario = Scenario(
...     title="Short transfers behind a slow link",
...     duration="100s",
...     schedulers=["fifo", "efd"],
...     topology=Dumbbell(access=Link(rate="100mbit"), bottleneck=Bottleneck(rate="8mbit")),
...     traffic=[Transfers(load=0.8)],
... )
>>> results = shortlane.simulate(scenario)

Values are checked where those of files are, when the scenario is simulated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from shortlane._section import Scheduler, Section, key_of
from shortlane._toml import scenario_text
from shortlane.sections import (
    Arm,
    Bottleneck,
    Cbr,
    Chain,
    Dumbbell,
    Free,
    FreeLink,
    Link,
    OnOff,
    OpenLoop,
    Periodic,
    Persistent,
    Record,
    Requests,
    Route,
    Star,
    Tcp,
    Trace,
    Transfers,
    Web,
)

__all__ = [
    "Arm",
    "Bottleneck",
    "Cbr",
    "Chain",
    "Dumbbell",
    "Free",
    "FreeLink",
    "Link",
    "OnOff",
    "OpenLoop",
    "Periodic",
    "Persistent",
    "Record",
    "Requests",
    "Route",
    "Scenario",
    "Star",
    "Tcp",
    "Topology",
    "Trace",
    "Traffic",
    "Transfers",
    "Web",
]

#: The kinds of topology.
Topology: TypeAlias = Dumbbell | Chain | Star | Free

#: The kinds of traffic.
Traffic: TypeAlias = (
    Transfers | Persistent | Periodic | Web | Requests | Cbr | OnOff | Trace | OpenLoop
)

#: Fields of Scenario that are sections of the file; `schedulers` is one with a single key.
_SECTIONS = ("schedulers", "topology", "tcp", "traffic", "record")


@dataclass(kw_only=True, slots=True)
class Scenario:
    """An experiment: what the file has, with the keys of [scenario] as fields."""

    title: str
    """One line."""
    description: str | None = None
    """Where it comes from, what was chosen and why."""
    duration: str
    """Simulated time of a run, such as "100s"."""
    warm_up: str | None = None
    """The first part of a run, which does not count."""
    seeds: int | str | Sequence[int] | None = None
    """One run of each scheduler per seed; "1..10" if not given."""
    bound: int | None = None
    """Most open flows, and most packets on their way; a run that has more ends there."""
    schedulers: Sequence[Scheduler]
    """What is compared."""
    topology: Topology
    """Nodes and links."""
    traffic: Sequence[Traffic]
    """What is sent."""
    tcp: Tcp | None = None
    """TCP at all ends."""
    record: Record | None = None
    """What is written beside blocks, links, flows and drops."""

    def to_dict(self) -> dict[str, Any]:
        """Give the scenario as the mapping that a TOML file would be read to."""
        head = {
            key_of(field.name): getattr(self, field.name)
            for field in fields(self)
            if field.name not in _SECTIONS and getattr(self, field.name) is not None
        }
        whole: dict[str, Any] = {
            "scenario": head,
            "schedulers": {"run": [str(scheduler) for scheduler in self.schedulers]},
            "topology": _section(self.topology),
        }
        if self.tcp is not None:
            whole["tcp"] = _section(self.tcp)
        whole["traffic"] = [_section(traffic) for traffic in self.traffic]
        if self.record is not None:
            whole["record"] = _section(self.record)
        return whole

    def to_toml(self) -> str:
        """Give the scenario as the text of a file."""
        return scenario_text(self.to_dict())


def _section(section: Any) -> Any:
    # A mapping with the same keys does as well.
    return section.to_dict() if isinstance(section, Section) else section
