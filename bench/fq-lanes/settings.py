"""The settings that fq-lanes is judged on, as scenario files."""

from __future__ import annotations

from dataclasses import dataclass, field

FLOOD = """
[[traffic]]
name = "flood"
kind = "open-loop"
rate = "{rate}"
sizes = "fixed:size=100b"
packet = "128b"
from = "{source}"
to = "{sink}"
rows = false
"""

MANY = """
[[traffic]]
name = "many"
kind = "persistent"
flows = 32
from = "left2"
to = "right2"
"""


@dataclass(frozen=True)
class Setting:
    """A link, and who is on it beside voice, video and requests."""

    title: str
    rate: str = "10mbit"
    #: One way, beside 1 ms at the ends.
    delay_ms: int = 9
    load: float = 0.4
    downloads: int = 2
    #: Of the stream that is called video.
    video: str = "500kbit"
    seconds: int = 40
    ecn: bool = False
    congestion: str = "cubic"
    extra: str = ""
    #: Hosts on each side; all traffic that is not extra is of the first.
    pairs: int = 1
    #: The host that transfers go to.
    browsing: str = "right1"

    def scenario(self, seeds: str) -> str:
        """A scenario file."""
        from_first = 'from = "left1"\nto = "right1"'
        downloads = f"""
[[traffic]]
name = "downloads"
kind = "persistent"
flows = {self.downloads}
{from_first}"""
        from_browsed = f'from = "{self.browsing.replace("right", "left")}"\nto = "{self.browsing}"'
        return f"""
[scenario]
title = "{self.title}"
duration = "{self.seconds}s"
warm-up = "5s"
seeds = "{seeds}"

[topology]
kind = "dumbbell"
pairs = {self.pairs}
access = {{ rate = "1gbit", delay = "500us" }}

[topology.bottleneck]
rate = "{self.rate}"
delay = "{self.delay_ms}ms"
limit = "1000packets"
back-scheduler = "fifo"

[schedulers]
run = ["fq-codel", "fq-lanes"]

[tcp]
preset = "linux"
congestion = "{self.congestion}"
ecn = {str(self.ecn).lower()}

[[traffic]]
kind = "transfers"
load = {self.load}
sizes = "zipf:alpha=1.1,max=1000packets"
{from_browsed}

[[traffic]]
name = "voice"
kind = "cbr"
rate = "64kbit"
packet = "160b"
{from_first}

[[traffic]]
name = "video"
kind = "cbr"
rate = "{self.video}"
packet = "1250b"
{from_first}

[[traffic]]
name = "service"
kind = "requests"
{from_first}
{downloads if self.downloads else ""}
{self.extra}"""


@dataclass(frozen=True)
class Settings:
    """By the names that tables have."""

    all: dict[str, Setting] = field(
        default_factory=lambda: {
            "10mbit": Setting("10 Mbit/s, 2 downloads"),
            "16 downloads": Setting("10 Mbit/s, 16 downloads", downloads=16),
            "load 0.9": Setting("10 Mbit/s, 2 downloads, transfers of 0.9 of the link", load=0.9),
            "2mbit": Setting("2 Mbit/s", rate="2mbit", seconds=100),
            "50mbit": Setting("50 Mbit/s, 4 downloads", rate="50mbit", downloads=4, seconds=25),
            "100mbit": Setting("100 Mbit/s", rate="100mbit", seconds=20),
            "80 ms": Setting("20 Mbit/s, RTT 80 ms", rate="20mbit", delay_ms=39, seconds=60),
            "idle": Setting(
                "10 Mbit/s, no downloads, a video of 2 Mbit/s",
                load=0.1,
                downloads=0,
                video="2mbit",
            ),
            "ecn": Setting("10 Mbit/s, ECN", ecn=True),
            "reno": Setting("10 Mbit/s, Reno", congestion="reno"),
            "bbr": Setting("10 Mbit/s, BBR", congestion="bbr"),
            "bbr 50mbit": Setting(
                "50 Mbit/s, 4 downloads of BBR",
                rate="50mbit",
                downloads=4,
                seconds=25,
                congestion="bbr",
            ),
            "other floods": Setting(
                "another host gets one-packet flows at 1.2 of the link",
                pairs=2,
                extra=FLOOD.format(rate="12mbit", source="left2", sink="right2"),
            ),
            "own flood": Setting(
                "the host itself gets one-packet flows at 1.2 of the link",
                extra=FLOOD.format(rate="12mbit", source="left1", sink="right1"),
            ),
            "32 beside 1": Setting(
                "another host has 32 downloads, this one has one",
                pairs=2,
                downloads=1,
                load=0.05,
                extra=MANY,
            ),
            "two hosts": Setting(
                "one host downloads and talks, another browses", pairs=2, browsing="right2"
            ),
        }
    )
