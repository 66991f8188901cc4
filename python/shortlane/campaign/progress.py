"""How far a campaign is: a line that stays in place on a terminal, one for each tenth elsewhere."""

import math
import sys
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["Progress", "Tell"]

#: Takes a fraction from 0 to 1 and a line of text.
Tell = Callable[[float, str], None]

#: A terminal is written to at most this often, in seconds.
EVERY_S = 0.2


class Progress:
    """Counts runs, and tells how much of the work is behind."""

    def __init__(self, tell: Tell | None) -> None:
        """Without any runs yet."""
        self.tell = tell
        self.runs = self.done = self.failed = 0
        self.started = time.monotonic()

    def __enter__(self) -> "Progress":
        """From now on work is done: time left is reckoned from here."""
        self.started = time.monotonic()
        return self

    def expect(self, runs: int, done: int) -> None:
        """There are more runs, some of which earlier starts have done."""
        self.runs += runs
        self.done += done

    def add(self, *, failed: bool) -> None:
        """One run has ended."""
        self.failed += failed
        self.done += not failed

    def show(self, spent_s: float, ahead_s: float, note: str = "") -> None:
        """Tells how far things are, by the work of this start and what is ahead, and `note`."""
        if self.tell is not None:
            fraction = spent_s / (spent_s + ahead_s) if ahead_s > 0 else 1.0
            self.tell(fraction, self._text(fraction) + note)

    def clear(self) -> None:
        """What others say next on a terminal has its line."""
        if isinstance(self.tell, _Terminal):
            self.tell.clear()

    def __exit__(self, *_: object) -> None:
        """Nothing more is told: what comes next on a terminal has its own line."""
        if isinstance(self.tell, _Terminal):
            self.tell.end()

    def _text(self, fraction: float) -> str:
        text = f"{self.done} of {self.runs} runs"
        if self.failed:
            text += f", {self.failed} failed"
        if 0 < fraction < 1:
            left = (time.monotonic() - self.started) * (1 - fraction) / fraction
            text += f", {_duration(left)} left"
        return text


def on_stderr() -> Tell:
    """Tells a terminal or a log."""
    return _Terminal(sys.stderr) if sys.stderr.isatty() else _Log(sys.stderr)


class _Terminal:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.told = float("-inf")
        self.fraction = 0.0

    def __call__(self, fraction: float, text: str) -> None:
        now = time.monotonic()
        if fraction < 1 and now - self.told < EVERY_S:
            return
        self.told, self.fraction = now, fraction
        bar = "#" * round(24 * fraction)
        self.stream.write(f"\r\x1b[K[{bar:24}] {100 * fraction:3.0f} %  {text}")
        self.stream.flush()

    def clear(self) -> None:
        self._leave("\r\x1b[K" if self.fraction < 1 else "\n")

    def end(self) -> None:
        self._leave("\n")

    def _leave(self, by: str) -> None:
        if math.isfinite(self.told):
            self.stream.write(by)
            self.stream.flush()
            self.told = float("-inf")


class _Log:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.tenths = -1

    def __call__(self, fraction: float, text: str) -> None:
        tenths = int(10 * fraction + 1e-9)
        if tenths > self.tenths:
            self.tenths = tenths
            print(f"{10 * tenths} %: {text}", file=self.stream, flush=True)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
