"""SVG made compact: what it draws stays, what nobody sees goes."""

import re

import pytest
from matplotlib.figure import Figure
from shortlane import figures
from shortlane.figures.svg import compact

HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'width="20pt" height="10pt" viewBox="0 0 20 10">'
)


def made(body):
    return compact(f"{HEAD}<!-- a remark -->{body}</svg>").partition("<defs")[2]


def path(d, style="fill: none; stroke: #000000", **more):
    rest = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<path d="{d}" style="{style}"{rest}/>'


def test_neighbours_of_one_style_become_one_path():
    lines = path("M 1 1 \nL 2 1 \n") + path("M 1 2 \nL 2 2 \n")
    assert '<path d="M1 1L2 1M1 2L2 2" style="fill:none;stroke:#000000"/>' in made(lines)
    other = lines + path("M 1 3 \nL 2 3 \n", "fill: none; stroke: #ff0000")
    assert made(other).count("<path") == 2


@pytest.mark.parametrize(
    "style", ["fill: #ff0000", "fill: none; stroke: #000000; stroke-opacity: 0.5"]
)
def test_what_lies_over_another_thing_and_shows_it_stays_by_itself(style):
    square = "M 1 1 L 2 1 L 2 2 L 1 2 z"
    assert made(path(square, style) + path(square, style)).count("<path") == 2


def test_what_is_clipped_stays_clipped():
    clipped = '<g clip-path="url(#p1)"><path d="M 0 0 L 9 9" style="stroke: #000000"/></g>'
    defined = '<defs><clipPath id="p1"><rect x="0" y="0" width="5" height="5"/></clipPath></defs>'
    found = made(path("M 1 1 L 2 2") + clipped + defined)
    assert found.index('<clipPath id="p1">') < found.index('<g clip-path="url(#p1)"><path')
    assert found.count("clip-path") == 1


def test_a_mark_is_drawn_where_it_was():
    tick = '<defs><path id="m1" d="M 0 0 L 0 3.5" style="stroke: #000000"/></defs>'
    uses = "".join(f'<use xlink:href="#m1" x="{x}.04" y="1"/>' for x in (3, 4, 4))
    # One is as good as two at the same place.
    assert '<path d="M3 1L3 4.5M4 1L4 4.5" style="stroke:#000000"/>' in made(tick + uses)
    assert 'id="m1"' not in made(tick + uses)
    square = tick.replace("L 0 3.5", "L 0 3 L 3 3 z")
    found = made(square + uses.replace("/>", ' style="fill: #ff0000"/>'))
    assert '<path id="m1" d="M0 0L0 3L3 3z"' in found
    marks = '<use x="3" y="1" href="#m1"/><use x="4" y="1" href="#m1"/>'
    assert f'<g style="fill:#ff0000">{marks}</g>' in found


def test_a_circle_becomes_two_arcs_that_turn_as_it_did():
    around = [(1, 0), (0.7071, 0.7071), (0, 1), (-0.7071, 0.7071)]
    around += [(-x, -y) for x, y in around]
    for order, sweep in ((around, 1), (around[::-1], 0)):
        (x, y), *rest = [*order[-1:], *order]
        curves = "".join(f"C {a} {b} {a} {b} {a} {b} " for a, b in rest)
        found = made(path(f"M {x} {y} {curves}z"))
        assert re.search(rf'd="M\S+ \S+a1 1 0 0 {sweep} \S+ \S+a1 1 0 0 {sweep} ', found), found
    other = curves.replace("1", "2")
    assert "C" in made(path(f"M 0 0 {other}z"))


def test_a_line_loses_points_that_it_passes_anyway():
    points = [(x, 0.01 * (x % 2)) for x in range(50)] + [(50, 5), (51, 0)]
    found = made(path("M" + "L".join(f"{x} {y}" for x, y in points)))
    assert 'd="M0 0L49 0L50 5L51 0"' in found


def test_a_figure_is_a_third_of_what_it_was_and_keeps_its_text(tmp_path):
    figure = Figure()
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.plot([1, 10, 100], [3, 1, 2], marker="o", label="efd")
    axes.set_xlabel("size (packets)")
    axes.legend()
    figure.savefig(tmp_path / "plain.svg")
    small = figures.save(figure, tmp_path / "small.svg").read_text()
    assert len(small) < (tmp_path / "plain.svg").stat().st_size / 3
    assert small.count("\n") == 1
    assert ">size (packets)</text>" in small
    # Everything that is referred to is there.
    assert set(re.findall(r"#([mp]\w{6})\b", small)) <= set(re.findall(r'id="(\w+)"', small))
    assert compact(small) == small
