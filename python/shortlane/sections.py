"""The sections of a scenario as dataclasses: made from the definitions of the keys.

Do not change this file: scripts/python-definitions.py writes it.

A field is a key of the TOML file with `_` for `-` (`from_` for `from`); None is a key that is not
given.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from shortlane._section import Scheduler, Section

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
    "Star",
    "Tcp",
    "Trace",
    "Transfers",
    "Web",
]


@dataclass(kw_only=True, slots=True)
class Bottleneck(Section):
    """A bottleneck.

    A link with the scheduler under test at both ends.
    """

    rate: str
    """Rate in both directions. Takes "1kbit" to "1000gbit"."""
    back_rate: str | None = None
    """Rate in the other direction, where that differs. Takes "1kbit" to "1000gbit". Default:
    `rate`.
    """
    delay: str | None = None
    """Propagation delay in each direction. Takes "0s" to "10s". Default: 0s."""
    edge: str | None = None
    """An edge in front of the queue at each end, which tags the packets of short flows by DSCP
    for `rio`, `rio-ps:classifier=tag` and `lanes:accounting=mark`: `threshold=10,update=inf`,
    or an empty text for its defaults; parameters as those of `rio-ps`, and `long-dscp`. Takes
    text.
    """
    limit: str | None = None
    """What each of its queues holds. Takes "1packets" to "4294967296packets", or as many b, kb,
    mb. Default: 300packets.
    """
    back_scheduler: Scheduler | None = None
    """The scheduler of the other direction. Takes "tested", or a scheduler, such as "fifo" or
    "efd:threshold=20packets". Default: tested.
    """
    loss: float | None = None
    """Part of the packets that are lost behind the queue, at random, in each direction. Takes a
    number, 0 to 0.99. Default: 0.
    """
    jitter: str | None = None
    """Extra delay of a packet, uniform between 0 and this, in each direction; order is kept.
    Takes "0s" to "10s". Default: 0s.
    """
    reorder: float | None = None
    """Part of the packets that are held up by `reorder-delay`, so that others pass them. Takes a
    number, 0 to 0.99. Default: 0.
    """
    reorder_delay: str | None = None
    """How long such a packet is held up. Takes "0s" to "10s". Default: 1ms."""


@dataclass(kw_only=True, slots=True)
class Cbr(Section):
    """[[traffic]] of kind "cbr".

    UDP at a constant rate: voice is 64 kbit/s in packets of 160 bytes.
    """

    KIND: ClassVar[str | None] = "cbr"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    rate: str
    """Rate of each, IP and UDP headers included. Takes "1bit" to "1000gbit"."""
    flows: int | None = None
    """How many streams of this kind, each with a phase of its own. Takes a whole number, 1 to
    100000. Default: 1.
    """
    packet: str | None = None
    """Size of a packet, IP and UDP headers included. Takes "28b" to "65535b", also in kb and mb.
    Default: 1500b.
    """


@dataclass(kw_only=True, slots=True)
class FreeLink(Section):
    """[[topology.links]] of a free topology.

    One link: its ends, and what a link takes.
    """

    a: str
    """The node at one end; forward is from `a` to `b`. Takes text."""
    b: str
    """The node at the other end. Takes text."""
    name: str | None = None
    """Its name; the way back is `NAME-back`. Takes text. Default: `A-B`."""
    rate: str
    """Rate in both directions. Takes "1kbit" to "1000gbit"."""
    back_rate: str | None = None
    """Rate in the other direction, where that differs. Takes "1kbit" to "1000gbit". Default:
    `rate`.
    """
    delay: str | None = None
    """Propagation delay in each direction. Takes "0s" to "10s". Default: 0s."""
    edge: str | None = None
    """An edge in front of the queue at each end, which tags the packets of short flows by DSCP
    for `rio`, `rio-ps:classifier=tag` and `lanes:accounting=mark`: `threshold=10,update=inf`,
    or an empty text for its defaults; parameters as those of `rio-ps`, and `long-dscp`. Takes
    text.
    """
    limit: str | None = None
    """What each of its queues holds. Takes "1packets" to "4294967296packets", or as many b, kb,
    mb. Default: 1000packets.
    """
    scheduler: Scheduler | None = None
    """At the forward end; "tested": one after another those of `[schedulers]`. Takes "tested",
    or a scheduler, such as "fifo" or "efd:threshold=20packets". Default: fifo.
    """
    back_scheduler: Scheduler | None = None
    """At the other end. Takes "tested", or a scheduler, such as "fifo" or
    "efd:threshold=20packets". Default: `scheduler`.
    """
    loss: float | None = None
    """Part of the packets that are lost behind the queue, at random, in each direction. Takes a
    number, 0 to 0.99. Default: 0.
    """
    jitter: str | None = None
    """Extra delay of a packet, uniform between 0 and this, in each direction; order is kept.
    Takes "0s" to "10s". Default: 0s.
    """
    reorder: float | None = None
    """Part of the packets that are held up by `reorder-delay`, so that others pass them. Takes a
    number, 0 to 0.99. Default: 0.
    """
    reorder_delay: str | None = None
    """How long such a packet is held up. Takes "0s" to "10s". Default: 1ms."""


@dataclass(kw_only=True, slots=True)
class Link(Section):
    """A link.

    Full duplex, a FIFO at each end: `access = { rate = "100mbit", delay = "1ms" }`.
    """

    rate: str
    """Rate in both directions. Takes "1kbit" to "1000gbit"."""
    back_rate: str | None = None
    """Rate in the other direction, where that differs. Takes "1kbit" to "1000gbit". Default:
    `rate`.
    """
    delay: str | None = None
    """Propagation delay in each direction. Takes "0s" to "10s". Default: 0s."""
    edge: str | None = None
    """An edge in front of the queue at each end, which tags the packets of short flows by DSCP
    for `rio`, `rio-ps:classifier=tag` and `lanes:accounting=mark`: `threshold=10,update=inf`,
    or an empty text for its defaults; parameters as those of `rio-ps`, and `long-dscp`. Takes
    text.
    """
    limit: str | None = None
    """What each of its queues holds. Takes "1packets" to "4294967296packets", or as many b, kb,
    mb. Default: 1000packets.
    """
    loss: float | None = None
    """Part of the packets that are lost behind the queue, at random, in each direction. Takes a
    number, 0 to 0.99. Default: 0.
    """
    jitter: str | None = None
    """Extra delay of a packet, uniform between 0 and this, in each direction; order is kept.
    Takes "0s" to "10s". Default: 0s.
    """
    reorder: float | None = None
    """Part of the packets that are held up by `reorder-delay`, so that others pass them. Takes a
    number, 0 to 0.99. Default: 0.
    """
    reorder_delay: str | None = None
    """How long such a packet is held up. Takes "0s" to "10s". Default: 1ms."""


@dataclass(kw_only=True, slots=True)
class Arm(Section):
    """[[topology.arms]] of a star.

    One pool. Exactly one of `link` and `bottleneck` is given.
    """

    name: str
    """Name of the group of nodes, and of the link to the hub. Takes text."""
    nodes: int | None = None
    """How many. Takes a whole number, 1 to 10000. Default: 1."""
    access: Link
    """The link of every node to the pool's router."""
    link: Link | None = None
    """The link from the pool's router to the hub."""
    bottleneck: Bottleneck | None = None
    """The same with the scheduler under test."""


@dataclass(kw_only=True, slots=True)
class Chain(Section):
    """[topology] of kind "chain".

    Floyd's chain of congested links. Routers `1a`, `1b`, `2a`, `2b`, ...; the bottlenecks
    `hop1`, `hop2`, ... join `1a`-`1b`, `2a`-`2b`, .... Through all of them goes what `source`
    sends to `sink`; `cross1` sends to `sink1` across `hop1` alone, and so on.
    """

    KIND: ClassVar[str | None] = "chain"

    hops: int | None = None
    """Congested links. Takes a whole number, 1 to 1000. Default: 5."""
    access: Link
    """The link of every node."""
    bottleneck: Bottleneck
    """Each congested link."""
    join: Link | None = None
    """The links from one hop to the next. Default: `access`."""


@dataclass(kw_only=True, slots=True)
class Dumbbell(Section):
    """[topology] of kind "dumbbell".

    `left` nodes, a router, the bottleneck, a router, `right` nodes. The nodes are `left1`,
    `left2`, ..., `right1`, ...; the link to sample and to draw loads from is `bottleneck`.
    """

    KIND: ClassVar[str | None] = "dumbbell"

    pairs: int | None = None
    """Nodes on each side. Takes a whole number, 1 to 10000. Default: 1."""
    access: Link
    """The link of every node, see a link."""
    right_access: Link | None = None
    """The same for `right` nodes. Default: `access`."""
    bottleneck: Bottleneck
    """See a bottleneck."""


@dataclass(kw_only=True, slots=True)
class OnOff(Section):
    """[[traffic]] of kind "on-off".

    UDP at a constant rate during random periods, and silence between them.
    """

    KIND: ClassVar[str | None] = "on-off"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    rate: str
    """Rate of each while it is on. Takes "1bit" to "1000gbit"."""
    on: str | None = None
    """Length of an on period. Takes a law of times, such as "exponential:mean=5s". Default:
    exponential:mean=1s.
    """
    off: str | None = None
    """Length of an off period. Takes a law of times, such as "exponential:mean=5s". Default:
    exponential:mean=1s.
    """
    flows: int | None = None
    """How many streams of this kind, each with a phase of its own. Takes a whole number, 1 to
    100000. Default: 1.
    """
    packet: str | None = None
    """Size of a packet, IP and UDP headers included. Takes "28b" to "65535b", also in kb and mb.
    Default: 1500b.
    """


@dataclass(kw_only=True, slots=True)
class OpenLoop(Section):
    """[[traffic]] of kind "open-loop".

    Poisson arrivals without a transport: all packets of a flow leave their node at once. For
    comparison with queueing theory; the queues must be able to hold it.
    """

    KIND: ClassVar[str | None] = "open-loop"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    pick: Literal["random", "paired", "in-turn"] | None = None
    """"random": each flow draws one end from `from` and one from `to`; "paired": it draws a
    place, and takes the nodes at that place of both; "in-turn": the places one after another.
    Takes "random", "paired", "in-turn". Default: random.
    """
    load: float | None = None
    """Offered load: part of the rate of link `at`, headers included. Takes a number above 0, at
    most 10. Default: one of `load`, `rate` and `arrivals`.
    """
    rate: str | None = None
    """Offered rate, headers included. Takes "1bit" to "1000gbit". Default: see `load`."""
    arrivals: float | None = None
    """New flows a second, on average. Takes a number above 0, at most 10000000. Default: see
    `load`.
    """
    at: str | None = None
    """The link that `load` refers to. Takes text. Default: the first tested link."""
    sizes: str | None = None
    """Law of the application bytes of a flow: sizes. Takes a size law, such as
    "exponential:mean=100kb". Default: zipf:alpha=1.1,max=1000packets.
    """
    stratified: bool | None = None
    """Sizes are spread evenly over their law, in random order, and the number of flows is that
    of the mean: seeds differ less where tails are heavy. `false`: every flow draws for
    itself. Takes true or false. Default: true.
    """
    list: str | os.PathLike[str] | None = None
    """A CSV file with columns `start_s,size_bytes` instead; then neither volume nor sizes. Takes
    the path of a file, from the directory of the scenario. Default: arrivals are drawn.
    """
    packet: str | None = None
    """Size of a full packet; the last one of a flow carries the rest. Takes "28b" to "65535b",
    also in kb and mb. Default: 1500b.
    """


@dataclass(kw_only=True, slots=True)
class Record(Section):
    """[record].

    What is written with `--out`, beside blocks, links, flows and drops.
    """

    samples: str | None = None
    """How often queue and flow table of every tested link are sampled; "inf": never. Takes "1us"
    to "2592000s", or "inf". Default: 100ms.
    """
    probes: bool | None = None
    """A row per packet of a constant-rate stream. Takes true or false. Default: true."""
    progress: int | None = None
    """So many transfers have a row for each arrival of new bytes: the largest of traffic
    `transfers` and `periodic` that start after the warm-up and in the first three quarters of
    a run, of equal ones the earliest. They are the same under every scheduler. Takes a whole
    number, 0 to 1000. Default: 0.
    """
    progress_every: str | None = None
    """Of these arrivals only the first has a row in each so much of time; 0s: all have. Takes
    "0s" to "2592000s". Default: 0s.
    """


@dataclass(kw_only=True, slots=True)
class Route(Section):
    """[[topology.routes]] of a free topology.

    The way from the first node to the last, one way only. No node twice.
    """

    path: Sequence[str]
    """Every node on the way, both ends included. Takes a list of at least two nodes, each joined
    to the next.
    """


@dataclass(kw_only=True, slots=True)
class Free(Section):
    """[topology] of kind "free".

    Nodes and links as they are listed. A node exists by being named at the end of a link.
    """

    KIND: ClassVar[str | None] = "free"

    links: Sequence[FreeLink]
    """`[[topology.links]]`, at least one."""
    routes: Sequence[Route] | None = None
    """`[[topology.routes]]`, where the shortest way is not the one to take. Default: the fewest
    links, then the order of links.
    """


@dataclass(kw_only=True, slots=True)
class Star(Section):
    """[topology] of kind "star".

    Pools of nodes around a router `hub`. Each arm is a group of nodes `NAME1`, `NAME2`, ...
    on a router `NAME-router`, which a link `NAME` joins to the hub.
    """

    KIND: ClassVar[str | None] = "star"

    arms: Sequence[Arm]
    """`[[topology.arms]]`, at least two."""


@dataclass(kw_only=True, slots=True)
class Tcp(Section):
    """[tcp].

    TCP at all ends. Simulation has the presets, and what the model leaves out.
    """

    preset: Literal["rfc", "ns2", "linux", "ns3", "ns3-newreno"] | None = None
    """Where all other values come from. Takes "rfc", "ns2", "linux", "ns3", "ns3-newreno".
    Default: rfc.
    """
    congestion: Literal["reno", "cubic"] | None = None
    """Congestion avoidance: RFC 5681 or RFC 9438. Takes "reno", "cubic". Default: of the preset.
    """
    recovery: Literal["reno", "newreno", "sack"] | None = None
    """Loss recovery: RFC 5681, RFC 6582, RFC 6675. Takes "reno", "newreno", "sack". Default: of
    the preset.
    """
    mss: str | None = None
    """Most data in a segment. Takes "1b" to "65000b", also in kb and mb. Default: of the preset.
    """
    header: str | None = None
    """IP and TCP headers of every segment. Takes "20b" to "200b", also in kb and mb. Default:
    40b; 52b with timestamps.
    """
    initial_window: int | None = None
    """In segments. Takes a whole number, 1 to 1024. Default: of the preset."""
    initial_ssthresh: str | None = None
    """First slow start threshold. Takes "1b" to "1073741824b", also in kb and mb. Default: of
    the preset.
    """
    window: str | None = None
    """What the receiver advertises. Takes "1b" to "1073741824b", also in kb and mb. Default: of
    the preset.
    """
    send_buffer: str | None = None
    """Most bytes sent and not acknowledged. Takes "1b" to "1073741824b", also in kb and mb.
    Default: of the preset.
    """
    ack_every: int | None = None
    """Segments for each acknowledgment; 1: none is delayed. Takes a whole number, 1 to 1024.
    Default: of the preset.
    """
    ack_delay: str | None = None
    """Longest delay of an acknowledgment. Takes "0s" to "3600s". Default: of the preset."""
    quick_acks: int | None = None
    """First segments that are acknowledged at once. Takes a whole number, 0 to 1024. Default: of
    the preset.
    """
    syn_timeout: str | None = None
    """First timeout of the handshake; each further one is twice as long. Takes "1us" to "3600s".
    Default: of the preset.
    """
    syn_tries: int | None = None
    """SYNs before giving up. Takes a whole number, 1 to 100. Default: of the preset."""
    initial_rto: str | None = None
    """Timeout before the first measured round trip. Takes "1us" to "3600s". Default: of the
    preset.
    """
    min_rto: str | None = None
    """Least timeout. Takes "1us" to "3600s". Default: of the preset."""
    max_rto: str | None = None
    """Longest timeout, with backoff. Takes "1us" to "3600s". Default: of the preset."""
    granularity: str | None = None
    """Clock granularity of timeouts (RFC 6298). Takes "0s" to "3600s". Default: of the preset.
    """
    data_tries: int | None = None
    """Timeouts of the same data before giving up. Takes a whole number, 1 to 100. Default: of
    the preset.
    """
    dup_threshold: int | None = None
    """Duplicate acknowledgments that mean a loss. Takes a whole number, 1 to 1024. Default: of
    the preset.
    """
    limited_transmit: bool | None = None
    """RFC 3042. Takes true or false. Default: of the preset."""
    prr: bool | None = None
    """Proportional rate reduction, RFC 6937. Takes true or false. Default: of the preset."""
    tail_loss_probe: bool | None = None
    """RFC 8985, section 7, without RACK. Takes true or false. Default: of the preset."""
    slow_start: Literal["loss", "hystart", "hystart++"] | None = None
    """What ends the first slow start: a loss alone, HyStart as in Linux, RFC 9406. Takes "loss",
    "hystart", "hystart++". Default: of the preset.
    """
    timestamps: bool | None = None
    """RFC 7323. Takes true or false. Default: of the preset."""
    ecn: bool | None = None
    """RFC 3168. Takes true or false. Default: of the preset."""
    pacing: bool | None = None
    """As Linux: 200 % of window per round trip in slow start, then 120 %. Takes true or false.
    Default: of the preset.
    """


@dataclass(kw_only=True, slots=True)
class Periodic(Section):
    """[[traffic]] of kind "periodic".

    Rounds of transfers at fixed times: foreground flows to measure by.
    """

    KIND: ClassVar[str | None] = "periodic"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    flows: int | None = None
    """Transfers in a round; the ends are taken in turn. Takes a whole number, 1 to 100000.
    Default: 1.
    """
    every: str
    """Time from one round to the next. Takes "1us" to "2592000s"."""
    spread: str | None = None
    """The transfers of a round start at random within this time. Takes "0s" to "2592000s".
    Default: 0s.
    """
    size: str
    """Application bytes of a transfer. Takes "1b" to "1099511627776b", also in kb and mb."""
    tcp: Tcp | None = None
    """TCP of these flows: keys as in `[tcp]`, and those not given as there. Default: that of
    `[tcp]`.
    """


@dataclass(kw_only=True, slots=True)
class Persistent(Section):
    """[[traffic]] of kind "persistent".

    TCP flows without end: downloads beside everything else.
    """

    KIND: ClassVar[str | None] = "persistent"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    flows: int | None = None
    """How many; the ends are taken in turn. Takes a whole number, 1 to 1000000. Default: 1.
    """
    stagger: str | None = None
    """Time between one's start and the next's. Takes "0s" to "2592000s". Default: 20ms."""
    tcp: Tcp | None = None
    """TCP of these flows: keys as in `[tcp]`, and those not given as there. Default: that of
    `[tcp]`.
    """


@dataclass(kw_only=True, slots=True)
class Requests(Section):
    """[[traffic]] of kind "requests".

    Requests on connections that stay open, one at a random point of each interval, and their
    responses: what a client of a service waits for. `from` is where the responses come from.
    A response time counts from when the request was due.
    """

    KIND: ClassVar[str | None] = "requests"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    flows: int | None = None
    """Connections; the ends are taken in turn. Takes a whole number, 1 to 100000. Default: 1.
    """
    every: str | None = None
    """The interval. Takes "1us" to "2592000s". Default: 250ms."""
    request: str | None = None
    """Application bytes of a request. Takes "1b" to "1073741824b", also in kb and mb. Default:
    300b.
    """
    size: str | None = None
    """Application bytes of a response. Takes "1b" to "1073741824b", also in kb and mb. Default:
    4000b.
    """
    tcp: Tcp | None = None
    """TCP of these flows: keys as in `[tcp]`, and those not given as there. Default: that of
    `[tcp]`.
    """


@dataclass(kw_only=True, slots=True)
class Trace(Section):
    """[[traffic]] of kind "trace".

    UDP packets at listed times.
    """

    KIND: ClassVar[str | None] = "trace"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    list: str | os.PathLike[str]
    """A CSV file with columns `time_s,packet_bytes,stream`: headers included, any number of
    streams; times count from `start`. The first of `from` sends to the first of `to`. Takes
    the path of a file, from the directory of the scenario.
    """


@dataclass(kw_only=True, slots=True)
class Transfers(Section):
    """[[traffic]] of kind "transfers".

    Poisson arrivals; each opens a TCP connection, transfers so many bytes one way, and
    closes.
    """

    KIND: ClassVar[str | None] = "transfers"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    pick: Literal["random", "paired", "in-turn"] | None = None
    """"random": each flow draws one end from `from` and one from `to`; "paired": it draws a
    place, and takes the nodes at that place of both; "in-turn": the places one after another.
    Takes "random", "paired", "in-turn". Default: random.
    """
    load: float | None = None
    """Offered load: part of the rate of link `at`, headers included. Takes a number above 0, at
    most 10. Default: one of `load`, `rate` and `arrivals`.
    """
    rate: str | None = None
    """Offered rate, headers included. Takes "1bit" to "1000gbit". Default: see `load`."""
    arrivals: float | None = None
    """New flows a second, on average. Takes a number above 0, at most 10000000. Default: see
    `load`.
    """
    at: str | None = None
    """The link that `load` refers to. Takes text. Default: the first tested link."""
    sizes: str | None = None
    """Law of the application bytes of a flow: sizes. Takes a size law, such as
    "exponential:mean=100kb". Default: zipf:alpha=1.1,max=1000packets.
    """
    stratified: bool | None = None
    """Sizes are spread evenly over their law, in random order, and the number of flows is that
    of the mean: seeds differ less where tails are heavy. `false`: every flow draws for
    itself. Takes true or false. Default: true.
    """
    list: str | os.PathLike[str] | None = None
    """A CSV file with columns `start_s,size_bytes` instead; then neither volume nor sizes. Takes
    the path of a file, from the directory of the scenario. Default: arrivals are drawn.
    """
    tcp: Tcp | None = None
    """TCP of these flows: keys as in `[tcp]`, and those not given as there. Default: that of
    `[tcp]`.
    """


@dataclass(kw_only=True, slots=True)
class Web(Section):
    """[[traffic]] of kind "web".

    Users who open a page, think, and open the next. Each object of a page is asked for on a
    connection of its own. A page is complete with its last object; only then does its user
    think. `from` is where pages are, `to` where users are; every page draws its server.
    """

    KIND: ClassVar[str | None] = "web"

    name: str | None = None
    """Its name in results; each is used once. Takes text. Default: its kind."""
    from_: str | Sequence[str] | None = None
    """Where its data come from. Takes a node or a group of nodes, or a list of these. Default:
    `left` of a dumbbell.
    """
    to: str | Sequence[str] | None = None
    """Where its data go. Takes a node or a group of nodes, or a list of these. Default: `right`
    of a dumbbell.
    """
    start: str | None = None
    """When it starts. Takes "0s" to "2592000s". Default: 0s."""
    dscp: int | None = None
    """DSCP of its packets, of acknowledgments too, for schedulers with weights or classes; an
    `edge` replaces it. Takes a whole number, 0 to 63. Default: 0.
    """
    rows: bool | None = None
    """Whether its flows have rows in table `flows`: of many small ones that nobody looks at,
    rows are most of the results. Takes true or false. Default: true.
    """
    stop: str | None = None
    """Nothing of it starts from then on; later than `start`. Takes "1us" to "2592000s". Default:
    the end of the run.
    """
    users: int | None = None
    """How many; they stay from the start to the end. Takes a whole number, 1 to 1000000.
    Default: 10.
    """
    think: str | None = None
    """From a complete page to the next. Takes a law of times, such as "exponential:mean=5s".
    Default: exponential:mean=9.5s.
    """
    objects: str | None = None
    """Objects of a page. Takes a law of numbers, such as "uniform:min=2,max=7". Default:
    uniform:min=2,max=7.
    """
    gap: str | None = None
    """From one object to the next. Takes a law of times, such as "exponential:mean=5s". Default:
    exponential:mean=50ms.
    """
    sizes: str | None = None
    """Law of the bytes of an object. Takes a size law, such as "exponential:mean=100kb".
    Default: bounded-pareto:shape=1.2,min=2kb,max=10mb.
    """
    request: str | None = None
    """Bytes that an object is asked for with. Takes "1b" to "1073741824b", also in kb and mb.
    Default: 300b.
    """
    connections: int | None = None
    """Connections of a user at a time; further objects wait. Takes a whole number, 1 to 1000.
    Default: 6.
    """
    tcp: Tcp | None = None
    """TCP of these flows: keys as in `[tcp]`, and those not given as there. Default: that of
    `[tcp]`.
    """
