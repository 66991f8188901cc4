"""Why the two differ where they do: each cause named, and the rows it accounts for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases import OVERLOADS
from results import Row


@dataclass(frozen=True)
class Cause:
    name: str
    text: str
    applies: Callable[[Row], bool]


# What duplicates are guessed to have acknowledged is forgotten by ns-3 on a timeout only.
STALE_GUESSES = Cause(
    "ns-3 without SACK sends again what was not lost",
    "Each duplicate acknowledgment marks one more segment as arrived (`TcpTxBuffer::AddRenoSack`), "
    "a guess that no new acknowledgment takes back. Where the next one ends at a segment so "
    "marked, `DiscardUpTo` declares that segment lost. It is sent again, with no loss known; its "
    "duplicate acknowledgment marks the next; and the sender goes on to repeat a segment for each "
    "acknowledgment, and to halve its window for its own duplicates. Of the retransmissions of the "
    "first list at load 1.5, 27,867, ns-3 makes 8,586 outside of any recovery, where RFC 6582 has "
    "none; without limited transmit (`LimitedTransmit=false`), which is what guesses there, 150 of "
    "10,281. With it off on both sides the two are compared as `newreno-unlimited`.",
    lambda row: row.case.tcp == "newreno" and row.case.load >= OVERLOADS[0],
)

CAUSES: tuple[Cause, ...] = (STALE_GUESSES,)


def of(row: Row) -> list[Cause]:
    return [cause for cause in CAUSES if cause.applies(row)]
