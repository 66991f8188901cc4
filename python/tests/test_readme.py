"""The README is short, and its picture is what its script draws from a run of the lab."""

import json
import re
import subprocess
import sys

import pytest
from commands import ROOT, environment

SCRIPT = ROOT / "scripts" / "picture.py"


def scheduler(name, short, voice, rate):
    return {
        "scheduler": name,
        "classes": [
            {"packets": "<=20", "completion_ms": {"mean": {"value": short, "interval": None}}},
            {"packets": "20-100", "completion_ms": {"mean": {"value": 1e6, "interval": None}}},
        ],
        "voice": {"delay_ms": {"p95": {"value": voice}}, "sent": 1000, "lost": 12},
        "downloads_mbit": {"value": rate, "interval": [rate - 0.2, rate + 0.2]},
    }


@pytest.fixture
def run(tmp_path):
    found = {
        "scenario": {
            "rate_bps": 20_000_000,
            "rtt_ns": 30_000_000,
            "tcp": ["bbr"],
            "downloads": 3,
            "transfers": {"load": 0.25},
        },
        "summary": {
            "rounds": 7,
            "schedulers": [scheduler("efd", 51.2, 13.4, 6.55), scheduler("fifo", 800, 341, 7)],
        },
    }
    file = tmp_path / "lab.json"
    file.write_text(json.dumps(found))
    return file


def draw(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def test_the_picture_has_the_numbers_of_the_run(run, tmp_path):
    drawn = draw(run, "--only", "fifo,efd", "--out", tmp_path)
    assert (drawn.returncode, drawn.stderr) == (0, "")
    pictures = [(tmp_path / f"picture-{name}.svg").read_text() for name in ("light", "dark")]
    for picture in pictures:
        texts = re.findall(r">([^<>]+)</(?:text|tspan)>", picture)
        for wanted in ("FIFO", "EFD", "800", "51", "341 (1.2 % lost)", "13 (1.2 % lost)", "6.5"):
            assert wanted in texts
        assert any("20 Mbit/s, 30 ms; BBR" in text and "7 rounds" in text for text in texts)
    assert pictures[0] != pictures[1]


def test_a_discipline_that_the_run_lacks_is_named(run, tmp_path):
    refused = draw(run, "--only", "fifo,las", "--out", tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == f"{run}: has efd, fifo; --only asks for las\n"


def test_the_readme_fits_two_screens_and_shows_both_pictures():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    for picture in ("docs/picture-light.svg", "docs/picture-dark.svg"):
        assert picture in text
        assert (ROOT / picture).read_text().startswith("<svg")
