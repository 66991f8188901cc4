"""`shortlane paper` from end to end, on a copy of the EFD paper scaled down much further."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from shortlane.paper import data, evidence
from shortlane.paper.evidence import Count

ROWS = "A-F7a,A-C3"


@pytest.fixture
def paper(tmp_path):
    """The paper with runs of 20 s, so that all campaigns take seconds."""
    folder = shutil.copytree(data.folder("efd"), tmp_path / "efd")
    scale(folder, seeds="1..2")
    return folder


def scale(folder, seeds):
    file = folder / "paper.toml"
    head, _, rest = file.read_text().partition("[quick]")
    _, _, rest = rest.partition("[schedulers]")
    quick = f'seeds = "{seeds}"\n'
    quick += 'set = { "scenario.duration" = "20s", "scenario.warm-up" = "5s" }\n\n'
    file.write_text(f"{head}[quick]\n{quick}[schedulers]{rest}")


def command(*arguments):
    return [sys.executable, "-m", "shortlane", "paper", *map(str, arguments)]


def shortlane(*arguments):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=300, check=False
    )


def results(out):
    return {path: path.stat().st_mtime_ns for path in out.glob("runs/*/runs/*.parquet")}


def told(document):
    """What `--json` and the file say both: a line for each verdict, and one for each check."""
    rows = [
        (row["id"], row["verdict"], [(one["what"], one["outcome"]) for one in row["checks"]])
        for row in document["rows"]
    ]
    counts = {name: Count(**one) for name, one in document["runs"].items()}
    return document["paper"], document["command"], counts, rows


def of(found):
    """The same of the file."""
    rows = [
        (row.id, row.verdict, [(one.check.words, str(one.outcome)) for one in row.checks])
        for row in found.rows
    ]
    return found.head.paper, found.head.command, found.head.runs, rows


def test_rows_are_run_judged_and_drawn_and_nothing_is_run_twice(paper, tmp_path):
    out = tmp_path / "out"
    first = shortlane(paper, "--quick", "--rows", ROWS, "--out", out)
    assert first.returncode == 0, first.stderr
    assert max(map(len, first.stdout.splitlines())) <= 100
    assert "A-F7a" in first.stdout
    assert "indicative" in first.stdout
    assert "A-F2" not in first.stdout

    found = evidence.read(out / evidence.FILE)
    assert found.head.quick is True
    assert [row.id for row in found.rows] == ["A-F7a", "A-C3"]
    # One packet of 1500 bytes more or less in the 10 s that the stream has here.
    volume = found.rows[1].worst
    assert volume.value == pytest.approx(7.92, abs=0.0015 * 990 / 10)
    assert (volume.unit, volume.n) == ("MB", 2)
    page = (out / "README.md").read_text()
    assert page.index("## Verdicts") < page.index("## Figures") < page.index("## Setting")
    assert "![Figure 7a: loss of a 64 kbit/s stream](figure-7a.svg)" in page
    assert (out / "figure-7a.svg").read_text().startswith("<svg")
    assert not (out / "figure-5a.svg").exists()

    done = results(out)
    second = shortlane(paper, "--quick", "--rows", ROWS, "--out", out, "--json")
    assert second.returncode == 0, second.stderr
    assert told(json.loads(second.stdout)) == of(found)
    assert results(out) == done


def test_runs_of_an_older_setting_are_refused_with_their_line(paper, tmp_path):
    out = tmp_path / "out"
    arguments = (paper, "--quick", "--rows", "A-C3", "--out", out)
    assert shortlane(*arguments).returncode == 0
    campaign = paper / "cbr.toml"
    old, new = '"tcp.window" = "16384b"', '"tcp.window" = "32768b"'
    assert old in campaign.read_text()
    campaign.write_text(campaign.read_text().replace(old, new))

    refused = shortlane(*arguments, "--judge")
    assert refused.returncode == 2
    assert f"is of an older setting of {campaign}; it takes runs of the present" in refused.stderr
    plan = out / "runs" / "cbr" / "campaign.json"
    found = re.search(rf"{re.escape(str(plan))}:(\d+): run '(\w+)'", refused.stderr)
    assert found[2] in plan.read_text().splitlines()[int(found[1]) - 1]
    # Nor does it go on among them.
    again = shortlane(*arguments)
    assert again.returncode == 2
    assert "runs done there are not in this one" in again.stderr


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_stopped_at_any_time_it_goes_on(paper, tmp_path, by):
    scale(paper, seeds="1..8")
    out = tmp_path / "out"
    arguments = (paper, "--quick", "--rows", "A-C3", "--out", out, "--jobs", "1")
    process = subprocess.Popen(
        command(*arguments), start_new_session=True, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not results(out):
        time.sleep(0.05)
    os.killpg(process.pid, by)
    process.wait()
    before = results(out)
    assert before
    assert not (out / evidence.FILE).exists()

    partly = shortlane(*arguments, "--judge")
    assert partly.returncode == 0, partly.stderr
    assert results(out) == before
    assert "**Not complete**" in (out / "README.md").read_text()

    again = shortlane(*arguments)
    assert again.returncode == 0, again.stderr
    assert "**Not complete**" not in (out / "README.md").read_text()
    after = results(out)
    assert before.items() <= after.items()
    found = evidence.read(out / evidence.FILE)
    # The first look takes four of the eight seeds, and decides.
    assert found.head.runs == {"cbr": Count(42 * 4, 42 * 4, 0)}
    assert len(after) == 42 * 4
    assert found.rows[0].worst.n == 4


def test_an_open_row_takes_more_seeds_of_its_own_runs_only(paper, tmp_path):
    scale(paper, seeds="1..6")
    file = paper / "paper.toml"
    start = file.read_text().index('id = "A-C3"')

    def bounded(at_most):
        head, row = file.read_text()[:start], file.read_text()[start:]
        row, count = re.subn(
            r"statistic = .*?at-most = \S+",
            'statistic = "response-ratio"\nwords = "time"\npoint = "voice12"\n'
            'with = { scheduler = "las", to = "fifo", sizes = [1, 20] }\n'
            f"at-most = {at_most!r}",
            row,
            flags=re.DOTALL,
        )
        assert count == 1
        file.write_text(head + row)

    out = tmp_path / "out"
    arguments = (paper, "--quick", "--rows", "A-C3", "--out", out)
    bounded(100.0)
    first = shortlane(*arguments)
    assert first.returncode == 0, first.stderr
    done = results(out)
    assert len(done) == 42 * 4
    (row,) = evidence.read(out / evidence.FILE).rows
    assert (row.verdict, row.worst.n) == ("reproduced", 4)

    # Within the interval of the first look, and beyond that of six seeds such as these.
    bounded(row.worst.value + 0.8 * (row.worst.high - row.worst.value))
    again = shortlane(*arguments)
    assert again.returncode == 0, again.stderr
    after = results(out)
    assert done.items() <= after.items()
    # Two seeds under two schedulers.
    assert len(after) == len(done) + 4
    (row,) = evidence.read(out / evidence.FILE).rows
    assert (row.verdict, row.worst.n) == ("reproduced", 6)
    assert "4 of 6" not in (out / "README.md").read_text()
    assert "| 6 of 6 |" in (out / "README.md").read_text()
    # What was run decides alone: judged by it, it is the same.
    told = (out / evidence.FILE).read_text()
    assert shortlane(*arguments, "--judge").returncode == 0
    assert (out / evidence.FILE).read_text() == told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fed"], "there is no paper 'fed'; there are: beyond, efd"),
        (["--all", "--rows", "A-C9"], "--rows 'A-C9' is not accepted; it takes A-F1b, A-F2"),
        (["--all", "--judge", "--out", "/dev"], "--judge: there are no runs yet; it takes an"),
        (["efd", "--rows", "A-C9"], "--rows 'A-C9' is not accepted; it takes A-F1b, A-F2"),
        (["efd", "--out", "/dev/null/there"], "/dev/null/there: Not a directory; --out takes"),
    ],
)
def test_bad_usage_is_one_line(arguments, said):
    refused = shortlane(*arguments)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"shortlane: {said}")
    assert refused.stderr.count("\n") == 1
    assert refused.stdout == ""


def test_malformed_claims_are_bad_input(paper, tmp_path):
    (paper / "paper.toml").write_text("title = 1\n")
    refused = shortlane(paper, "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"shortlane: {paper / 'paper.toml'}:1: row is missing; ")


def rewrite(old, new):
    """What changes a file so; nothing else would be tested if it did not."""

    def change(file):
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))

    return change


def own_scenario(content):
    """What gives a campaign a scenario file beside it."""

    def change(file):
        rewrite('"efd-paper-cbr"', '"own.toml"')(file)
        (file.parent / "own.toml").write_text(content)

    return change


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("paper.toml", lambda file: file.unlink(), "{file}: cannot be read: No such file"),
        ("paper.toml", rewrite("[[row]]", "[[row"), "{file}: is not TOML: Expected"),
        ("cbr.toml", lambda file: file.unlink(), "points.voice4.campaign = 'cbr'; it takes the"),
        ("cbr.toml", rewrite("[campaign]", "[campaign"), "{file}: is not TOML: Expected"),
        ("cbr.toml", rewrite("seeds =", "sedes ="), "{file}: campaign: [campaign] has no key 'se"),
        ("cbr.toml", rewrite("efd-paper-cbr", "efd-pap"), "{file}: campaign: campaign.scenario ="),
        ("cbr.toml", rewrite("c.1.packet", "c.1.pocket"), "{file}: in its scenario, traffic[1] h"),
        ("cbr.toml", rewrite('"4mbit"', '"5mbit"'), "{file}: there are no runs of a point at {{"),
        ("cbr.toml", own_scenario("[scenario"), "own.toml: Expected ']'"),
        ("cbr.toml", own_scenario("[scenario]\n"), "{file}: in its scenario, the scenario needs"),
        ("sensitivity.toml", rewrite("[[variant]]", "[[var"), "{file}: is not TOML: Expected"),
        ("findings.md", lambda file: file.write_bytes(b"\xff"), "{file}: is not UTF-8: "),
    ],
)
def test_a_missing_or_malformed_file_is_bad_input_before_anything_runs(
    paper, tmp_path, file, change, said
):
    change(paper / file)
    refused = shortlane(paper, "--quick", "--rows", "A-C3", "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert refused.stderr.startswith("shortlane: ")
    assert said.format(file=paper / file) in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_all_papers_have_folders_of_their_own_and_one_page(tmp_path):
    out = tmp_path / "out"
    arguments = ("--all", "--quick", "--rows", "A-F6", "--out", out)
    ended = shortlane(*arguments)
    assert ended.returncode == 0, ended.stderr
    assert "efd, look 1 of 4: progress, 4 runs\n" in ended.stderr
    assert "judging: EFD: An efficient low-overhead scheduler" in ended.stderr
    assert "A-F6" in ended.stdout
    index = (out / "README.md").read_text()
    assert "Of 1 claims in 1 papers: " in index
    assert "> **Quick**" in index
    assert (out / "efd" / "README.md").is_file()

    done = results(out / "efd")
    (out / "README.md").unlink()
    judged = shortlane(*arguments, "--judge", "--json")
    assert judged.returncode == 0, judged.stderr
    assert results(out / "efd") == done
    assert (out / "README.md").read_text() == index
    [found] = json.loads(judged.stdout)["papers"]
    assert told(found) == of(evidence.read(out / "efd" / evidence.FILE))


def test_papers_together_have_the_verdicts_that_they_have_alone(tmp_path):
    rows = {"efd": "A-F6", "fair-service-curve": "C-TOY,C-TOY2"}
    together = tmp_path / "together"
    asked = ",".join(rows.values())
    ended = shortlane("--all", "--quick", "--rows", asked, "--out", together, "--json")
    assert ended.returncode == 0, ended.stderr
    assert [one["paper"] for one in json.loads(ended.stdout)["papers"]] == list(rows)
    for name, ids in rows.items():
        alone = tmp_path / name
        assert shortlane(name, "--quick", "--rows", ids, "--out", alone).returncode == 0
        found, expected = (evidence.read(out / evidence.FILE) for out in (together / name, alone))
        assert [(row.id, row.verdict) for row in found.rows] == [
            (row.id, row.verdict) for row in expected.rows
        ]
        assert [row.worst for row in found.rows] == [row.worst for row in expected.rows]
        assert {path.name: path.read_bytes() for path in (together / name).glob("*.svg")} == {
            path.name: path.read_bytes() for path in alone.glob("*.svg")
        }


def test_failed_runs_are_named_and_decide_nothing(paper, tmp_path):
    file = paper / "cbr.toml"
    file.write_text(file.read_text().replace('"fifo", ', '"fifo:limit=0packets", '))
    out = tmp_path / "out"
    ended = shortlane(paper, "--quick", "--rows", "A-C3", "--out", out)
    assert ended.returncode == 1
    assert "failed: schedulers.run" in ended.stderr
    assert "again: shortlane sim " in ended.stderr
    assert "shortlane campaign status" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("shortlane: 12 runs failed")
    found = evidence.read(out / evidence.FILE)
    assert found.head.runs == {"cbr": Count(84, 72, 12)}
    assert found.rows[0].verdict == "inconclusive"
    assert found.rows[0].worst.n == 0
    assert "12 of cbr" in (out / "README.md").read_text()


def test_without_runs_there_is_nothing_to_judge(tmp_path):
    refused = shortlane("efd", "--judge", "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert refused.stderr == (
        "shortlane: --judge: there are no runs yet; it takes an --out with runs\n"
    )
