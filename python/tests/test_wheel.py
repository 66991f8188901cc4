"""The wheel in a fresh virtual environment, as a new user has it."""

import os
import re
import shutil
import site
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest
from commands import ROOT

pytestmark = pytest.mark.long

#: That of `make wheel PROFILE=dev`, which has everything compiled that tests have.
WHEELS = ROOT / "target" / "wheels" / "dev"
PYENV = Path.home() / ".pyenv" / "versions"


def call(*command, **options):
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="module")
def wheel():
    made = call("make", "--no-print-directory", "wheel", "PROFILE=dev", cwd=ROOT)
    assert made.returncode == 0, made.stderr
    (wheel,) = WHEELS.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """An environment with the wheel; what it depends on is that of this Python."""
    place = tmp_path_factory.mktemp("fresh")
    venv.create(place, with_pip=True, symlinks=True)
    installed = call(place / "bin/python", "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    (packages,) = place.glob("lib/python3*/site-packages")
    (packages / "borrowed.pth").write_text("\n".join(site.getsitepackages()))
    return place / "bin"


@pytest.fixture
def clean(tmp_path):
    """Arguments of a process that sees nothing of the sources."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {"cwd": tmp_path, "env": environment}


def test_it_is_one_for_all_pythons_from_3_11_on(wheel):
    assert re.fullmatch(r"shortlane-[\d.]+-cp311-abi3-\w*linux\w*\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as held:
        (metadata,) = (name for name in held.namelist() if name.endswith("dist-info/METADATA"))
        assert "\nRequires-Python: >=3.11\n" in held.read(metadata).decode()
        parts = {"shortlane/py.typed", "shortlane/sections.pyi", "shortlane/disciplines.pyi"}
        parts |= {"shortlane/report/page.css", "shortlane/report/page.js"}
        assert parts | {"shortlane/papers/efd/findings.md"} <= set(held.namelist())


def test_the_command_and_the_library_work(fresh, clean):
    listed = call(fresh / "shortlane", "list", "efd", **clean)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.startswith("efd: ")
    code = """
import shortlane
results = shortlane.simulate("home-link", schedulers=["fifo"], seeds=[1], duration="20s")
assert len(results.flows) > 10 and len(results.links) == 2, results
assert shortlane.__file__.endswith("site-packages/shortlane/__init__.py"), shortlane.__file__
print(shortlane.disciplines.Efd(threshold=3))
"""
    used = call(fresh / "python", "-c", code, **clean)
    assert (used.stdout, used.returncode) == ("efd:threshold=3packets\n", 0), used.stderr


@pytest.mark.skipif(not (ROOT / "papers").is_dir(), reason="no papers in these sources")
def test_what_it_takes_to_run_papers_comes_with_it(wheel):
    needed = [".toml", ".csv", "stats.py", "figures.py"]
    papers = (ROOT / "papers").glob("*/*")
    wanted = {path.relative_to(ROOT) for path in papers if path.name.endswith(tuple(needed))}
    assert all(any(str(path).endswith(end) for path in wanted) for end in needed)
    with zipfile.ZipFile(wheel) as held:
        assert {f"shortlane/{path}" for path in wanted} <= set(held.namelist())


@pytest.mark.skipif(not (ROOT / "papers").is_dir(), reason="no papers in these sources")
def test_a_paper_of_the_wheel_can_be_run(fresh, clean):
    """Its own statistics and figures are found in the installed package."""
    options = ["--quick", "--rows", "C-TOY", "--out", "toy"]
    ran = call(fresh / "shortlane", "paper", "fair-service-curve", *options, **clean)
    assert ran.returncode == 0, ran.stderr
    assert "C-TOY" in ran.stdout


def older_pythons():
    found = [shutil.which(f"python3.{minor}") for minor in (8, 9, 10)]
    found += [str(path) for path in PYENV.glob("3.*/bin/python3")]
    script = "import sys, pip; sys.exit(not sys.version_info < (3, 11))"
    return [path for path in found if path and call(path, "-c", script).returncode == 0]


def test_a_python_that_is_too_old_is_told_so(wheel):
    old = older_pythons()
    if not old:
        pytest.skip("no Python before 3.11 here")
    refused = call(old[0], "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    assert refused.returncode != 0
    assert f"{wheel.name} is not a supported wheel on this platform" in refused.stderr
