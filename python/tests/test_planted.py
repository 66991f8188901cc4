"""Planted faults have their places, and the committed page is that of those that are planted."""

import subprocess
import sys

import pytest
from commands import ROOT

VALIDATION = ROOT / "validation"
SCRIPT = VALIDATION / "plants.py"
PAGE = ROOT / "docs" / "planted.md"

if not SCRIPT.is_file():
    pytest.skip("not a checkout", allow_module_level=True)
sys.path.insert(0, str(VALIDATION))

import faults  # noqa: E402


def test_the_committed_page_lists_every_planted_fault(tmp_path):
    made = tmp_path / "planted.md"
    subprocess.run([sys.executable, SCRIPT, "--into", made], check=True)
    assert PAGE.read_text() == made.read_text(), "make it: validation/plants.py"
    rows = [line for line in made.read_text().splitlines() if line.count("`") == 4]
    listed = "".join(path.read_text() for path in VALIDATION.glob("*/plants.txt"))
    assert len(rows) > listed.count("\n== ") > 0


@pytest.mark.parametrize(
    ("proof", "sources"), [("prove", "crates/engine/bpf"), ("loom", "crates/engine/src")]
)
def test_the_lines_of_every_planted_fault_are_once_in_their_file(proof, sources):
    listed = faults.listed(VALIDATION / proof / "plants.txt")
    assert len(listed) > 10
    assert faults.misplaced(listed, ROOT / sources) == []
    assert all(fault.old != fault.new for fault in listed)
