"""The notebooks of docs/notebooks run as they stand."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.long

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    shown = [figures(cell) for cell in notebook.cells]
    where = {"metadata": {"path": tmp_path}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    assert [figures(cell) for cell in notebook.cells] == shown, "a figure is missing"


def figures(cell):
    """How many pictures a cell shows."""
    return sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
