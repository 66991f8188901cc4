# Types of shortlane.disciplines: made from the definitions of the disciplines.
# Do not change this file: scripts/python-definitions.py writes it.

from typing import Any, Literal

from shortlane import _native
from shortlane._native import Backlog as Backlog
from shortlane._native import Dropped as Dropped
from shortlane._native import Event as Event
from shortlane._native import Packet as Packet
from shortlane._native import Wait as Wait

class Discipline(_native.Queue):
    def change(self, **parameters: str | float) -> None: ...

def named(name: str) -> type[Discipline]: ...
def class_name(name: str) -> str: ...
def documentation(info: dict[str, Any]) -> str: ...

class Fifo(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        seed: int = 1,
    ) -> Fifo: ...

class Efd(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "20packets",
        boundary: Literal["before", "after", "literal"] = "before",
        low_share: float | str = "0",
        hold_on_wire: bool | str = "no",
        flows: int | str = "1048576",
        seed: int = 1,
    ) -> Efd: ...

class Run2c(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "20packets",
        boundary: Literal["before", "after", "literal"] = "after",
        buffer: Literal["drop-tail", "knockout"] = "drop-tail",
        idle: float | str = "inf",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Run2c: ...

class Run2cSeq(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "20packets",
        boundary: Literal["before", "after", "literal"] = "after",
        segment: int | str = "1460b",
        buffer: Literal["drop-tail", "knockout"] = "drop-tail",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Run2cSeq: ...

class XProtect(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "30000b",
        boundary: Literal["before", "after", "literal"] = "after",
        probability: float | str = "0.01",
        sampled_to: Literal["high", "low", "rule"] = "high",
        count_sampled: bool | str = "yes",
        buffer: Literal["drop-tail", "knockout"] = "drop-tail",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> XProtect: ...

class Sift(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        probability: float | str = "0.01",
        sampled_to: Literal["high", "low", "rule"] = "high",
        retest: bool | str = "no",
        weight: float | str = "0.8",
        sharing: Literal["scfq", "coin"] = "scfq",
        cap_high: float | str = "inf",
        buffer: Literal["drop-tail", "knockout"] = "drop-tail",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Sift: ...

class Sb(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "25packets",
        boundary: Literal["before", "after", "literal"] = "after",
        weight: float | str = "0.8",
        sharing: Literal["scfq", "coin"] = "scfq",
        cap_high: float | str = "inf",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Sb: ...

class SbKo(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "25packets",
        boundary: Literal["before", "after", "literal"] = "after",
        weight: float | str = "0.8",
        sharing: Literal["scfq", "coin"] = "scfq",
        cap_high: float | str = "inf",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> SbKo: ...

class SbSh(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "25packets",
        boundary: Literal["before", "after", "literal"] = "after",
        probability: float | str = "0.01",
        weight: float | str = "0.8",
        sharing: Literal["scfq", "coin"] = "scfq",
        cap_high: float | str = "inf",
        buffer: Literal["drop-tail", "knockout"] = "knockout",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        interval: float | str = "inf",
        keep: int | str = "25",
        early_keep: int | str = "0",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> SbSh: ...

class Auto(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        threshold: float | str = "25packets",
        boundary: Literal["before", "after", "literal"] = "after",
        weight: float | str = "0.8",
        target: float | str = "0.005",
        update: float | str = "1s",
        step: float | str = "0.1",
        range: float | str = "16",
        sharing: Literal["scfq", "coin"] = "scfq",
        cap_high: float | str = "inf",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Auto: ...

class Lanes(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        accounting: Literal[
            "every-flow", "sampled", "sample-and-hold", "retest", "while-queued", "offset", "mark"
        ] = "while-queued",
        service: Literal["strict", "weighted", "guaranteed"] = "strict",
        buffer: Literal["drop-tail", "knockout"] = "knockout",
        threshold: float | str = "20packets",
        boundary: Literal["before", "after", "literal"] = "before",
        probability: float | str = "0.01",
        sampled_to: Literal["high", "low", "rule"] = "rule",
        count_sampled: bool | str = "yes",
        weight: float | str = "0.8",
        sharing: Literal["scfq", "coin"] = "scfq",
        cap_high: float | str = "inf",
        low_share: float | str = "0",
        hold_on_wire: bool | str = "no",
        segment: int | str = "1460b",
        short_dscp: int | str = "10",
        idle: float | str = "30s",
        sweep: float | str = "5s",
        interval: float | str = "inf",
        keep: int | str = "25",
        early_keep: int | str = "0",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Lanes: ...

class Las(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        victim: Literal["key", "most-served"] = "key",
        charge_drops: bool | str = "no",
        sweep: float | str = "5s",
        idle: float | str = "30s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Las: ...

class Lars(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        half_life: float | str = "5s",
        victim: Literal["most-served", "key"] = "most-served",
        sweep: float | str = "5s",
        idle: float | str = "30s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Lars: ...

class Srpt(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        sweep: float | str = "5s",
        idle: float | str = "30s",
        flows: int | str = "65536",
        seed: int = 1,
    ) -> Srpt: ...

class Drr(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        quantum: int | str = "1500b",
        victim: Literal["tail", "head"] = "tail",
        seed: int = 1,
    ) -> Drr: ...

class Scfq(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        drop: Literal["tail", "longest-queue"] = "tail",
        seed: int = 1,
    ) -> Scfq: ...

class Wfq(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        weights: str = "1",
        rate: float | str = "inf",
        drop: Literal["tail", "longest-queue"] = "longest-queue",
        seed: int = 1,
    ) -> Wfq: ...

class Wf2qPlus(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        weights: str = "1",
        rate: float | str = "inf",
        drop: Literal["tail", "longest-queue"] = "longest-queue",
        seed: int = 1,
    ) -> Wf2qPlus: ...

class Fsc(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        bpr: float | str = "4",
        pbs: int | str = "6000b",
        curves: str = "none",
        drop: Literal["tail", "longest-queue"] = "longest-queue",
        seed: int = 1,
    ) -> Fsc: ...

class HFsc(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        classes: str = "marked=1@ef/cs5/cs6/cs7+rest=1",
        bpr: float | str = "4",
        pbs: int | str = "6000b",
        drop: Literal["tail", "longest-queue"] = "longest-queue",
        seed: int = 1,
    ) -> HFsc: ...

class Codel(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "1000packets",
        target: float | str = "5ms",
        interval: float | str = "100ms",
        mtu: int | str = "1500b",
        ecn: bool | str = "no",
        seed: int = 1,
    ) -> Codel: ...

class FqCodel(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "10240packets",
        memory: int | str = "33554432b",
        buckets: int | str = "1024",
        quantum: int | str = "1514b",
        drop_batch: int | str = "64",
        target: float | str = "5ms",
        interval: float | str = "100ms",
        mtu: int | str = "1500b",
        ecn: bool | str = "yes",
        seed: int = 1,
    ) -> FqCodel: ...

class Red(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        min: float | str = "0.15",
        max: float | str = "0.5",
        max_probability: float | str = "0.1",
        averaging: float | str = "0.001953125",
        gentle: bool | str = "yes",
        wait: bool | str = "yes",
        ecn: bool | str = "yes",
        rate: float | str = "10mbit",
        mean_packet: int | str = "500b",
        seed: int = 1,
    ) -> Red: ...

class Fred(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        min: float | str = "0.25",
        max: float | str = "0.5",
        max_probability: float | str = "0.02",
        averaging: float | str = "0.002",
        min_queue: int | str = "2",
        two_packets: bool | str = "no",
        flows: int | str = "65536",
        rate: float | str = "10mbit",
        mean_packet: int | str = "500b",
        seed: int = 1,
    ) -> Fred: ...

class Rio(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        in_dscp: int | str = "10",
        in_min: float | str = "0.3",
        in_max: float | str = "0.6",
        in_probability: float | str = "0.02",
        out_min: float | str = "0.1",
        out_max: float | str = "0.3",
        out_probability: float | str = "0.1",
        averaging: float | str = "0.002",
        gentle: bool | str = "yes",
        wait: bool | str = "yes",
        ecn: bool | str = "yes",
        rate: float | str = "10mbit",
        mean_packet: int | str = "500b",
        seed: int = 1,
    ) -> Rio: ...

class RioPs(Discipline):
    def __new__(
        cls,
        *,
        limit: float | str = "300packets",
        classifier: Literal["edge", "tag"] = "edge",
        threshold: int | str = "10",
        ratio: int | str = "3",
        update: float | str = "10s",
        idle: float | str = "1s",
        sweep: float | str = "1s",
        flows: int | str = "65536",
        short_dscp: int | str = "10",
        short_min: float | str = "0.15",
        short_max: float | str = "0.35",
        short_probability: float | str = "0.05",
        long_min: float | str = "0.15",
        long_max: float | str = "0.5",
        long_probability: float | str = "0.1",
        averaging: float | str = "0.001953125",
        gentle: bool | str = "yes",
        wait: bool | str = "yes",
        ecn: bool | str = "yes",
        rate: float | str = "10mbit",
        mean_packet: int | str = "500b",
        seed: int = 1,
    ) -> RioPs: ...
