"""The index of papers: made of what papers have found, and as it is committed."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from commands import ROOT, run
from shortlane.errors import InputError
from shortlane.paper import data, evidence, index
from shortlane.paper.claims import Bounds, Check, Revision, Row
from shortlane.paper.evidence import Count, Head
from shortlane.paper.judge import Judged
from shortlane.paper.verdict import Measured, Outcome, Verdict, judge


def check(outcome=Outcome.REPRODUCED, confidence=0.975):
    one = Check("ours to theirs", "response-ratio", "here", {}, Bounds(None, 0.6), False, 0.5)
    return Measured(one, "x", 0.55, 0.54, 0.56, 30, confidence, outcome)


def row(name, outcome=Outcome.REPRODUCED, checks=2):
    claim = Row(name, "Half, at 8 Mbit/s", "", "", "", (), calibrated="the size law")
    second = Outcome.REPRODUCED if outcome is Outcome.CALIBRATED else outcome
    found = judge([check(), check(second)][:checks], calibrated=outcome is Outcome.CALIBRATED)
    return Judged(claim, found)


def paper(folder, name, *rows, quick=False, runs=None):
    counts = runs or {"tcp": Count(8, 8, 0)}
    head = Head(name, f"On {name}", "Somebody", quick, "0.1", f"shortlane paper {name}", counts)
    (folder / name).mkdir()
    (folder / name / evidence.FILE).write_text(evidence.text(head, rows, {}))


def test_totals_rows_and_links(tmp_path):
    paper(tmp_path, "one", row("B-1"), row("B-2", Outcome.NOT_REPRODUCED))
    paper(tmp_path, "two", row("A-1", Outcome.CALIBRATED))
    text = index.write(tmp_path).read_text()
    assert (
        "Of 3 claims in 2 papers: 1 reproduced, 1 calibrated, 1 not reproduced, 0 inconclusive."
        in text
    )
    lines = text.splitlines()
    # In the order of the rows' ids, not of the folders' names.
    assert lines.index("## [On two](two/README.md)") < lines.index("## [On one](one/README.md)")
    assert "| [On one](one/README.md) | 2 | 1 |  | 1 |  |" in lines
    assert any(line.endswith("| ≈ calibrated (on the size law) | 2/2 | 30 |") for line in lines)
    ours = "ours to theirs: **0.55 x [0.54, 0.56]** | <= 0.6 | ✗ not reproduced | 1/2 | 30"
    assert f"| [B-2](one/README.md#b-2-half-at-8-mbits) | Half, at 8 Mbit/s | {ours} |" in lines
    assert text == index.text(index.read(tmp_path))


def test_what_was_made_with_a_fixed_number_of_seeds_is_told(tmp_path):
    paper(tmp_path, "one", row("A-1"))
    paper(tmp_path, "two", row("B-1"))
    file = tmp_path / "two" / evidence.FILE
    said = f"# intervals: {evidence.ANYTIME}\n"
    assert said in file.read_text()
    file.write_text(file.read_text().replace(said, ""))
    text = index.text(index.read(tmp_path))
    assert text.index("## [On two]") < text.index("> From a number of seeds that was fixed before")
    assert text.count("number of seeds that was fixed") == 1


def test_papers_without_verdicts_are_named(tmp_path):
    paper(tmp_path, "one", row("A-1"))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "paper.toml").touch()
    assert "> Not among these: [two](two/README.md)." in index.write(tmp_path).read_text()


def test_what_is_quick_failed_or_missing_is_told(tmp_path):
    paper(tmp_path, "one", row("A-1"), quick=True)
    reported = Judged(row("B-1").row, Verdict(Outcome.REPORTED, None, ()))
    paper(tmp_path, "two", reported, runs={"tcp": Count(8, 5, 1)})
    text = index.text(index.read(tmp_path))
    first, second = text.index("## [On one]"), text.index("## [On two]")
    assert first < text.index("> **Quick**") < second
    assert second < text.index("> 1 runs failed") < text.index("> 2 runs are still missing")
    # A verdict that is none of the four is counted by its name.
    assert "0 inconclusive, 1 reported." in text
    assert "number of seeds that was fixed" not in text
    assert text.splitlines()[-1].endswith(" |  |  | · reported |  |  |")


HEAD = "".join(
    f"# {key}: x\n" for key in ("paper", "title", "reference", "quick", "version", "command")
)
COLUMNS = "\t".join(evidence.COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not what `shortlane paper` writes: 'paper' is missing"),
        ("# paper\n", "found the line '# paper'"),
        (HEAD, "its columns are missing"),
        (HEAD + "row\twhat\n", "its columns are row, what"),
        (HEAD + COLUMNS, "there are no rows"),
        (HEAD + COLUMNS + "A-1\t\tverdict\n", "is not what `shortlane paper` writes"),
        (HEAD + "# runs: tcp: many\n" + COLUMNS, "found runs 'tcp: many'"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_a_malformed_file_is_named(tmp_path, content, said):
    (tmp_path / "one").mkdir()
    file = tmp_path / "one" / evidence.FILE
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused = run("paper", "--index", str(tmp_path))
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"shortlane: {file}: ")
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\treproduced", "\tproven", "the verdict of A-1 = 'proven'; it takes reproduced, calibr"),
        ("\treproduced", "\t", "the verdict of A-1 = ''; it takes reproduced"),
        ("\t\treproduced", "\t\tcalibrated", "calibrated, of A-1, does not say on what; it takes"),
    ],
)
def test_an_unknown_verdict_is_named_with_its_line(tmp_path, old, new, said):
    paper(tmp_path, "one", row("A-1"))
    file = tmp_path / "one" / evidence.FILE
    text = file.read_text()
    file.write_text(text.replace(old, new, 1))
    line = text[: text.index(old)].count("\n") + 1
    with pytest.raises(InputError, match=rf"verdicts\.tsv:{line}: ") as error:
        index.read(tmp_path)
    assert said in str(error.value)


def test_a_revised_criterion_is_marked_and_reported_as_it_was(tmp_path):
    one = row("A-1")
    revised = Revision("It said more than the text.", "At most 0.5.", (check().check,))
    was = judge([check(Outcome.NOT_REPRODUCED)])
    one = Judged(replace(one.row, revised=revised), replace(one.verdict, before=was))
    paper(tmp_path, "one", one)
    lines = [line.split("\t") for line in (tmp_path / "one" / evidence.FILE).open()]
    assert [line[-1] for line in lines if line[2:3] == ["before"]] == ["not reproduced\n"]
    assert "✓ reproduced (criterion revised after runs)" in index.write(tmp_path).read_text()
    (found,) = index.read(tmp_path)["one"].rows
    assert (found.verdict, len(found.checks)) == (Outcome.REPRODUCED, 2)


def test_a_folder_without_papers_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"found no \*/verdicts.tsv"):
        index.read(tmp_path)


def test_what_was_found_comes_back_from_the_file(tmp_path):
    hard = replace(check(confidence=1.0), low=None, high=None, value=1.5e-7)
    hard = replace(hard, check=replace(hard.check, hard=True, published=None))
    one = Judged(row("A-1").row, judge([check(), check(Outcome.NOT_REPRODUCED), hard]))
    counts = {"tcp, least timeout: 1 s": Count(9, 7, 2)}
    paper(tmp_path, "one", one, row("A-2", checks=0), quick=True, runs=counts)
    found = evidence.read(tmp_path / "one" / evidence.FILE)
    assert (found.head.paper, found.head.quick, found.head.runs) == ("one", True, counts)
    first, second = found.rows
    assert (first.id, first.claim, first.verdict) == ("A-1", one.row.claim, "not reproduced")
    assert first.checks == tuple(replace(one, confidence=None) for one in one.verdict.checks)
    assert first.worst == first.checks[1]
    assert (second.worst, second.checks) == (None, ())


def test_of_a_variant_there_is_the_check_that_decided(tmp_path):
    head = Head("one", "On one", "Somebody", False, "0.1", "shortlane paper one", {})
    written = evidence.text(head, [row("A-1")], {"slow": [row("A-1", Outcome.NOT_REPRODUCED)]})
    of_it = [line.split("\t") for line in written.splitlines() if line.split("\t")[1:2] == ["slow"]]
    assert [(line[2], line[-1]) for line in of_it] == [
        ("verdict", "not reproduced"),
        ("check", "not reproduced"),
    ]
    # What is read are the rows as the paper has them.
    (tmp_path / evidence.FILE).write_text(written)
    (found,) = evidence.read(tmp_path / evidence.FILE).rows
    assert (found.verdict, len(found.checks)) == ("reproduced", 2)


def test_the_committed_index_is_that_of_the_committed_verdicts(tmp_path):
    papers = ROOT / "papers"
    if not papers.is_dir():
        pytest.skip("not a checkout")
    for file in papers.glob(f"*/{evidence.FILE}"):
        copy = tmp_path / file.parent.name
        copy.mkdir()
        shutil.copy(file, copy)
    missing = index.without(papers)
    made = index.text(index.read(tmp_path), missing)
    assert (papers / "README.md").read_text() == made, "make it: shortlane paper --index papers"
    assert set(index.read(papers)).union(missing) == set(data.names())


def test_links_of_the_committed_index_lead_to_headings():
    papers = ROOT / "papers"
    if not papers.is_dir():
        pytest.skip("not a checkout")
    for name, found in index.read(papers).items():
        page = (papers / name / "README.md").read_text()
        for one in found.rows:
            assert f"\n### {one.id}: {one.claim}\n" in page


def test_what_is_committed_of_papers_stays_small():
    """Evidence that anybody can make again is not to fill the history."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "papers"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    if listed.returncode != 0 or not files:
        pytest.skip("not a checkout")
    contents = [file.read_bytes() for file in files if file.is_file()]
    assert sum(map(len, contents)) < 2_000_000
    assert sum(content.count(b"\n") for content in contents) < 15_000
