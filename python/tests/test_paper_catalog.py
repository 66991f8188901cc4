"""A paper is a folder: its code is found beside its claims, wherever the folder is."""

import shutil

import pytest
from shortlane.errors import InputError
from shortlane.paper import catalog, data
from shortlane.paper.shared import SHARED


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(data.folder("las"), tmp_path / "las")


def test_a_folder_elsewhere_has_code_of_its_own(folder):
    """As an installed package is given a folder that it has never seen."""
    file = folder / "stats.py"
    file.write_text(file.read_text().replace('"lost-ratio"', '"lost-share"'))
    changed, own = (catalog.code(one, "stats") for one in (folder, data.folder("las")))
    assert "lost-share" in changed.STATISTICS
    assert "lost-share" not in own.STATISTICS
    # Its figures are drawn with its own statistics.
    assert catalog.code(folder, "figures").received is changed.received
    with pytest.raises(InputError, match=r"statistic = 'lost-ratio'; it takes .*lost-share"):
        catalog.known(str(folder))


def test_a_folder_without_code_has_the_shared_statistics(folder):
    for name in ("stats.py", "figures.py"):
        (folder / name).unlink()
    assert catalog.code(folder, "figures") is None
    with pytest.raises(InputError, match="it takes ") as refused:
        catalog.known(str(folder))
    assert all(name in str(refused.value) for name in SHARED)


@pytest.mark.parametrize("content", ["import nothing_of_that_name\n", "def broken(:\n"])
def test_code_that_cannot_be_read_is_named(folder, content):
    (folder / "stats.py").write_text(content)
    with pytest.raises(InputError, match=r"stats\.py: cannot be imported: ") as refused:
        catalog.known(str(folder))
    assert "\n" not in str(refused.value)


def test_every_paper_has_its_code_in_its_folder():
    for name in data.names():
        paper, statistics, figures = catalog.known(name)
        assert figures is not None
        needed = {row.figure for row in paper.rows if row.figure}
        assert needed <= {figure.id for figure in figures.FIGURES}, name
        used = {check.statistic for row in paper.rows for check in row.measured}
        # What no claim asks for is dead.
        assert set(statistics) - set(SHARED) <= used, name
