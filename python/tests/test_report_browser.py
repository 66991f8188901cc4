"""The report in headless Chromium, without network: quiet, drawn, readable on a telephone."""

import re

import pytest
import shortlane
from commands import run
from report_help import opened, rewritten
from shortlane import report
from shortlane.scenario import Scenario

from scenarios import SCENARIO

pytestmark = pytest.mark.long

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "out"
    shortlane.simulate(SCENARIO, progress=None).write(place)
    return place


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    return report.write(folder, tmp_path_factory.mktemp("page") / "page.html")


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (400, False), (1280, True), (400, True)]
)
def test_every_chart_is_drawn(page, width, dark):
    with opened(page, width=width, dark=dark) as shown:
        assert shown.check() >= 6
        # Text is of a size to read, and of the page's font.
        texts = shown.ask(
            "[...document.querySelectorAll('.chart svg text')].map(one =>"
            " [one.getBoundingClientRect().height, getComputedStyle(one).fontFamily])"
        )
        assert min(height for height, _ in texts if height) >= 9
        assert all("system-ui" in family for _, family in texts)


def test_nothing_that_is_referred_to_is_missing_or_two_things(page):
    """Marks and clips of all charts share one document."""
    text = page.read_text()
    defined = re.findall(
        r'<(path|clipPath|pattern) id="(\w+)"(.*?)(?:/>|</clipPath>|</pattern>)', text
    )
    by_id = {}
    for kind, name, content in defined:
        assert by_id.setdefault(name, (kind, content)) == (kind, content)
    used = set(re.findall(r'(?:url\(#|href="#)(\w+)', text))
    assert used
    assert used <= set(by_id)


def test_details_open_without_widening_the_page(page):
    with opened(page, width=400) as shown:
        shown.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
        wide, window = shown.ask("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= window


def test_the_key_sets_a_scheduler_apart_in_every_chart(page):
    with opened(page) as shown:
        shown.page.click(".key button:nth-child(2)")
        faded = (
            "[...document.querySelectorAll('.chart svg')].map(svg => ['series-0', 'series-1'].map("
            "name => [...svg.getElementsByClassName(name)].map(g => getComputedStyle(g).opacity)))"
        )
        for fifo, efd in shown.ask(faded):
            assert set(fifo) <= {"0.12"}
            assert set(efd) <= {"1"}
            assert efd
        shown.page.click(".key button:nth-child(2)")
        assert all(set(fifo) <= {"1"} for fifo, _ in shown.ask(faded))
        shown.check()


def test_text_is_light_on_dark_and_dark_on_light(page):
    for dark in (False, True):
        with opened(page, dark=dark) as shown:
            ink = shown.ask("getComputedStyle(document.querySelector('.chart svg text')).fill")
            red = int(ink.removeprefix("rgb(").split(",")[0])
            assert (red > 200) == dark


def test_hostile_names_stay_text(folder, tmp_path):
    hostile = rewritten(
        folder,
        tmp_path / "hostile",
        scheduler={"efd": HOSTILE},
        stream={"voice": HOSTILE},
        link={"bottleneck": HOSTILE},
    )
    made = report.write(hostile, tmp_path / "hostile.html")
    with opened(made) as shown:
        shown.check()
        assert HOSTILE in shown.ask("document.body.innerText")
        shown.page.click(".key button:nth-child(2)")
        assert (
            shown.ask("document.querySelectorAll('.chart [style*=\"opacity: 0.12\"]').length") > 0
        )
        assert shown.complaints == []


@pytest.mark.parametrize("gone", ["flows", "samples", "blocks", "run.json"])
def test_parts_of_a_folder_are_drawn(folder, tmp_path, gone):
    part = rewritten(folder, tmp_path / "part")
    (part / (gone if "." in gone else f"{gone}.parquet")).unlink()
    made = report.write(part, tmp_path / "part.html")
    with opened(made) as shown:
        assert shown.check() > 0
        assert "incomplete" in shown.ask("document.querySelector('.notice').innerText")


def test_one_scheduler_and_one_seed_are_enough(tmp_path):
    alone: Scenario = SCENARIO
    shortlane.simulate(alone, schedulers=["las"], seeds=1, progress=None).write(tmp_path / "one")
    with opened(report.write(tmp_path / "one", tmp_path / "one.html"), width=400) as shown:
        assert shown.check() > 0


def test_a_replay_s_folder_is_drawn(tmp_path):
    events = [(at * 2_000_000, 1200) for at in range(400)]
    capture = tmp_path / "a.pcap"
    capture.write_bytes(pcap(events))
    done = run(
        "replay",
        str(capture),
        "--rate",
        "4mbit",
        "--limit",
        "20packets",
        "--out",
        str(tmp_path / "replay"),
    )
    assert done.returncode == 0, done.stderr
    with opened(report.write(tmp_path / "replay", tmp_path / "replay.html")) as shown:
        assert shown.check() > 0
        assert "Mean time of a packet in the queue" in shown.ask("document.body.innerText")


def pcap(packets):
    """UDP packets (ns, bytes) of four flows, as a capture with Ethernet headers."""
    import struct

    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for number, (at, size) in enumerate(packets):
        ip = struct.pack(
            ">BBHHHBBH4s4s",
            0x45,
            0,
            size - 14,
            0,
            0,
            64,
            17,
            0,
            bytes([10, 0, 0, 1]),
            bytes([10, 0, 0, 2]),
        )
        udp = struct.pack(">HHHH", 1000 + number % 4, 53, size - 34, 0)
        frame = (bytes(12) + b"\x08\x00" + ip + udp).ljust(size, b"\0")
        out.append(struct.pack("<IIII", at // 10**9, at % 10**9 // 1000, size, size) + frame)
    return b"".join(out)
