"""Disciplines as objects."""

import inspect
import math
import threading

import pytest
import shortlane
from shortlane import disciplines
from shortlane.disciplines import Codel, Efd, Fifo, FqCodel, Packet, Srpt, named

from scenarios import SCENARIO


def drain(discipline, now):
    packets = []
    while isinstance(packet := discipline.dequeue(now), Packet):
        packets.append(packet)
    return packets


def test_a_short_flow_overtakes_a_long_one():
    efd = Efd(threshold=2, limit="10packets")
    for number in range(3):
        assert efd.enqueue(flow=7, size=1500, id=number, now=0.0) == []
    efd.enqueue(Packet(8, 100, id=3))
    assert (efd.backlog.packets, efd.backlog.bytes, efd.flows) == (4, 4600, 2)
    assert [packet.id for packet in drain(efd, 0.001)] == [0, 1, 3, 2]
    assert efd.dequeue(0.002) is None


def test_decisions_are_told_in_order():
    efd = Efd(threshold=1)
    efd.enqueue(flow=7, size=1500, id=1)
    assert [event.kind for event in efd.events] == ["flow-created", "enqueued"]
    efd.enqueue(flow=7, size=1500, id=2)
    assert [(e.kind, e.packet, e.lane) for e in efd.events] == [
        ("demoted", None, None),
        ("enqueued", 2, 1),
    ]


def test_what_is_lost_comes_back():
    fifo = Fifo(limit=1)
    fifo.enqueue(flow=1, size=1500)
    (dropped,) = fifo.enqueue(flow=2, size=40, id=9)
    assert (dropped.packet, dropped.reason, dropped.lane) == (Packet(2, 40, id=9), "full", 0)
    assert fifo.dropped == [dropped]
    assert fifo.events[-1].kind == "dropped"
    fifo.dequeue()
    assert fifo.dropped == []


def test_codel_marks_what_may_be_marked():
    codel = Codel(ecn=True, target="5ms", interval="100ms")
    for number in range(400):
        codel.enqueue(flow=1, size=1500, ecn=2, id=number, now=0.0)
    # A packet every 10 ms: the delay stands far above the target.
    packets = [codel.dequeue(0.01 * step) for step in range(1, 300)]
    assert any(packet.marked for packet in packets)
    assert not packets[0].marked


def test_a_discipline_may_ask_to_wait():
    sb = disciplines.Sb(cap_high="1mbit")
    for _ in range(2):
        sb.enqueue(flow=1, size=1500, now=0.0)
    assert isinstance(sb.dequeue(0.0), Packet)
    # 1500 bytes at 1 Mbit/s.
    assert repr(sb.dequeue(0.0)) == "Wait(until=0.012)"
    assert isinstance(sb.dequeue(0.012), Packet)


@pytest.mark.parametrize("info", shortlane.schedulers(), ids=lambda info: info["name"])
def test_every_discipline_has_its_class(info):
    kind = named(info["name"])
    assert kind.__name__.lower() == info["name"].replace("-", "").replace("+", "plus")
    assert kind.__name__[0].isupper()
    assert getattr(disciplines, kind.__name__) is kind
    assert kind.__name__ in disciplines.__all__
    parameters = inspect.signature(kind).parameters
    expected = [p["name"].replace("-", "_") for p in info["params"]]
    assert list(parameters) == [*expected, "seed"]
    for parameter in info["params"]:
        name = parameter["name"].replace("-", "_")
        assert parameters[name].default == parameter["default"]
        assert f"    {name}: {parameter['range']}" in kind.__doc__
    discipline = kind()
    assert discipline.parameters == {p["name"]: p["default"] for p in info["params"]}
    assert str(discipline) == info["name"]
    assert discipline.enqueue(flow=1, size=100, offset=0, flow_size=100, now=0.0) == []
    assert [packet.size for packet in drain(discipline, 1.0)] == [100]


def test_hosts_are_told_apart():
    cake = disciplines.Cake(isolation="dsthost", rate="1mbit")
    for flow in range(1, 11):
        cake.enqueue(flow=flow, size=60, destination=2)
    cake.enqueue(flow=11, size=60, destination=3)
    # A queue's first turn is 300 bytes.
    assert [packet.destination for packet in drain(cake, 0.0)] == [2] * 5 + [3] + [2] * 5


def test_numbers_take_the_unit_of_the_parameter():
    assert str(Efd(threshold=30, low_share=0.1, hold_on_wire=True)) == (
        "efd:threshold=30packets,low-share=0.1,hold-on-wire=yes"
    )
    assert (
        str(Codel(target=0.005, mtu=1500, interval=1)) == "codel:target=5ms,interval=1s,mtu=1500b"
    )
    assert str(disciplines.Sb(cap_high=5_000_000, idle=math.inf)) == "sb:cap-high=5mbit,idle=inf"
    assert str(FqCodel(limit="30kb")) == "fq-codel:limit=30kb"
    same = shortlane.simulate(SCENARIO, schedulers=[Fifo(limit=10)], seeds=1, tables=["blocks"])
    assert same.blocks["scheduler"].to_list() == ["fifo:limit=10packets"]


def test_parameters_change_while_packets_are_queued():
    fifo = Fifo(limit=3)
    for _ in range(3):
        fifo.enqueue(flow=1, size=100)
    fifo.change(limit=1)
    assert fifo.backlog.packets == 3
    assert fifo.parameters["limit"] == "1packets"
    (dropped,) = fifo.enqueue(flow=1, size=100)
    assert dropped.reason == "full"
    efd = Efd(threshold=5)
    with pytest.raises(shortlane.InputError, match="flows cannot change while the discipline runs"):
        efd.change(threshold=7, flows=5)
    assert efd.parameters["threshold"] == "5packets"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Efd(treshold=2), "efd has no parameter 'treshold'; it has limit, threshold"),
        (lambda: Efd(threshold="soon"), "threshold=soon is not accepted; threshold takes 0 to"),
        (lambda: Efd(threshold=-1), "threshold=-1packets is not accepted"),
        (lambda: Efd(threshold=None), "None is not accepted: a parameter takes text or a number"),
        (lambda: Efd(limit=0), "limit=0packets is not accepted; limit takes 1 to"),
        (lambda: Packet(0, 100), "flow 0 is not accepted: it takes 1 to 18446744073709551615"),
        (lambda: Packet(1, 0), "size 0 is not accepted: it takes 1 to 4294967295"),
        (lambda: Packet(1, 1, ecn=4), "ecn 4 is not accepted: it takes 0 to 3"),
        (lambda: Packet(1, 1, offset=2**64), "offset 18446744073709551616 is not accepted"),
        (lambda: Fifo().enqueue(Packet(1, 1), size=2), "a packet or the fields of one, not both"),
        (lambda: Fifo().dequeue(-1), "now -1 is not accepted: it takes seconds from 0 to 3e9"),
        (lambda: Fifo().dequeue(math.nan), "now NaN is not accepted"),
        (lambda: named("sfq"), "no discipline is named 'sfq'; there are fifo, efd"),
    ],
)
def test_what_is_not_accepted_is_named(call, said):
    with pytest.raises(shortlane.InputError) as caught:
        call()
    assert said in str(caught.value)


def test_time_does_not_go_back():
    fifo = Fifo()
    fifo.enqueue(flow=1, size=100, now=2.0)
    with pytest.raises(
        shortlane.InputError, match=r"now 1\.5 is before 2, when the latest call was"
    ):
        fifo.dequeue(1.5)
    assert fifo.dequeue().flow == 1


def test_without_a_name_there_is_no_discipline():
    with pytest.raises(TypeError, match="made by its own class, such as Efd"):
        disciplines.Discipline()
    with pytest.raises(TypeError, match="size"):
        Fifo().enqueue(flow=1)


def test_a_packet_says_what_it_was_given():
    assert (
        repr(Packet(1, 100, ecn=2, flow_size=5)) == "Packet(flow=1, size=100, ecn=2, flow_size=5)"
    )
    assert Packet(1, 100) == Packet(1, 100)
    assert len({Packet(1, 100), Packet(1, 100), Packet(1, 101)}) == 2
    with pytest.raises(AttributeError):
        Packet(1, 100).size = 5
    srpt = Srpt()
    srpt.enqueue(flow=1, size=100, flow_size=9000)
    srpt.enqueue(flow=2, size=100, flow_size=100)
    assert srpt.dequeue() == Packet(2, 100, flow_size=100)


def test_a_discipline_may_be_used_from_several_threads():
    fifo = Fifo(limit=100_000)

    def work(flow):
        for number in range(2000):
            fifo.enqueue(flow=flow, size=100, id=number)

    threads = [threading.Thread(target=work, args=[flow]) for flow in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fifo.backlog.packets == 8000
