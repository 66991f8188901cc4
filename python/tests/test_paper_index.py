"""The index of papers: made of what papers have found, and as it is committed."""

import json
import shutil

import pytest
from commands import ROOT, run
from shortlane.errors import InputError
from shortlane.paper import data, index
from shortlane.paper.words import document, measured


def check(outcome="reproduced", **changed):
    return {
        "what": "ours to theirs",
        "statistic": "response-ratio",
        "point": "here",
        "arguments": {},
        "at_least": None,
        "at_most": 0.6,
        "hard": False,
        "published": 0.5,
        "value": 0.55,
        "low": 0.54,
        "high": 0.56,
        "unit": "x",
        "confidence": 0.95,
        "seeds": 30,
        "outcome": outcome,
    } | changed


def row(name, outcome="reproduced"):
    worst = check("not reproduced" if outcome == "not reproduced" else "reproduced")
    return {
        "id": name,
        "claim": "Half, at 8 Mbit/s",
        "verdict": outcome,
        "worst": worst,
        "checks": [check(), worst],
    }


def paper(folder, name, *rows, **changed):
    found = {
        "title": f"On {name}",
        "reference": "Somebody",
        "quick": False,
        "runs": {"tcp": {"done": 8, "failed": 0, "runs": 8}},
        "rows": rows,
    }
    (folder / name).mkdir()
    (folder / name / "verdicts.json").write_text(json.dumps(found | changed))


def test_totals_rows_and_links(tmp_path):
    paper(tmp_path, "one", row("B-1"), row("B-2", "not reproduced"))
    paper(tmp_path, "two", row("A-1", "calibrated"))
    text = index.write(tmp_path).read_text()
    assert (
        "Of 3 claims in 2 papers: 1 reproduced, 1 calibrated, 1 not reproduced, 0 inconclusive."
        in text
    )
    lines = text.splitlines()
    # In the order of the rows' ids, not of the folders' names.
    assert lines.index("## [On two](two/README.md)") < lines.index("## [On one](one/README.md)")
    assert "| [On one](one/README.md) | 2 | 1 |  | 1 |  |" in lines
    ours = "ours to theirs: **0.55 x [0.54, 0.56]** | <= 0.6 | ✗ not reproduced | 1/2"
    assert f"| [B-2](one/README.md#b-2-half-at-8-mbits) | Half, at 8 Mbit/s | {ours} |" in lines
    assert text == index.text(index.read(tmp_path))


def test_papers_without_verdicts_are_named(tmp_path):
    paper(tmp_path, "one", row("A-1"))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "paper.toml").touch()
    assert "> Not among these: [two](two/README.md)." in index.write(tmp_path).read_text()


def test_what_is_quick_failed_or_missing_is_told(tmp_path):
    paper(tmp_path, "one", row("A-1"), quick=True)
    counts = {"tcp": {"done": 5, "failed": 1, "runs": 8}}
    paper(tmp_path, "two", row("B-1", "of its own") | {"worst": None, "checks": []}, runs=counts)
    text = index.text(index.read(tmp_path))
    first, second = text.index("## [On one]"), text.index("## [On two]")
    assert first < text.index("> **Quick**") < second
    assert second < text.index("> 1 runs failed") < text.index("> 2 runs are still missing")
    # A verdict that is none of the four is counted by its name.
    assert "0 inconclusive, 1 of its own." in text
    assert text.splitlines()[-1].endswith(" |  |  | of its own |  |")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not what `shortlane paper` writes: Expecting"),
        ("[]", "is not what `shortlane paper` writes"),
        ('{"rows": []}', "there are no rows"),
        ('{"title": "T", "quick": true, "runs": {}, "rows": [{"id": "A"}]}', "is missing"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_a_malformed_file_is_named(tmp_path, content, said):
    (tmp_path / "one").mkdir()
    file = tmp_path / "one" / "verdicts.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused = run("paper", "--index", str(tmp_path))
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"shortlane: {file}: ")
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "README.md").exists()


def test_a_folder_without_papers_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"found no \*/verdicts.json"):
        index.read(tmp_path)


def test_a_check_comes_back_from_its_document():
    one = check()
    assert document(measured(one)) == one


def test_the_committed_index_is_that_of_the_committed_verdicts(tmp_path):
    papers = ROOT / "papers"
    if not papers.is_dir():
        pytest.skip("not a checkout")
    for file in papers.glob("*/verdicts.json"):
        copy = tmp_path / file.parent.name
        copy.mkdir()
        shutil.copy(file, copy)
    missing = index.without(papers)
    made = index.text(index.read(tmp_path), missing)
    assert (papers / "README.md").read_text() == made, "make it: shortlane paper --index papers"
    listed = {found["paper"] for found in index.read(papers)}
    assert listed.union(missing) == set(data.names())


def test_links_of_the_committed_index_lead_to_headings():
    papers = ROOT / "papers"
    if not papers.is_dir():
        pytest.skip("not a checkout")
    for found in index.read(papers):
        page = (papers / found["paper"] / "README.md").read_text()
        for one in found["rows"]:
            assert f"\n### {one['id']}: {one['claim']}\n" in page
