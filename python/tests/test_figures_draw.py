"""Figures are drawn with the right lines, labels and looks, and written as SVG, PDF and PNG."""

import matplotlib as mpl
import pytest
import shortlane
from matplotlib.figure import Figure
from shortlane import figures
from shortlane.errors import InputError
from shortlane.figures.style import LOOKS, looks

from scenarios import SCENARIO


@pytest.fixture(scope="module")
def results():
    return shortlane.simulate(SCENARIO, progress=None)


def drawn(figure):
    """Lines of the first axes that have a name, by it."""
    axes = figure.axes[0]
    return dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))


FIGURES = {
    "mean by size": lambda r, **k: figures.mean_by_size(r, least=5, **k),
    "slowdown by size": lambda r, **k: figures.mean_by_size(
        r, "slowdown", packet_bytes=1460, least=5, **k
    ),
    "completion": figures.cdf,
    "slowdown tail": lambda r, **k: figures.cdf(r, "slowdown", tail=True, **k),
    "delay": lambda r, **k: figures.cdf(r, "delay_ns", **k),
    "backlog": lambda r, **k: figures.time_series(r, band=True, **k),
    "table": lambda r, **k: figures.time_series(r, "flow_entries", **k),
    "histogram": lambda r, **k: figures.histogram(r, "backlog_packets", **k),
    "losses": figures.bars,
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_a_line_per_scheduler_and_units(results, name):
    figure = FIGURES[name](results)
    assert isinstance(figure, Figure)
    named = [label.split(" (")[0] for label in drawn(figure)]
    assert named == ["fifo", "efd"]
    axes = figure.axes[0]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert figure.get_size_inches()[0] == pytest.approx(3.5)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_into_axes_of_one_s_own(results, name):
    figure = Figure()
    grid = figure.subplots(1, 2)
    assert FIGURES[name](results, axes=grid[1]) is figure
    assert not grid[0].has_data()
    assert grid[1].has_data()


def test_progress_has_a_panel_per_transfer(results):
    frame = results.flows.head(1).select("scheduler", "seed", "round", "traffic", "index")
    rows = frame.join(pl_steps(), how="cross")
    figure = figures.progress(rows)
    assert len(figure.axes) == 1
    with pytest.raises(InputError, match="axes: found 2; accepted: 1"):
        figures.progress(rows, axes=list(Figure().subplots(1, 2)))


def pl_steps():
    import polars as pl

    return pl.DataFrame({"t_ns": [0, 10, 20], "received_bytes": [0, 5, 9]})


def test_files_are_the_same_each_time_and_keep_text(results, tmp_path):
    for ending in ("svg", "pdf", "png"):
        figure = figures.cdf(results)
        first = figures.save(figure, tmp_path / f"a.{ending}").read_bytes()
        again = figures.save(figures.cdf(results), tmp_path / f"b.{ending}").read_bytes()
        assert first == again
        assert len(first) > 3000
    assert b">completion time (s)<" in (tmp_path / "a.svg").read_bytes()
    with pytest.raises(InputError, match=r"found the ending '.gif'"):
        figures.save(figures.cdf(results), tmp_path / "a.gif")


def test_a_scheduler_looks_the_same_in_every_company():
    assert looks(["efd", "fifo"])["efd"] == looks(["efd", "las", "lars"])["efd"] == LOOKS["efd"]
    both = looks(["efd:threshold=5packets", "efd"])
    assert both["efd"] == LOOKS["efd"]
    assert both["efd:threshold=5packets"].color == LOOKS["efd"].color
    assert both["efd:threshold=5packets"].marker != LOOKS["efd"].marker


def test_every_scheduler_has_a_look_of_its_own():
    registered = [one["name"] for one in shortlane.schedulers()]
    assert len(set(looks(registered).values())) == len(registered)
    # Without colours as well: marker and dashes together differ.
    grey = {(look.marker, look.dash) for look in LOOKS.values()}
    assert len(grey) == len(LOOKS)
    unknown = looks([f"point {i}" for i in range(12)]).values()
    assert len(set(unknown)) == 12


def test_nobody_else_s_settings_change(results):
    before = dict(mpl.rcParams)
    figures.cdf(results)
    assert dict(mpl.rcParams) == before


def test_what_cannot_be_drawn_is_said(results):
    with pytest.raises(InputError, match="value: found 'x'"):
        figures.bars(results, "x")
    with pytest.raises(InputError, match="progress"):
        figures.progress(shortlane.simulate(SCENARIO, seeds=3, tables=["blocks", "flows"]))
