"""The command of the package under test, as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHORTLANE = [sys.executable, "-m", "shortlane"]


def environment() -> dict[str, str]:
    """That of this process, with the package that is tested on the path."""
    paths = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """`shortlane` with these arguments, to its end."""
    return subprocess.run(
        [*SHORTLANE, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def start(command: list[str], **options) -> subprocess.Popen[str]:
    """A process whose output is read as it comes."""
    return subprocess.Popen(
        command,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
