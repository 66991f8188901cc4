"""Maturin, and without the engines of `attach` where there is no clang or libelf to build them."""

import os
import subprocess

from maturin import *  # noqa: F403


def _lacks() -> str:
    """What the engines are missing here, in words, as `make build` finds out."""
    asked = ["scripts/setup.sh", "lacks"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


# Maturin reads its arguments here; what a user has said goes before.
if _lacks():
    os.environ.setdefault("MATURIN_PEP517_ARGS", "--no-default-features")
