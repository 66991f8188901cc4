"""Scenarios as dataclasses: the keys of files."""

import ast
import dataclasses
import inspect
import json
import tomllib
from pathlib import Path

import pytest
import shortlane
from shortlane import _native, disciplines, scenario, sections
from shortlane._section import Section, key_of
from shortlane._toml import scenario_text
from shortlane.disciplines import Efd

HEADINGS = {section["title"]: section for section in json.loads(_native.sections())}


def keys(kind):
    return {key_of(field.name) for field in dataclasses.fields(kind)}


def test_the_fields_of_a_scenario_are_the_keys_of_its_head():
    head = {key["name"] for key in HEADINGS["[scenario]"]["keys"]}
    rest = {"schedulers", "topology", "tcp", "traffic", "record"}
    assert keys(scenario.Scenario) == head | rest
    assert [key["name"] for key in HEADINGS["[schedulers]"]["keys"]] == ["run"]
    needed = {key["name"] for key in HEADINGS["[scenario]"]["keys"] if key["needed"]}
    without_default = {
        field.name
        for field in dataclasses.fields(scenario.Scenario)
        if field.default is dataclasses.MISSING
    }
    assert without_default == needed | {"schedulers", "topology", "traffic"}


def test_every_section_has_its_class():
    kinds = [getattr(sections, name) for name in sections.__all__]
    assert len(kinds) == len(HEADINGS) - 2
    assert all(issubclass(kind, Section) for kind in kinds)
    assert set(sections.__all__) < set(scenario.__all__)


def stubs(module):
    """The classes of the types that `make python` has written: their bodies, by name."""
    written = Path(module.__file__).with_suffix(".pyi").read_text()
    return {one.name: one.body for one in ast.parse(written).body if isinstance(one, ast.ClassDef)}


def test_types_are_those_of_the_classes():
    found = stubs(sections)
    assert set(found) == set(sections.__all__)
    for name, body in found.items():
        kind = getattr(sections, name)
        declared = [one for one in body if isinstance(one, ast.AnnAssign)]
        fields = {one.target.id: ast.unparse(one.annotation) for one in declared}
        assert fields.pop("KIND", "ClassVar[str | None]") == "ClassVar[str | None]"
        assert list(fields) == [field.name for field in dataclasses.fields(kind)]
        optional = {one.target.id for one in declared if one.value is not None}
        defaults = {one.name for one in dataclasses.fields(kind) if one.default is None}
        assert optional == defaults
    for name, body in stubs(disciplines).items():
        if name != "Discipline":
            arguments = [one.arg for one in body[0].args.kwonlyargs]
            assert arguments == list(inspect.signature(getattr(disciplines, name)).parameters)


@pytest.mark.parametrize("name", shortlane.scenarios())
def test_a_ready_scenario_reads_back_from_values(name):
    document = tomllib.loads(shortlane.scenarios()[name])
    assert tomllib.loads(scenario_text(document)) == document


def test_text_survives():
    text = 'a "b" \\ \t\n\x7f\x00é€ 漢'
    document = {"scenario": {"title": text, text: [1, 2.5, True, {"a-b": text}, []]}, "x": 1}
    assert tomllib.loads(scenario_text(document)) == document


def test_sections_may_stand_among_mappings():
    link = scenario.Link(rate="10mbit", back_rate="1mbit")
    document = {"topology": {"kind": "star", "arms": [{"access": link}, {"access": link}]}}
    expected = {"rate": "10mbit", "back-rate": "1mbit"}
    written = tomllib.loads(scenario_text(document))
    assert [arm["access"] for arm in written["topology"]["arms"]] == [expected, expected]
    assert scenario.Cbr(from_="a", rate="1mbit").to_dict() == {
        "kind": "cbr",
        "from": "a",
        "rate": "1mbit",
    }
    run = scenario_text({"schedulers": {"run": [Efd(threshold=3)]}})
    assert tomllib.loads(run) == {"schedulers": {"run": ["efd:threshold=3packets"]}}


def test_what_no_file_can_hold_is_named():
    with pytest.raises(
        shortlane.ScenarioError, match=r"traffic\[1\]\.rate is None; a scenario takes"
    ):
        scenario_text({"traffic": [{}, {"rate": None}]})
    with pytest.raises(shortlane.ScenarioError, match=r"a\.b\[0\] is b'x'"):
        scenario_text({"a": {"b": [b"x"]}})
