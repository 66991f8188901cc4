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


CAUSES = (
    Cause(
        "HyStart within recovery",
        "ns-3.37 tells Cubic of a delay for every duplicate acknowledgment (`TcpSocketBase::"
        "ProcessAck` calls `PktsAcked`), so its HyStart takes them for a train and may set "
        "ssthresh = cwnd in the middle of fast recovery; ours judges only what makes the window "
        "grow. Seen in the trace of one transfer of 200 packets (FQ-CoDel, 40 ms): ssthresh went "
        "from 165,072 to 59,368 bytes 37 ms into recovery. It is the difference that is left "
        "between the two Cubics as far as both were read; that it accounts for all of these "
        "figures is not shown.",
        lambda row: row.case.tcp == "cubic",
    ),
)


def of(row: Row) -> list[Cause]:
    return [cause for cause in CAUSES if cause.applies(row)]
