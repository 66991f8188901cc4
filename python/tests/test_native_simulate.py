"""`simulate()`: the command's results, without files."""

import filecmp
import json
import signal
import sys
import threading
import tomllib

import polars
import pytest
import shortlane
from commands import run, start

from scenarios import SCENARIO

SETTING = {"schedulers": ["fifo", "efd:threshold=10packets"], "seeds": [1, 2], "duration": "6s"}
ARGUMENTS = ["--scheduler", "fifo", "--scheduler", "efd:threshold=10packets", "--seeds", "1,2"]


@pytest.fixture(scope="module")
def scenario_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "voice.toml"
    path.write_text(SCENARIO.to_toml())
    return path


@pytest.fixture(scope="module")
def results(scenario_file):
    return shortlane.simulate(scenario_file, **SETTING, events=True)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_everything_is_as_the_command_has_it(results, scenario_file, form, tmp_path):
    theirs, ours, events = tmp_path / "theirs", tmp_path / "ours", tmp_path / f"events.{form}"
    files = ["--out", str(theirs), "--format", form, "--events", str(events)]
    command = run("sim", str(scenario_file), *ARGUMENTS, "--duration", "6s", *files)
    assert (command.returncode, command.stdout) == (0, results.text)
    results.write(ours, form)
    names = sorted(path.name for path in theirs.iterdir())
    assert names == sorted(
        [*(f"{t}.{form}" for t in shortlane.schema() if t != "events"), "run.json"]
    )
    same, different, missing = filecmp.cmpfiles(theirs, ours, names, shallow=False)
    assert (sorted(same), different, missing) == (names, [], [])
    assert filecmp.cmp(events, ours / f"events.{form}", shallow=False)

    again = shortlane.read(theirs)
    assert again.info == results.info
    for name in again.tables:
        assert again[name].polars().equals(results[name].polars()), name


def test_the_summary_is_that_of_json(results, scenario_file):
    command = run("sim", str(scenario_file), *ARGUMENTS, "--duration", "6s", "--json")
    assert json.loads(command.stdout)["summary"] == results.summary


def test_values_mean_what_the_file_means(results, scenario_file):
    from_dict = shortlane.simulate(tomllib.loads(scenario_file.read_text()), **SETTING)
    from_dataclass = shortlane.simulate(SCENARIO, **SETTING)
    for other in (from_dict, from_dataclass):
        for name in other.tables:
            mine, theirs = other[name].polars().drop("run"), results[name].polars().drop("run")
            assert mine.equals(theirs), name


def test_columns_are_those_of_the_schema(results):
    kinds = {"boolean": polars.Boolean, "integer": polars.Int64, "float": polars.Float64}
    assert list(results.tables) == list(shortlane.schema())
    for name, columns in shortlane.schema().items():
        frame = getattr(results, name)
        assert len(frame) == len(results[name]) > 0, name
        expected = {c["name"]: kinds.get(c["kind"], polars.String) for c in columns}
        assert dict(frame.schema) == expected
        filled = [c["name"] for c in columns if not c["nullable"]]
        assert frame.select(filled).null_count().sum_horizontal().item() == 0


def test_tables_go_to_pandas_and_pyarrow(results):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(results["flows"])
    assert table.num_rows == len(results.flows)
    assert table.schema.field("scheduler").type == pyarrow.string_view()
    frame = results["flows"].pandas()
    assert (
        list(frame["completion_ns"].dropna())
        == results.flows["completion_ns"].drop_nulls().to_list()
    )


def test_only_the_tables_that_are_named_are_kept(scenario_file):
    results = shortlane.simulate(scenario_file, **SETTING, tables=["flows"])
    assert list(results.tables) == ["flows"]
    assert list(shortlane.simulate(scenario_file, **SETTING, tables=[]).tables) == []
    with pytest.raises(AttributeError, match="flows"):
        _ = results.probes
    with pytest.raises(KeyError, match="there are flows"):
        results["probes"]
    with pytest.raises(
        shortlane.InputError, match="'flow' is not accepted: it takes blocks, links"
    ):
        shortlane.simulate(scenario_file, tables=["flow"])


def changed(**sections):
    document = SCENARIO.to_dict()
    for section, keys in sections.items():
        document[section] = document[section] | keys
    return document


@pytest.mark.parametrize(
    ("scenario", "arguments", "kind", "said"),
    [
        ("no-such", {}, "ScenarioError", "no-such: No such file or directory"),
        (
            changed(scenario={"duration": 5}),
            {},
            "ScenarioError",
            '<dict>: scenario.duration = 5 is not accepted; it takes "1us" to "2592000s"',
        ),
        (
            changed(topology={"pears": 2}),
            {},
            "ScenarioError",
            "<dict>: topology has no key 'pears'; did you mean 'pairs'?",
        ),
        (changed(scenario={"title": None}), {}, "ScenarioError", "scenario.title is None; a scen"),
        (changed(scenario={1: 2}), {}, "ScenarioError", "scenario has the key 1; it takes keys"),
        ({}, {}, "ScenarioError", "<dict>: the scenario needs 'scenario'"),
        ("mg1", {"schedulers": ["sfq"]}, "InputError", "no discipline is named 'sfq'; there are"),
        ("mg1", {"schedulers": []}, "InputError", "schedulers is empty"),
        ("mg1", {"seeds": "3..1"}, "InputError", "seeds 3..1 is not accepted: it takes one seed"),
        ("mg1", {"seeds": []}, "InputError", "seeds  is not accepted"),
        ("mg1", {"seeds": [1, 1]}, "InputError", "seeds 1,1 is not accepted"),
        ("mg1", {"duration": "5"}, "InputError", "duration 5 is not accepted: it takes a time"),
        ("mg1", {"duration": -1.0}, "InputError", "duration -1.0 is not accepted"),
        ("mg1", {"duration": float("nan")}, "InputError", "duration nan is not accepted"),
        ("mg1", {"jobs": 0}, "InputError", "jobs 0 is not accepted: it takes a number from 1"),
    ],
)
def test_what_is_not_accepted_is_named(scenario, arguments, kind, said):
    with pytest.raises(getattr(shortlane, kind)) as caught:
        shortlane.simulate(scenario, **arguments)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(SCENARIO.to_toml().replace('"5packets"', "5"))
    with pytest.raises(
        shortlane.ScenarioError, match=r"x\.toml:\d+: topology\.bottleneck\.limit = 5 "
    ):
        shortlane.simulate(path)


def test_a_run_that_cannot_go_on_hands_over_the_others():
    crowded = changed(scenario={"bound": 20})
    with pytest.raises(shortlane.RunError, match="seed") as caught:
        shortlane.simulate(crowded, jobs=1)
    results = caught.value.results
    assert results.info["ended_early"] == str(caught.value)
    assert len(results.blocks) < 4


def test_progress_is_told_to_the_end_and_may_end_the_run():
    told = []
    shortlane.simulate(SCENARIO, progress=lambda part, text: told.append((part, text)))
    parts = [part for part, _ in told]
    assert parts == sorted(parts)
    assert told[-1] == (1.0, "4 runs")

    class Enough(Exception):
        pass

    def enough(part, text):
        raise Enough

    with pytest.raises(Enough):
        shortlane.simulate(SCENARIO, seeds="1..10000", progress=enough)


def test_ctrl_c_ends_the_runs():
    code = """
import shortlane
def tell(part, text):
    print("running", flush=True)
try:
    shortlane.simulate("efd-paper-8mbit", seeds="1..10000", progress=tell)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    with start([sys.executable, "-c", code]) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert (rest.splitlines()[-1], process.returncode, errors) == ("interrupted", 0, "")


def test_other_threads_run_meanwhile():
    order = []
    started = threading.Event()

    def work():
        order.append("start")
        started.set()
        shortlane.simulate("efd-paper-8mbit", seeds=1, schedulers=["fifo"])
        order.append("end")

    # Threads change only where one lets go of the interpreter.
    usual = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        order.append("meanwhile")
        thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert order == ["start", "meanwhile", "end"]


def test_calls_from_several_threads_are_of_each_other_independent(results, scenario_file):
    found = {}

    def work(number):
        found[number] = shortlane.simulate(scenario_file, **SETTING, jobs=1).flows

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number].equals(results.flows) for number in range(4))


def test_a_bar_is_drawn_on_standard_error(capfd):
    shortlane.simulate(SCENARIO, progress=True)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.endswith("100 %  4 runs\n")


def test_the_package_is_light_to_import():
    code = "import sys, shortlane; print(*{m.split('.')[0] for m in sys.modules})"
    with start([sys.executable, "-c", code]) as process:
        loaded = process.communicate()[0].split()
    heavy = {"polars", "pandas", "pyarrow", "matplotlib", "dask", "distributed", "numpy"}
    assert heavy.isdisjoint(loaded)
    assert "shortlane" in loaded
