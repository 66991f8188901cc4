"""Tests see the package of this checkout, and so do the commands they start, from any directory."""

import os
import sys
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1])

sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = PACKAGE
