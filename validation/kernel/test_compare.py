"""The tables of the comparison, from rows as a guest writes them."""

from __future__ import annotations

import json
from pathlib import Path

import compare
import pytest
from measured import Results, Row, estimate_of, ratio, read

FETCH = "fetch 20000 B, ms"


def rows(workload: str, metric: str, figures: dict[str, list[float]]) -> list[Row]:
    """One value of each setting and round."""
    return [
        Row(round=at, setting=name, workload=workload, metric=metric, n=1, value=value)
        for name, values in figures.items()
        for at, value in enumerate(values)
    ]


def results_of(*parts: list[Row]) -> Results:
    results = Results("7.3.4")
    results.add([row for part in parts for row in part])
    return results


def cell(results: Results, name: str) -> compare.Cell:
    column = next(column for column in compare.MAP if column.name == name)
    return compare.judged(results, "2 cubic", "fq-lanes", column)


def test_a_ratio_is_to_the_better_peer_and_geometric() -> None:
    figures = {"tbf+fq_codel": [50.0, 50.0], "cake": [40.0, 40.0], "fq-lanes": [10.0, 40.0]}
    found = cell(results_of(rows("2 cubic", FETCH, figures)), "20 kB")
    assert found.text.startswith("0.50 (")
    assert found.text.endswith(" c")
    assert found.verdict == "no difference"


def test_better_and_worse_are_beyond_the_interval() -> None:
    peers = {"tbf+fq_codel": [50.0, 50.1], "cake": [60.0, 60.0]}
    for ours, verdict in (([25.0, 25.05], "better"), ([75.0, 75.2], "worse")):
        found = cell(results_of(rows("2 cubic", FETCH, {**peers, "fq-lanes": ours})), "20 kB")
        assert found.verdict == verdict
    slightly = {**peers, "fq-lanes": [50.5, 50.6]}
    assert cell(results_of(rows("2 cubic", FETCH, slightly)), "20 kB").verdict == "worse by little"


def test_of_rates_more_is_better() -> None:
    rates = {"tbf+fq_codel": [8.0, 8.0], "cake": [7.0, 7.0], "fq-lanes": [4.0, 4.01]}
    found = cell(results_of(rows("2 cubic", "download, all, Mbit/s", rates)), "long flows")
    assert found.verdict == "worse"
    assert found.text.endswith(" f")


def test_one_round_has_no_interval_and_no_verdict() -> None:
    figures = {"tbf+fq_codel": [50.0], "cake": [60.0], "fq-lanes": [25.0]}
    found = cell(results_of(rows("2 cubic", FETCH, figures)), "20 kB")
    assert (found.text, found.verdict) == ("0.50 f", "one round")


def test_losses_are_told_where_there_are_any() -> None:
    lost = {"tbf+fq_codel": [0.0], "cake": [0.0], "fq-lanes": [0.0]}
    assert cell(results_of(rows("2 cubic", "video, lost", lost)), "lost").text == ""
    lost["fq-lanes"] = [0.25]
    assert cell(results_of(rows("2 cubic", "video, lost", lost)), "lost").text == "+25.00 f"


def test_void_blocks_do_not_count() -> None:
    figures = {"cake": [40.0, 40.0]}
    void = {"cake": [1.0, 0.0]}
    results = results_of(rows("2 cubic", FETCH, figures), rows("2 cubic", "void", void))
    assert (results.blocks, results.void) == (2, 1)
    assert list(results.means("2 cubic", "cake", FETCH)) == [1]


def test_each_kernel_has_its_own_tables_the_newest_first(tmp_path: Path) -> None:
    figures = {"cake": [40.0], "fq-lanes": [10.0]}
    paths = []
    for kernel in ("6.1.0-50-cloud-amd64", "7.3.4+deb13-cloud-amd64", "6.17.13+deb13-cloud-amd64"):
        paths.append(tmp_path / kernel)
        used = rows("2 cubic", "link, used", {"cake": [1.0], "fq-lanes": [1.0]})
        document = {"kernel": kernel, "rows": rows("2 cubic", FETCH, figures) + used}
        paths[-1].write_text(json.dumps(document))
    kernels = read(paths)
    assert [results.kernel[:4] for results in kernels] == ["7.3.", "6.17", "6.1."]
    text = compare.document(kernels)
    assert text.count("### Linux") == 3
    assert "| 2 cubic | 0.25 c |" in text


def test_the_interval_of_two_rounds_is_students() -> None:
    estimate = estimate_of([1.0, 3.0])
    assert estimate.value == 2.0
    assert estimate.high == pytest.approx(2.0 + 12.71)
    assert ratio({0: 2.0, 1: 2.0}, {1: 1.0}).value == pytest.approx(2.0)
