"""SVG as matplotlib writes it, made a quarter of its size: the same picture, on one line.

What goes is what no reader sees: metadata, ids that nothing refers to, a style repeated by every
neighbour, marks that lie exactly on each other, points that a line passes without them, and digits
beyond a tenth of a point. Neighbours of one style become one path, and circles arcs.
"""

import io
import itertools
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compact", "inline"]

Point = tuple[float, float]

SVG = "{http://www.w3.org/2000/svg}"
#: What `href` was named before SVG 2.
XLINK = "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d*\.\d+(?:e-?\d+)?|-?\d+(?:e-?\d+)?")
#: Attributes that are numbers, or texts with numbers in them.
NUMERIC = ("d", "x", "y", "width", "height")
#: A circle as matplotlib draws it, of eight curves; a line of many points.
CIRCLE = re.compile(r"M([^A-Za-z]+)((?:C[^A-Za-z]+){8})[zZ]")
LINE = re.compile(r"M[^A-Za-z]+(?:L[^A-Za-z]+){50,}(?![A-Za-z]*[zZ])")
#: How far a point may be from the line without it, in points of 1/72 inch.
TOLERANCE = 0.1


def inline(figure: "Figure") -> str:
    """A figure as part of an HTML page: as wide as its place, in the page's font and colour.

    What is black takes the colour of the page's text. Groups that artists named `series-N` by
    their `gid` have that as their class.
    """
    import matplotlib as mpl

    from shortlane.figures.style import RC

    written = io.StringIO()
    with mpl.rc_context(RC | {"svg.fonttype": "none", "svg.hashsalt": "shortlane"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    text = compact(written.getvalue())
    text = re.sub(r'font-family:[^;"]*;?|width="[^"]*" height="[^"]*" (?=viewBox)', "", text)
    text = text.replace("<svg ", '<svg width="100%" fill="currentColor" ', 1)
    return text.replace("#000000", "currentColor").rstrip()


def compact(text: str) -> str:
    """The same picture in fewer bytes."""
    Xml.register_namespace("", SVG.strip("{}"))
    root = Xml.fromstring(text)
    for one in root.iter():
        _shorten(one)
    defined: dict[str, Xml.Element] = {}
    _flatten(root, defined)
    family = _family(root)
    if family:
        root.set("style", family)
    for one in [*root.iter()]:
        if one is root or one.get("class"):
            _gather(one, defined)
    used = set(re.findall(r"#([\w.-]+)", Xml.tostring(root, encoding="unicode")))
    for one in root.iter():
        if one.get("id") not in used:
            one.attrib.pop("id", None)
    kept = [one for name, one in defined.items() if name in {*used, "style"}]
    root.insert(0, _element("defs", {}, kept))
    return _with_short_ids(Xml.tostring(root, encoding="unicode").replace(" />", "/>")) + "\n"


def _with_short_ids(text: str) -> str:
    """Cuts ids, which are digests, to their first digits."""
    ids = set(re.findall(r'id="([mph][0-9a-f]{10})"', text))
    short = {one: one[:7] for one in ids}
    if len(set(short.values())) == len(ids):
        for one, other in short.items():
            text = text.replace(one, other)
    return text


def _element(tag: str, attributes: dict[str, str], children: list[Xml.Element]) -> Xml.Element:
    made = Xml.Element(f"{SVG}{tag}", attributes)
    made.extend(children)
    return made


def _shorten(one: Xml.Element) -> None:
    if "d" in one.attrib:
        path = re.sub(r"\s*([A-Za-z])\s*", r"\1", one.attrib["d"]).strip()
        one.set("d", CIRCLE.sub(_as_arcs, LINE.sub(_thinned, path)))
    for name in NUMERIC:
        if name in one.attrib and not one.attrib[name].endswith("pt"):
            one.set(name, NUMBER.sub(lambda found: _number(float(found[0])), one.attrib[name]))
    if "style" in one.attrib:
        one.set("style", _style(_declared(one.attrib["style"])))
    if XLINK in one.attrib:
        one.set("href", one.attrib.pop(XLINK))
    turned = re.fullmatch(r"rotate\((\S+) (\S+) (\S+)\)", one.get("transform", ""))
    if turned:
        angle, x, y = (_number(float(part)) for part in turned.groups())
        one.set("transform", f"rotate({angle} {x} {y})")
        if angle == "0":
            del one.attrib["transform"]
    if one.text and not one.text.strip():
        one.text = None
    if one.tail and not one.tail.strip():
        one.tail = None


def _number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split()]


def _declared(style: str) -> dict[str, str]:
    pairs = (one.partition(":") for one in style.split(";") if ":" in one)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _style(declared: dict[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in declared.items())


def _as_arcs(found: re.Match[str]) -> str:
    """Two half circles, if it is a circle."""
    ends = [_numbers(curve)[-2:] for curve in found[2].split("C")[1:]]
    x, y = (sum(parts) / len(ends) for parts in zip(*ends, strict=True))
    radii = [math.hypot(one[0] - x, one[1] - y) for one in ends]
    if max(radii) - min(radii) > 0.01:
        return found[0]
    # Which way it is drawn matters to a ring, of two circles.
    first, then = ((one[0] - x, one[1] - y) for one in (ends[7], ends[0]))
    sweep = int(first[0] * then[1] > first[1] * then[0])
    over = [end - start for end, start in zip(ends[3], ends[7], strict=True)]
    arcs = (
        f"a{radii[0]} {radii[0]} 0 0 {sweep} {way * over[0]} {way * over[1]}" for way in (1, -1)
    )
    return f"M{found[1]}{''.join(arcs)}z"


def _thinned(found: re.Match[str]) -> str:
    """The line without points that what is left of it passes (Ramer, Douglas, Peucker)."""
    points = [(x, y) for x, y in map(_numbers, re.split("[ML]", found[0])[1:])]
    kept = {0, len(points) - 1}
    parts = [(0, len(points) - 1)]
    while parts:
        first, last = parts.pop()
        between = range(first + 1, last)
        away = [_distance(points[one], points[first], points[last]) for one in between]
        if away and max(away) > TOLERANCE:
            place = between[away.index(max(away))]
            kept.add(place)
            parts += [(first, place), (place, last)]
    return "M" + "L".join(f"{points[one][0]} {points[one][1]}" for one in sorted(kept))


def _distance(of: Point, start: Point, end: Point) -> float:
    """How far a point is from the straight line between two others."""
    along = (end[0] - start[0], end[1] - start[1])
    away = (of[0] - start[0], of[1] - start[1])
    length = math.hypot(*along)
    if length == 0:
        return math.hypot(*away)
    part = min(1.0, max(0.0, (away[0] * along[0] + away[1] * along[1]) / length**2))
    return math.hypot(away[0] - part * along[0], away[1] - part * along[1])


def _flatten(parent: Xml.Element, defined: dict[str, Xml.Element]) -> None:
    """Puts the children of groups that do nothing but clip in the place of these.

    What is defined goes to `defined`, metadata nowhere.
    """
    kept: list[Xml.Element] = []
    for child in list(parent):
        if child.tag == f"{SVG}defs":
            # What has no id is the style of everything.
            defined |= {one.get("id", "style"): one for one in child}
        elif child.tag == f"{SVG}g":
            _flatten(child, defined)
            if child.get("id", "").startswith("series-"):
                # Several artists of a series have one name, which is a class then.
                child.set("class", child.attrib.pop("id"))
            clip = {name: value for name, value in child.attrib.items() if name == "clip-path"}
            if set(child.attrib) <= {"id", "clip-path"} and _is_unclipped(child, clip):
                for one in child:
                    one.attrib.update(clip)
                kept.extend(child)
            else:
                kept.append(child)
        elif child.tag != f"{SVG}metadata":
            kept.append(child)
    parent[:] = kept


def _is_unclipped(group: Xml.Element, clip: dict[str, str]) -> bool:
    return not clip or not any("clip-path" in one.attrib for one in group)


def _family(root: Xml.Element) -> str:
    """Takes the font family that all texts have off them, and gives it."""
    texts = [one for one in root.iter() if "font-family:" in one.get("style", "")]
    styles = [_declared(one.get("style", "")) for one in texts]
    families = {style.pop("font-family") for style in styles}
    if len(families) != 1:
        return ""
    for one, style in zip(texts, styles, strict=True):
        one.set("style", _style(style))
    return f"font-family:{families.pop()}"


def _gather(parent: Xml.Element, defined: dict[str, Xml.Element]) -> None:
    """Neighbours that are clipped alike become a group, and within it those of one style one."""
    groups: list[Xml.Element] = []
    for clip, clipped in itertools.groupby(list(parent), lambda one: one.get("clip-path")):
        found = []
        for child in clipped:
            child.attrib.pop("clip-path", None)
            found.append(_inlined(child, defined))
        parts = itertools.groupby(found, _kind)
        found = [one for _, alike in parts for one in _as_one(list(alike))]
        groups.extend(found if clip is None else [_element("g", {"clip-path": clip}, found)])
    parent[:] = groups


def _inlined(one: Xml.Element, defined: dict[str, Xml.Element]) -> Xml.Element:
    """A mark as a path at its place, if what it refers to is a single line."""
    mark = defined.get(one.get("href", "").removeprefix("#"))
    path = "" if mark is None else mark.get("d", "")
    if one.tag != f"{SVG}use" or mark is None or not re.fullmatch("M[^A-Za-z]+L[^A-Za-z]+", path):
        return one
    style = _declared(one.get("style", "")) | _declared(mark.get("style", ""))
    at = float(one.get("x", "0")), float(one.get("y", "0"))
    ends = (_numbers(end) for end in re.split("[ML]", path)[1:])
    start, end = (" ".join(_number(a + b) for a, b in zip(at, one, strict=True)) for one in ends)
    return _element("path", {"d": f"M{start}L{end}", "style": _style(style)}, [])


def _kind(one: Xml.Element) -> tuple[str, ...]:
    """What neighbours share that become one; others share nothing.

    Where colours shine through, or an area has an edge, one that lies over another is not one path
    with it; marks remain marks, in a group.
    """
    style = one.get("style", "")
    marks = one.tag == f"{SVG}use" and "href" in one.attrib
    lines = one.tag == f"{SVG}path" and set(one.attrib) == {"d", "style"}
    lines = lines and ("fill:none" in style.split(";") or not re.search("[CazZ]", one.get("d", "")))
    if "opacity" in style or not (marks or lines):
        return (str(id(one)),)
    return one.tag, style


def _as_one(alike: list[Xml.Element]) -> Iterator[Xml.Element]:
    style = alike[0].get("style", "")
    if len(alike) == 1:
        yield alike[0]
    elif alike[0].tag == f"{SVG}path":
        alike[0].set("d", "".join(dict.fromkeys(one.get("d", "") for one in alike)))
        yield alike[0]
    else:
        # Of marks that lie on an equal one, one is seen.
        marks = {tuple(one.attrib.items()): one for one in alike}
        for one in marks.values():
            one.attrib.pop("style", None)
        yield _element("g", {"style": style} if style else {}, list(marks.values()))
