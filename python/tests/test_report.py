"""What a report says: of whole folders, of parts of them, of other versions, of hostile names."""

import json
import re
import shutil

import polars as pl
import pytest
import shortlane
from commands import ROOT, run
from matplotlib.figure import Figure
from report_help import change_info, rewritten
from shortlane import report
from shortlane.errors import InputError, RunError
from shortlane.figures import data
from shortlane.report import blocks, numbers, source, verdict

from scenarios import SCENARIO

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results():
    return shortlane.simulate(SCENARIO, progress=None)


@pytest.fixture
def folder(results, tmp_path):
    results.write(tmp_path / "out")
    return tmp_path / "out"


def words(html):
    """What is read, without scripts and marks."""
    text = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_numbers_are_those_of_the_command(results, folder):
    found = numbers.numbers_of(source.open_folder(folder))
    of_command = {one["scheduler"]: one for one in results.summary["schedulers"]}
    compared = 0
    for name, one in of_command.items():
        transfers, voice = one["traffic"]
        for known in transfers["classes"]:
            row = found.classes.row(
                by_predicate=(pl.col("scheduler") == name)
                & (pl.col("size_class") == known["packets"]),
                named=True,
            )
            assert row["complete"] == known["complete"]
            assert row["incomplete"] == known["incomplete"]
            assert row["mean"] / 1e6 == pytest.approx(known["completion_ms"]["value"])
            against = known["vs_reference"]
            if name != "fifo":
                ratio = found.ratios.row(
                    by_predicate=(pl.col("scheduler") == name)
                    & (pl.col("size_class") == known["packets"]),
                    named=True,
                )
                assert ratio["ratio"] == pytest.approx(against["value"])
                assert [ratio["low"], ratio["high"]] == pytest.approx(against["interval"])
                compared += 1
        stream = found.streams.row(by_predicate=pl.col("scheduler") == name, named=True)
        assert stream["lost_percent"] == pytest.approx(voice["loss_percent"]["value"])
        assert stream["sent"] == voice["sent"]
    assert compared >= 2


def test_the_page_has_all_of_its_parts_in_order(folder):
    said = words(report.html_of(folder))
    parts = [
        "Verdict",
        "Figures",
        "Tables",
        "How it was run",
        "The command that repeats it",
        "The scenario",
    ]
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert "time over fifo&#x27;s" in said
    assert "Losses of voice" in said
    assert f"shortlane {shortlane.__version__}" in said
    assert "--seeds 3,4 --duration 6s" in said


def test_a_page_of_results_in_memory_says_the_same(results, folder):
    verdict_of = lambda html: re.search(r"<h2>Verdict.*?</section>", html, re.S).group()  # noqa: E731
    assert verdict_of(report.html_of(results)) == verdict_of(report.html_of(folder))


def test_csv_gives_the_same_page_as_parquet(results, folder, tmp_path):
    results.write(tmp_path / "csv", format="csv")
    as_parquet, as_csv = (report.html_of(one) for one in (folder, tmp_path / "csv"))
    assert words(as_parquet) == words(as_csv)


def test_a_flow_that_wins_is_said_to_win():
    def flows(scheduler, completion):
        return pl.DataFrame(
            {
                "seed": [1, 2, 3],
                "round": 0,
                "kind": "transfer",
                "index": 0,
                "traffic": "web",
                "size_class": "<=20",
                "scheduler": scheduler,
                "start_ns": 0,
                "planned_ns": 0,
                "completion_ns": completion,
            }
        )

    transfers = pl.concat(
        [flows("fifo", [100, 200, 300]), flows("efd", [50, 100, 150]), flows("las", [90, 230, 301])]
    )
    ratios = numbers.ratios_to(transfers.lazy(), "fifo")
    by_name = {row["scheduler"]: row for row in ratios.rows(named=True)}
    assert by_name["efd"]["ratio"] == 0.5
    assert by_name["efd"]["high"] == pytest.approx(0.5)
    found = numbers.Numbers("sim", ["fifo", "efd", "las"], ["fifo"], ratios=ratios)
    (said,) = verdict.sentences(found)
    assert said.startswith(
        "Short transfers (at most 20 packets), time over fifo's: "
        "faster: efd 0.50 × [0.50, 0.50]; no difference found: las 1.03 ×"
    )


def test_flows_complete_under_one_only_are_in_no_ratio():
    flows = pl.DataFrame(
        {
            "scheduler": ["fifo", "fifo", "efd", "efd"],
            "index": [0, 1, 0, 1],
            "completion_ns": [10, None, 5, 1],
            "seed": 1,
            "round": 0,
            "kind": "transfer",
            "traffic": "web",
            "size_class": "<=20",
            "start_ns": 0,
            "planned_ns": 0,
        }
    )
    row = numbers.ratios_to(flows.lazy(), "fifo").row(0, named=True)
    assert (row["ratio"], row["low"], row["only_one"]) == (0.5, None, 1)


def test_a_folder_without_results_names_what_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=r"found neither run.json nor a table \(blocks, links"):
        report.html_of(tmp_path)
    with pytest.raises(InputError, match="not a directory"):
        report.html_of(tmp_path / "nothing")


def test_a_campaign_s_folder_is_told_from_a_run_s(tmp_path):
    (tmp_path / "campaign.json").write_text("{}")
    with pytest.raises(InputError, match="the folder of a campaign; accepted: that of one run"):
        report.html_of(tmp_path)


def test_a_killed_run_makes_a_page_that_says_so(folder):
    for path in folder.glob("*"):
        path.unlink()
    (folder / ".flows.parquet.1234.tmp").write_bytes(b"PAR1")
    said = words(report.html_of(folder))
    assert "incomplete" in said[:400]
    assert ".flows.parquet.1234.tmp" in said
    assert "every table" in said
    assert "run.json" in said


def test_without_run_json_the_tables_are_still_shown(folder):
    (folder / "run.json").unlink()
    said = words(report.html_of(folder))
    assert "Missing: run.json" in said[:500]
    assert "Verdict" in said
    assert "Not known: run.json is missing." in said


@pytest.mark.parametrize("table", ["blocks", "links", "flows", "probes", "samples", "drops"])
def test_any_table_may_be_missing(folder, table):
    (folder / f"{table}.parquet").unlink()
    said = words(report.html_of(folder))
    assert f"Missing: the table {table}" in said
    assert "How it was run" in said


def test_a_damaged_table_is_named_and_the_others_are_shown(folder):
    (folder / "samples.parquet").write_bytes(b"PAR1 no more")
    said = words(report.html_of(folder))
    assert "table samples, whose file is damaged" in said
    assert "Losses of voice" in said


@pytest.mark.parametrize("schema", [0, 2, "1", None])
def test_another_schema_is_refused_by_name(folder, schema):
    change_info(folder, schema=schema, version="9.9.9")
    with pytest.raises(InputError) as error:
        report.html_of(folder)
    assert f"found `schema` {schema!r}, written by version 9.9.9; accepted: 1" in str(error.value)


def test_a_run_json_that_is_none_is_refused(folder):
    (folder / "run.json").write_text("{")
    with pytest.raises(InputError, match="not readable as JSON"):
        report.html_of(folder)


def test_columns_that_came_later_are_empty_in_older_results(folder):
    path = folder / "flows.parquet"
    pl.read_parquet(path).drop("retransmissions", "timeouts").write_parquet(path)
    assert "Verdict" in words(report.html_of(folder))


def test_what_ended_early_or_is_void_is_said_first(folder):
    change_info(folder, ended_early="interrupted")
    path = folder / "blocks.parquet"
    blocks = pl.read_parquet(path)
    blocks.with_columns(void=pl.col("block") == 0).write_parquet(path)
    said = words(report.html_of(folder))
    assert "ended before its time: interrupted" in said[:300]
    assert "1 void block left out" in said[:400]


def test_names_from_files_are_only_text(folder, tmp_path):
    hostile = rewritten(
        folder,
        tmp_path / "hostile",
        scheduler={"efd": HOSTILE},
        stream={"voice": HOSTILE + '"'},
        traffic={"transfers": HOSTILE},
        link={"bottleneck": "</script>" + HOSTILE},
    )
    html = report.html_of(hostile)
    assert HOSTILE not in html
    assert "</script><script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_a_lab_s_few_rounds_are_cut_into_batches(folder):
    info = json.loads((folder / "run.json").read_text())
    timing = {"arrivals_ns": 5_000_000_000}
    change_info(folder, scenario={"schedulers": ["fifo", "efd"], "timing": timing, "seed": 3})
    opened = source.open_folder(folder)
    found = numbers.numbers_of(opened)
    assert found.kind == "lab"
    # Two runs of 6 s in batches of 2 s (as a simulation: two observations).
    assert max(found.ratios["n"].to_list()) == 6
    change_info(folder, scenario=info["scenario"])
    assert max(numbers.numbers_of(source.open_folder(folder)).ratios["n"].to_list()) == 2


def test_a_replay_is_told_by_time_in_the_queue():
    # Flow 0 has 3 packets of mean 4 ms, flow 1 has 1 of 8 ms, flow 2 lost its only packet.
    flows = pl.DataFrame(
        {
            "scheduler": "fifo",
            "size_class": "<=20",
            "sent_short_lane": [3, 1, 0],
            "sent_long_lane": 0,
            "queueing_mean_ns": [4_000_000, 8_000_000, None],
            "queueing_max_ns": [5_000_000, 8_000_000, None],
            "dropped_packets": [0, 0, 1],
            "packets": [3, 1, 1],
        }
    )
    row = numbers._waits(flows.lazy()).row(0, named=True)
    assert (row["mean_ms"], row["max_ms"], row["dropped_percent"]) == (5.0, 8.0, 20.0)


def test_the_command_writes_the_page_and_says_where(folder, tmp_path):
    done = run("report", str(folder))
    assert done.returncode == 0, done.stderr
    assert (folder / "report.html").stat().st_size < 3_000_000
    out = tmp_path / "page.html"
    done = run("report", str(folder), "--out", str(out), "--json")
    assert json.loads(done.stdout) == {"page": str(out), "bytes": out.stat().st_size, "missing": []}


def test_the_command_refuses_with_one_line(folder, tmp_path):
    shutil.rmtree(folder)
    folder.mkdir()
    done = run("report", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "no results here" in done.stderr


def test_a_page_that_cannot_be_written_is_a_failure(folder, tmp_path):
    with pytest.raises(RunError, match="cannot be written"):
        report.write(folder, tmp_path / "no" / "such" / "page.html")


def named(text):
    """A figure with a text in it."""
    figure = Figure()
    figure.subplots().set_xlabel(text)
    return figure


def test_blocks_escape_what_they_are_given():
    made = [
        blocks.text("<b>"),
        blocks.notice("<b>"),
        blocks.bullets(["<b>: <b>", "<b>"]),
        blocks.code("<b>"),
        blocks.facts({"<b>": "<b>"}),
        blocks.section("<b>"),
        blocks.details("<b>"),
        blocks.table(pl.DataFrame({"<b>": ["<b>"]}), caption="<b>"),
        blocks.key(["<b>"]),
        blocks.chart(named("<b></svg></script>"), title="<b>", about="<b>"),
    ]
    html = blocks.page("<b>", made, lead="<b>")
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.S)
    assert "&lt;b&gt;" in body
    # Bullets have a <b> of their own before the colon.
    assert body.count("<b>") == 1
    assert html.count("</script>") == html.count("<script")
    assert html.count("</svg>") == html.count("<svg")


def test_a_page_without_charts_has_no_script():
    assert "<script" not in blocks.page("t", [blocks.text("words")])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1234.5, "1234"),
        (99.94, "99.9"),
        (0.05678, "0.0568"),
        (0.0001, "<0.001"),
        (-2.5, "-2.5"),
    ],
)
def test_numbers_are_short_and_plain(value, shown):
    assert blocks.number(value) == shown


def test_large_results_make_small_pages(folder):
    path = folder / "probes.parquet"
    probes = pl.read_parquet(path)
    many = pl.concat([probes] * (1 + 1_000_000 // probes.height))
    many.write_parquet(path)
    assert data.cdf(many, "delay_ns").height < 1000
    assert len(report.html_of(folder)) < 3_000_000


def test_every_example_of_the_documentation_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs/report.md").read_text()
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, names)
    assert (tmp_path / "by-size.pdf").exists()
    assert "Words." in words(names["html"])
    rows = [line for line in text.splitlines() if line.startswith("|") and "figures." in line]
    examples = [code for row in rows for code in re.findall(r"`(figures\.[^`]*\))`", row)]
    assert len(examples) == 14
    frame = pl.DataFrame({"scheduler": "efd", "load": [4, 4, 8], "lost_percent": [0.1, 0.2, 3]})
    # These need a table, and flows, that the results above do not have.
    elsewhere = ("figures.progress", "figures.rate_against_delay")
    for example in examples:
        if not example.startswith(elsewhere):
            assert eval(example, names | {"frame": frame}).axes[0].has_data(), example
