"""The committed page of planted faults is that of the faults that are planted."""

import subprocess
import sys

import pytest
from commands import ROOT

SCRIPT = ROOT / "validation" / "plants.py"
PAGE = ROOT / "docs" / "planted.md"


def test_the_committed_page_lists_every_planted_fault(tmp_path):
    if not SCRIPT.is_file():
        pytest.skip("not a checkout")
    made = tmp_path / "planted.md"
    subprocess.run([sys.executable, SCRIPT, "--into", made], check=True)
    assert PAGE.read_text() == made.read_text(), "make it: validation/plants.py"
    faults = [line for line in made.read_text().splitlines() if line.count("`") == 4]
    listed = "".join(path.read_text() for path in (ROOT / "validation").glob("*/plants.txt"))
    assert len(faults) > listed.count("\n== ") > 0
