"""What a campaign says while it runs."""

import io

from shortlane.campaign import progress
from shortlane.campaign.progress import Progress, _Log, _Terminal


def test_a_log_has_a_line_for_each_tenth(monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    shown = Progress(_Log(stream))
    shown.expect(50, 20)
    with shown:
        shown.show(0, 100, ", waiting for workers")
        for _ in range(20):
            shown.add(failed=False)
        shown.show(8, 12)
        shown.show(8, 12)
        for run in range(10):
            shown.add(failed=run == 0)
        shown.show(20, 0)
    assert stream.getvalue().splitlines() == [
        "0 %: 20 of 50 runs, waiting for workers",
        # 40 % of the work has taken 10 seconds.
        "40 %: 40 of 50 runs, 15 s left",
        "100 %: 49 of 50 runs, 1 failed",
    ]


def test_a_terminal_has_one_line_that_ends():
    stream = io.StringIO()
    with terminal(stream) as shown:
        shown.show(0, 4)
        shown.add(failed=False)
        shown.show(1, 3)  # Too soon after the other.
        for _ in range(3):
            shown.add(failed=False)
        shown.show(4, 0)
    lines = stream.getvalue().split("\r")
    assert [line.removeprefix("\x1b[K") for line in lines[1:]] == [
        f"[{' ' * 24}]   0 %  0 of 4 runs",
        f"[{'#' * 24}] 100 %  4 of 4 runs\n",
    ]


def terminal(stream):
    shown = Progress(_Terminal(stream))
    shown.expect(4, 0)
    return shown


def test_others_have_the_line_of_a_terminal_meanwhile():
    stream = io.StringIO()
    with terminal(stream) as shown:
        shown.show(0, 4)
        shown.clear()
        shown.clear()
        print("judging", file=stream)
        shown.show(2, 2)
    _, first, gone, after = stream.getvalue().split("\r\x1b[K")
    assert first.endswith("0 of 4 runs")
    assert gone == "judging\n"
    assert after == f"[{'#' * 12}{' ' * 12}]  50 %  0 of 4 runs, 0 s left\n"


def test_what_is_complete_stays_on_a_terminal():
    stream = io.StringIO()
    with terminal(stream) as shown:
        shown.show(4, 0)
        shown.clear()
    assert stream.getvalue().endswith("100 %  0 of 4 runs\n")
    assert stream.getvalue().count("\r") == 1


def test_a_function_is_told():
    told = []
    shown = Progress(lambda *what: told.append(what))
    shown.expect(1, 0)
    shown.expect(1, 0)
    with shown:
        shown.add(failed=True)
        shown.add(failed=False)
        shown.show(2, 0)
    assert told == [(1.0, "1 of 2 runs, 1 failed")]


def test_times_are_in_two_units():
    assert [progress._duration(s) for s in (0.4, 59.6, 61, 3600, 93784)] == [
        "0 s",
        "1 min 00 s",
        "1 min 01 s",
        "1 h 00 min",
        "26 h 03 min",
    ]
