"""Each planted bug still has the place that it is planted in."""

from __future__ import annotations

import pytest
from planted import BUGS, SOURCES


@pytest.mark.parametrize("bug", BUGS, ids=[bug[0] for bug in BUGS])
def test_its_line_is_there_once(bug: tuple[str, ...]) -> None:
    _, _, name, right, wrong = bug
    assert right != wrong
    assert (SOURCES / name).read_text().count(right) == 1
