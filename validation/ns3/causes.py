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
    release: str | None = None  # of ns-3, if only that has it


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

NEW_CUBIC = Cause(
    "Cubic of 3.48 is another",
    "Its window is no smaller than Reno's would be (`TcpFriendliness`, on by default), and does "
    "not grow where it is not the limit; 3.37 has neither, nor has the preset `ns3`. With both in "
    "ours (`cubic_friendly=true validate_window=true`) the FIFO of load 1.2 has 1.00 [0.94, 1.07], "
    "0.84 [0.76, 0.92], 1.06 [0.99, 1.13], drops 1.00 [0.97, 1.04]. The FQ-CoDel then still has "
    "1.04 [0.96, 1.12], 1.25 [1.05, 1.44], 1.22 [1.06, 1.39], drops 1.36 [1.03, 1.68], and what is "
    "left of it is not explained; HyStart changes nothing there, and NewReno does not differ.",
    lambda row: row.case.tcp == "cubic",
    release="3.48",
)

CAUSES: tuple[Cause, ...] = (STALE_GUESSES, NEW_CUBIC)


def of(row: Row, release: str) -> list[Cause]:
    return [c for c in CAUSES if c.release in (None, release) and c.applies(row)]
