"""Claims as data: those of the repository are sound, and whatever is wrong in a file is named."""

import re
import shutil

import pytest
from shortlane.errors import InputError
from shortlane.paper import catalog, data
from shortlane.paper.claims import Bounds
from shortlane.paper.loading import load
from shortlane.paper.reader import line_of, read
from shortlane.paper.runs import affected, jobs
from shortlane.paper.shared import SHARED

stats = catalog.code(data.folder("efd"), "stats")
STATISTICS = stats.STATISTICS


@pytest.fixture
def folder(tmp_path):
    """A copy of the EFD paper's folder."""
    return shutil.copytree(data.folder("efd"), tmp_path / "efd")


def rewrite(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_the_efd_paper_has_every_row_of_its_section(folder):
    paper = load(folder, STATISTICS)
    section = "A-F1b A-F2 A-F3 A-F4 A-C1 A-F5a A-F5b A-F5c A-F6 A-F7a A-F7b A-C2 A-C3"
    assert " ".join(row.id for row in paper.rows) == section
    assert {row.id for row in paper.rows if row.calibrated} == {"A-F2", "A-F3"}
    assert {row.figure for row in paper.rows} >= {"1b", "2", "3", "4", "5a", "5b", "6", "7a", "7b"}


def test_each_combination_of_values_is_a_check_of_its_own(folder):
    paper = load(folder, STATISTICS)
    tables = next(row for row in paper.rows if row.id == "A-F2")
    assert [(check.words, str(check.bounds)) for check in tables.checks] == [
        ("table, x-protect to las, 8 Mbit/s", "in [0.35, 0.7]"),
        ("table, x-protect to las, 15 Mbit/s", "in [0.35, 0.7]"),
        ("table, efd to las, 8 Mbit/s", "<= 0.15"),
        ("table, efd to las, 15 Mbit/s", "<= 0.15"),
    ]


def test_published_numbers_belong_to_combinations_in_their_order(folder):
    file = folder / "paper.toml"
    least, most = "at-least = 0.35", "at-most = 0.70"
    rewrite(file, f"{least}\n{most}", f"{least}\n{most}\npublished = [0.5, 0.4]")
    tables = next(row for row in load(folder, STATISTICS).rows if row.id == "A-F2")
    assert [check.published for check in tables.checks] == [0.5, 0.4, None, None]


def test_bounds_read_as_a_criterion_does():
    assert str(Bounds(at_least=5)) == ">= 5"
    assert str(Bounds(at_most=0.6)) == "<= 0.6"
    assert str(Bounds()) == "reported"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "EFD', 'titel = "EFD', "title is missing; it takes a text"),
        ("[quick]", "[quack]", "quick.seeds is missing; it takes a text"),
        ('id = "A-F2"', 'id = "A-F1b"', "row[1].id = 'A-F1b'; it takes an id of its own"),
        ("at-most = 2.0", "atmost = 2.0", "row[0].check[0] has no key 'atmost'; it takes "),
        ("at-most = 2.0", "", "row[0].check is missing; it takes at-least or at-most for "),
        ("at-most = 2.0", 'at-most = "2"', "check[0].at-most = '2'; it takes a number"),
        ('statistic = "fragments-ratio"', 'statistic = "f"', "check[0].statistic = 'f'; it takes "),
        ("sizes = [500, 1000]", "size = [500, 1000]", "'size'; it takes arguments of fragments-r"),
        ('scheduler = "efd", sizes', "sizes", "check[0].with.scheduler is missing; it takes an"),
        ('point = "tcp8"', 'point = "tcp9"', "check[0].point = 'tcp9'; it takes progress, tcp15"),
        ("at-most = 2.0", 'at-most = 2.0\npublished = "2"', "published = '2'; it takes a number"),
        (
            "at-most = 2.0",
            "at-most = 2.0\npublished = [2, true]",
            "it takes a number, or a list",
        ),
        ("at-most = 2.0", "at-most = 2.0\npublished = [2, 3]", "a number for each of 1 combinatio"),
        ('calibrated = "', 'calibrated = true # "', "row[1].calibrated = True; it takes a text"),
        ("table, {scheduler}", "table, {who}", "it takes only {scheduler, to, point} in braces"),
        ('point = ["tcp8", "tcp15"]', "point = []", "each.point = []; it takes a list that is not"),
        (
            'campaign = "tcp"',
            'campaign = "udp"',
            "campaign = 'udp'; it takes the name of a file in",
        ),
        ("[[row]]", "[[row", "is not TOML: "),
    ],
)
def test_what_is_wrong_in_the_claims_is_named(folder, old, new, said):
    file = folder / "paper.toml"
    rewrite(file, old, new)
    with pytest.raises(InputError) as error:
        load(folder, STATISTICS)
    assert re.match(
        rf"{re.escape(str(file))}:\d+: |{re.escape(str(file))}: is not TOML", str(error.value)
    )
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        # A criterion without a sentence: the row's own, and one that was revised.
        (
            'published = "X-Protect about half',
            'told = "X',
            'id = "A-F2"',
            "row[1].published is mis",
        ),
        (
            'sentence = "The same as at 8 Mbit/s for short transfers."\n',
            "",
            'words = "{scheduler} to {to}, sizes up to 20"\npoint = "tcp15"',
            "row[6].check[0].sentence is missing; it takes what the paper says",
        ),
        (
            "[[row.revised.check]]",
            "[[row.revised.chek]]",
            "[[row.revised.chek]]",
            "row[3].revised has no key 'chek'; it takes why, was, ch",
        ),
        ("at-most = -0.5", 'at-most = "x"', 'at-most = "x"', "row[0].check[2].at-most = 'x'"),
    ],
)
def test_a_criterion_without_a_sentence_is_named_with_its_line(folder, old, new, line, said):
    file = folder / "paper.toml"
    rewrite(file, old, new)
    with pytest.raises(InputError) as error:
        load(folder, STATISTICS)
    message = str(error.value)
    assert said in message
    number = int(message.removeprefix(f"{file}:").split(":")[0])
    lines = file.read_text().splitlines()
    # The line itself, or the head of the table that it would be in.
    wanted = file.read_text()[: file.read_text().index(line)].count("\n") + 1
    head = max(at for at, one in enumerate(lines[:wanted], 1) if one.startswith("["))
    assert number in (wanted, head)


def test_a_line_is_that_of_the_key_or_of_the_table_around_it():
    source = """\
title = "t"

[points.a]
words = "a"

[[row]]
id = "1"

[[row.check]]
words = "w"

[[row]]
id = "2"

[[row.check]]
words = "x"

[[row.check]]
with = { of = 1 }
at-most = 3

[row.revised]
why = "y"

[[row.revised.check]]
words = "z"
"""
    places = {
        ("", "title"): 1,
        ("", "row"): 6,
        ("", "missing"): 1,
        ("points.a", "words"): 4,
        ("row[0]", "id"): 7,
        ("row[1]", "id"): 13,
        ("row[1]", "published"): 12,
        ("row[0].check[0]", "words"): 10,
        ("row[1].check[1]", "with.of"): 19,
        ("row[1].check[1]", "at-least"): 18,
        ("row[1].revised", "why"): 23,
        ("row[1].revised.check[0]", "words"): 26,
        ("row[1].table[0].column[0]", "words"): 12,
    }
    assert {key: line_of(source, *key) for key in places} == places


def test_a_missing_file_is_named(folder):
    (folder / "paper.toml").unlink()
    with pytest.raises(InputError, match=r"paper\.toml: cannot be read: No such file"):
        load(folder, STATISTICS)
    with pytest.raises(InputError, match="there is no paper 'fed'; there are: beyond, efd"):
        data.folder("fed")


def test_claims_without_rows_are_refused(folder):
    file = folder / "paper.toml"
    head, *_ = file.read_text().split("[[row]]")
    file.write_text(head)
    with pytest.raises(InputError, match="row is missing; it takes at least one table"):
        load(folder, STATISTICS)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'campaigns = ["tcp", "cbr"]',
            'campaigns = ["udp"]',
            "variant[0].campaigns = 'udp'; it takes cbr",
        ),
        ('campaigns = ["tcp", "cbr"]', "campaigns = []", "variant[0].campaigns is missing"),
        ('seeds = "1..3"', "", "seeds is missing; it takes a text"),
        ('rows = ["A-C1"', 'rows = ["A-C9"', "rows = 'A-C9'; it takes A-C1, A-C2"),
        (
            'set = { "tcp.preset" = "ns2", "tcp.window" = "65535b", '
            '"traffic.0.sizes" = "zipf:alpha=1.1,max=1000packets" }',
            "",
            "variant[0].set is missing; it takes what it changes",
        ),
    ],
)
def test_what_is_wrong_in_the_variants_is_named(folder, old, new, said):
    rewrite(folder / "sensitivity.toml", old, new)
    with pytest.raises(InputError) as error:
        load(folder, STATISTICS)
    assert re.match(rf"{re.escape(str(folder / 'sensitivity.toml'))}:\d+: ", str(error.value))
    assert said in str(error.value)


def test_a_campaign_without_a_scenario_is_named(folder):
    rewrite(folder / "tcp.toml", "scenario =", "szenario =")
    paper = load(folder, STATISTICS)
    with pytest.raises(InputError, match=r"tcp\.toml: campaign\.scenario is missing"):
        jobs(paper, paper.rows, quick=False, variants=())


def test_only_campaigns_that_rows_need_are_run(folder):
    paper = load(folder, STATISTICS)
    by_id = {row.id: row for row in paper.rows}

    def folders(*ids, **options):
        rows = [by_id[one] for one in ids]
        arguments = {"quick": False, "variants": (), **options}
        return [job.folder for job in jobs(paper, rows, **arguments)]

    assert folders("A-C3") == ["cbr"]
    assert folders("A-F2", "A-F5a") == ["tcp"]
    assert folders("A-F6") == ["tcp", "progress"]
    chosen = [one for one in paper.variants if one.id in ("100s", "cbr-160b")]
    assert folders("A-F2", variants=chosen) == ["tcp", "tcp@100s"]


def test_a_variant_changes_its_campaigns_as_a_whole(folder):
    paper = load(folder, STATISTICS)
    variants = {one.id: one for one in paper.variants}
    todo = {
        job.folder: job.definition
        for job in jobs(paper, paper.rows, quick=False, variants=paper.variants)
    }
    window = todo["tcp@window-64kb"]
    assert window["set"]["tcp.window"] == "65535b"
    assert window["grid"] == todo["tcp"]["grid"]
    assert window["campaign"]["title"] != todo["tcp"]["campaign"]["title"]
    assert window["campaign"]["seeds"] == paper.variant_seeds
    assert todo["cbr@half-life-1s"]["schedulers"] == {"run": ["lars:half-life=1s"]}
    concerned = affected(paper, paper.rows, variants["half-life-1s"])
    assert [row.id for row in concerned] == ["A-C1", "A-F5a", "A-F5b", "A-F6", "A-F7a", "A-F7b"]
    assert "A-F7a" not in [row.id for row in affected(paper, paper.rows, variants["literal"])]


def test_quick_scales_every_campaign(folder):
    paper = load(folder, STATISTICS)
    for job in jobs(paper, paper.rows, quick=True, variants=()):
        assert job.definition["set"]["scenario.duration"] == "300s"
        assert job.definition["campaign"]["seeds"] == ("1" if job.name == "progress" else "1..10")
        assert job.definition["campaign"]["title"].endswith("(quick)")


def test_a_reader_refuses_what_it_was_not_asked_for(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('a = "x"\nb = 1\n')
    reader = read(file)
    assert reader.text("a") == "x"
    with pytest.raises(InputError, match="the file has no key 'b'; it takes a"):
        reader.done()


def test_the_ten_lines_of_the_documentation_are_a_paper(tmp_path):
    documentation = data.folder("efd").parents[1] / "docs" / "papers.md"
    if not documentation.is_file():
        pytest.skip("not a checkout")
    _, _, code = documentation.read_text().partition("```toml\n")
    code, _, _ = code.partition("```")
    (tmp_path / "paper.toml").write_text(code)
    (tmp_path / "s1.toml").write_text('[campaign]\nscenario = "mg1"\n')
    paper = load(tmp_path, SHARED)
    assert [check.words for check in paper.rows[0].checks] == ["sb to fifo"]
    assert [job.folder for job in jobs(paper, paper.rows, quick=True, variants=())] == ["s1"]
