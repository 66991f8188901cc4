"""A scenario that takes a fraction of a second."""

from shortlane.scenario import Bottleneck, Cbr, Dumbbell, Link, Record, Scenario, Tcp, Transfers

SCENARIO = Scenario(
    title='Voice and "web"',
    duration="6s",
    warm_up="1s",
    seeds=[3, 4],
    schedulers=["fifo", "efd"],
    topology=Dumbbell(
        pairs=2,
        access=Link(rate="100mbit", delay="1ms"),
        bottleneck=Bottleneck(rate="4mbit", delay="10ms", limit="5packets"),
    ),
    traffic=[
        Transfers(load=0.7, sizes="exponential:mean=20kb", tcp=Tcp(window="32kb")),
        Cbr(name="voice", rate="64kbit", packet="160b", from_=["left1"], to="right"),
    ],
    record=Record(samples="10ms", progress=2),
)
