"""What a campaign says while it runs."""

import io

from shortlane.campaign import progress
from shortlane.campaign.progress import Progress, _Log, _Terminal


def test_a_log_has_a_line_for_each_tenth(monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    shown = Progress(_Log(stream), 50, [2.0] * 20 + [6.0] * 10)
    with shown:
        shown.show(", waiting for workers")
        for _ in range(20):
            shown.add(simulated_s=2.0, failed=False)
        shown.show()
        shown.show()
        for run in range(10):
            shown.add(simulated_s=6.0, failed=run == 0)
        shown.show()
    assert stream.getvalue().splitlines() == [
        "0 %: 20 of 50 runs, waiting for workers",
        # 40 of 100 simulated seconds have taken 10 seconds.
        "40 %: 40 of 50 runs, 15 s left",
        "100 %: 49 of 50 runs, 1 failed",
    ]


def test_a_terminal_has_one_line_that_ends():
    stream = io.StringIO()
    with Progress(_Terminal(stream), 4, [1.0] * 4) as shown:
        shown.show()
        shown.add(simulated_s=1.0, failed=False)
        shown.show()  # Too soon after the other.
        for _ in range(3):
            shown.add(simulated_s=1.0, failed=False)
        shown.show()
    lines = stream.getvalue().split("\r")
    assert [line.removeprefix("\x1b[K") for line in lines[1:]] == [
        f"[{' ' * 24}]   0 %  0 of 4 runs",
        f"[{'#' * 24}] 100 %  4 of 4 runs\n",
    ]


def test_a_function_is_told():
    told = []
    with Progress(lambda *what: told.append(what), 2, [1.0] * 2) as shown:
        shown.add(simulated_s=1.0, failed=True)
        shown.add(simulated_s=1.0, failed=False)
        shown.show()
    assert told == [(1.0, "1 of 2 runs, 1 failed")]


def test_times_are_in_two_units():
    assert [progress._duration(s) for s in (0.4, 59.6, 61, 3600, 93784)] == [
        "0 s",
        "1 min 00 s",
        "1 min 01 s",
        "1 h 00 min",
        "26 h 03 min",
    ]
