"""Why the two differ where they do: each cause named, and the rows it accounts for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from results import Row


@dataclass(frozen=True)
class Cause:
    name: str
    text: str
    applies: Callable[[Row], bool]


# Nothing differs at present, so there is nothing to explain.
CAUSES: tuple[Cause, ...] = ()


def of(row: Row) -> list[Cause]:
    return [cause for cause in CAUSES if cause.applies(row)]
