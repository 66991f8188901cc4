"""What a sweep says: values, ranges, points, names of runs, and what is refused."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import shortlane
from campaign_help import SCENARIO, SCENARIO_TOML, sweep
from shortlane.campaign import Campaign, quantity
from shortlane.campaign.share import Waiting, each
from shortlane.campaign.values import values
from shortlane.errors import InputError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["16kb", "64kb"], ["16kb", "64kb"]),
        ({"from": "4mbit", "to": "12mbit", "step": "4mbit"}, ["4mbit", "8mbit", "12mbit"]),
        ({"from": "500kbit", "to": "2mbit", "step": "1mbit"}, ["500kbit", "1500kbit"]),
        ({"from": 1, "to": 64, "factor": 4}, [1, 4, 16, 64]),
        ({"from": 1, "to": 3, "count": 3}, [1, 2, 3]),
        ({"from": 1, "to": 2, "count": 3}, [1.0, 1.5, 2.0]),
        ({"from": 0.1, "to": 0.5, "step": 0.2}, [0.1, 0.3, 0.5]),
        ({"from": 1, "to": 2, "step": 0.5}, [1.0, 1.5, 2.0]),
        ({"from": "1ms", "to": "1s", "factor": 10}, ["1ms", "10ms", "100ms", "1000ms"]),
        (
            {"from": "10packets", "to": "100packets", "count": 3, "scale": "geometric"},
            ["10packets", "32packets", "100packets"],
        ),
        (
            {"from": "1mbit", "to": "2mbit", "count": 3, "scale": "geometric"},
            ["1mbit", "1.41421mbit", "2mbit"],
        ),
        ({"from": "1kb", "to": "1mb", "factor": 32}, ["1kb", "32kb", "1024kb"]),
        ({"from": "10%", "to": "30%", "step": "10%"}, ["10%", "20%", "30%"]),
    ],
)
def test_values(given, expected):
    found = values(given, "f: k")
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("4mbit", "f: k = '4mbit' is not accepted; it takes a list, or a range"),
        ([], "f: k is an empty list; it takes at least one value"),
        ([1, 1], "f: k has 1 twice"),
        ({"from": 1}, "it takes from, to, and one of step, factor and count"),
        ({"from": 1, "to": 2, "step": 1, "count": 2}, "one of step, factor and count"),
        ({"from": 1, "to": 2, "stride": 1}, "a range has no key 'stride'"),
        ({"from": "1mbit", "to": "2ms", "step": 1}, "it takes a rate from low to high"),
        ({"from": 3, "to": 2, "step": 1}, "from 3 to 2 is not accepted"),
        ({"from": 1, "to": 2, "step": 0}, "f: k.step = 0 is not accepted; it takes a number above"),
        ({"from": 0, "to": 2, "factor": 2}, "a number above 1, and from above 0"),
        ({"from": 1, "to": 2, "factor": 1}, "a number above 1"),
        ({"from": 1, "to": 2, "count": 1}, "a whole number from 2"),
        ({"from": 1, "to": 2, "count": 3, "scale": "log"}, 'it takes "linear", or "geometric"'),
        ({"from": 1, "to": 2, "factor": 2, "scale": "linear"}, "scale goes with count"),
        ({"from": "1furlong", "to": 2, "step": 1}, "f: k.from = '1furlong' is not accepted"),
        ({"from": 0, "to": 1e9, "step": 1}, "more than 10000 values"),
    ],
)
def test_values_that_are_refused(given, said):
    with pytest.raises(InputError) as refused:
        values(given, "f: k")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_quantities():
    expected = {"4mbit": 4e6, "1mbps": 8e6, "16kb": 16384, "20ms": 0.02, "2min": 120, "5%": 0.05}
    assert {text: quantity(text) for text in expected} == expected
    assert quantity(3) == 3
    assert quantity("30packets") == 30


def test_units_are_those_of_scenarios():
    """Each quantity is accepted by the scenario reader, and means the same there."""
    rates = ["1000000bit", "1000kbit", "1mbit", "0.001gbit", "125kbps"]
    loads = [_sent(rate) for rate in rates]
    assert len({quantity(rate) for rate in rates}) == 1
    assert all(load == loads[0] for load in loads)


def _sent(rate):
    scenario = SCENARIO | {"traffic": [{"kind": "cbr", "rate": rate, "packet": "1kb"}]}
    scenario = scenario | {"schedulers": {"run": ["fifo"]}}
    return shortlane.simulate(scenario, seeds=1).links["sent_bytes"].to_list()


def test_points_are_every_combination_in_the_order_of_the_file():
    document = sweep(loads=[0.4, 0.8])
    document["grid"]["topology.bottleneck.limit"] = ["10packets", "20packets"]
    points = Campaign.load(document).points()
    settings = [tuple(point.params.values()) for point in points]
    limits = ["10packets", "20packets"]
    assert settings == [(load, limit) for load in (0.4, 0.8) for limit in limits]
    scenario = tomllib.loads(points[1].scenario)
    assert scenario["traffic"][0]["load"] == 0.4
    assert scenario["topology"]["bottleneck"]["limit"] == "20packets"
    assert points[0].duration_s == 2


def test_dotted_keys_need_no_quotes(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO_TOML)
    path = tmp_path / "sweep.toml"
    path.write_text(
        '[campaign]\ntitle = "t"\nscenario = "small.toml"\nseeds = 1\n'
        '[set]\nscenario.duration = "1s"\n'
        "[grid]\ntraffic.0.load = { from = 0.2, to = 0.6, step = 0.2 }\n"
        'tcp.window = ["16kb"]\n'
    )
    points = Campaign.load(path).points()
    assert [point.params["traffic.0.load"] for point in points] == [0.2, 0.4, 0.6]
    assert tomllib.loads(points[0].scenario)["tcp"] == {"window": "16kb"}
    assert {point.duration_s for point in points} == {1.0}


def test_traffic_goes_by_name_kind_and_place():
    for key in ("traffic.voice.rate", "traffic.1.rate"):
        document = sweep(loads=[0.5], set={key: "32kbit"})
        (point,) = Campaign.load(document).points()
        assert tomllib.loads(point.scenario)["traffic"][1]["rate"] == "32kbit"
    with pytest.raises(InputError, match=r"no 'video' .* it takes 0 \(transfers\), 1 \(voice\)"):
        Campaign.load(sweep(set={"traffic.video.rate": "1mbit"}))


def test_zipped_lists_vary_together():
    document = sweep(loads=[0.5]) | {
        "zip": [
            {
                "topology.bottleneck.rate": ["5mbit", "10mbit"],
                "topology.bottleneck.limit": {"from": "50packets", "to": "100packets", "count": 2},
            }
        ]
    }
    points = Campaign.load(document).points()
    settings = [tuple(point.params.values())[1:] for point in points]
    assert settings == [("5mbit", "50packets"), ("10mbit", "100packets")]


def test_schedulers_with_grids_of_parameters():
    document = sweep(seeds=1, loads=[0.5], schedulers=["fifo"])
    document["schedulers"]["efd"] = {
        "threshold": ["10packets", "30packets"],
        "limit": "100packets",
    }
    assert [run.scheduler for run in Campaign.load(document).runs()] == [
        "fifo",
        "efd:threshold=10packets,limit=100packets",
        "efd:threshold=30packets,limit=100packets",
    ]


def test_schedulers_and_seeds_default_to_the_scenarios():
    document = {"campaign": {"title": "t", "scenario": "efd-paper-8mbit"}}
    runs = Campaign.load(document).runs()
    expected = tomllib.loads(shortlane.scenarios()["efd-paper-8mbit"])
    assert len(runs) == 10 * len(expected["schedulers"]["run"])
    assert {run.seed for run in runs} == set(range(1, 11))


def test_what_is_excluded():
    rules = [{"traffic.transfers.load": 0.8, "scheduler": ["efd", "las"]}]
    document = sweep(seeds=1, schedulers=["fifo", "efd", "las"]) | {"exclude": rules}
    runs = Campaign.load(document).runs()
    left = [(run.point.params["traffic.transfers.load"], run.scheduler) for run in runs]
    assert left == [(0.4, "fifo"), (0.4, "efd"), (0.4, "las"), (0.8, "fifo")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(7, [7]), ("7", [7]), ("1..3", [1, 2, 3]), ("5, 1", [5, 1]), ([2, 4], [2, 4])],
)
def test_seeds(given, expected):
    assert Campaign.load(sweep(seeds=given)).sweep.seeds == expected


@pytest.mark.parametrize("seeds", ["", "3..1", "1..", "a", "1,1", -1, "0..10000", [1, 1], 2**63])
def test_seeds_that_are_refused(seeds):
    with pytest.raises(InputError, match=r"campaign: campaign.seeds = .*; it takes one seed"):
        Campaign.load(sweep(seeds=seeds))


def test_names_of_runs_stay():
    """They are the names of files that may be years old: a change of rules must be meant."""
    whole = Campaign.load(sweep())
    names = [run.id for run in whole.runs()]
    assert len(set(names)) == len(names)
    assert names == [run.id for run in Campaign.load(json.loads(json.dumps(sweep()))).runs()]
    other = {"scenario": {"title": "Said otherwise", "duration": "2s", "warm-up": "0s"}}
    retold = sweep(title="Another title")
    retold["campaign"]["scenario"] = SCENARIO | other
    assert names == [run.id for run in Campaign.load(retold).runs()]
    longer = sweep(set={"scenario.duration": "3s"})
    assert not set(names) & {run.id for run in Campaign.load(longer).runs()}


def test_names_depend_on_version_schema_and_tables(monkeypatch):
    before = {run.id for run in Campaign.load(sweep()).runs()}
    some = sweep()
    some["campaign"]["tables"] = ["links"]
    assert not before & {run.id for run in Campaign.load(some).runs()}
    monkeypatch.setattr(shortlane, "__version__", "9.9.9")
    newer = {run.id for run in Campaign.load(sweep()).runs()}
    monkeypatch.setattr(shortlane, "SCHEMA_VERSION", 99)
    newest = {run.id for run in Campaign.load(sweep()).runs()}
    assert not before & newer
    assert not newer & newest


def test_files_count_by_what_is_in_them(tmp_path):
    def names(folder, content):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "list.csv").write_text(content)
        small = SCENARIO_TOML.replace("load = 0.5", 'list = "list.csv"')
        (tmp_path / folder / "small.toml").write_text(small)
        path = tmp_path / folder / "sweep.toml"
        path.write_text('[campaign]\ntitle = "t"\nscenario = "small.toml"\nseeds = 1\n')
        (run,) = Campaign.load(path).runs()
        listed = tomllib.loads(run.scenario)["traffic"][0]["list"]
        assert listed == str(tmp_path / folder / "list.csv")
        return run.id

    one = names("a", "start_s,size_bytes\n0.1,1000\n")
    assert names("b", "start_s,size_bytes\n0.1,1000\n") == one
    assert names("a", "start_s,size_bytes\n0.1,2000\n") != one


def test_the_scenario_of_a_run_reproduces_it():
    run = Campaign.load(sweep(schedulers=["efd:threshold=5packets"])).runs()[-1]
    scenario = tomllib.loads(run.scenario)
    assert scenario["schedulers"] == {"run": ["efd:threshold=5packets"]}
    found = shortlane.simulate(scenario, seeds=run.seed).blocks
    assert found["scheduler"].to_list() == ["efd:threshold=5packets"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"grids": {}}, "the file has no key 'grids'; it takes campaign, set, grid, zip"),
        ({"grid": {"scenario.seeds": [1]}}, "it is set by [campaign] seeds"),
        ({"set": {"schedulers.run": ["efd"]}}, "it is set by [schedulers]"),
        ({"set": {"traffic.transfers.load": 0.1}}, "'traffic.transfers.load' is given twice"),
        ({"set": {"scenario.title.x": 1}}, "'scenario.title.x' is not accepted; there is no 'x'"),
        ({"zip": {"a": [1]}}, "campaign: zip = {'a': [1]} is not accepted; it takes tables"),
        ({"zip": [{"a": [1, 2], "b": [1]}]}, "zip[0] has a 2, b 1; it takes as many values"),
        ({"zip": [{}]}, "zip[0] has no key"),
        ({"schedulers": {"run": "efd"}}, "schedulers.run = 'efd' is not accepted"),
        ({"schedulers": {"run": []}}, "it takes at least one scheduler"),
        ({"schedulers": {"run": ["efd", "efd"]}}, "has 'efd' twice"),
        ({"schedulers": {"efd": ["10packets"]}}, "it takes a table of parameters"),
        ({"exclude": [{"scheduler": "las"}]}, "exclude.scheduler = 'las' is not accepted"),
        ({"exclude": [{"tcp.window": 1}]}, "[[exclude]] has no key 'tcp.window'"),
        ({"exclude": [{"scheduler": ["fifo", "efd"]}]}, "exclude leaves out everything"),
        ({"exclude": [{}]}, "exclude = {} is not accepted"),
        ({"grid": {"traffic.0.load": 0.5}}, "grid.traffic.0.load = 0.5 is not accepted"),
        ({"grid": [1]}, "grid = [1] is not accepted; it takes a table"),
        ({"campaign": {}}, "campaign.title = None is not accepted"),
        ({"campaign": {"title": "t", "scenario": "nowhere.toml"}}, "or a ready scenario: "),
        ({"campaign": {"title": "t", "scenario": SCENARIO, "tables": ["flow"]}}, "it takes a list"),
        ({"campaign": {"title": "t", "seed": 1}}, "[campaign] has no key 'seed'"),
    ],
)
def test_sweeps_that_are_refused(more, said):
    document = sweep() | more
    document["campaign"] = {"scenario": SCENARIO} | document["campaign"]
    with pytest.raises(InputError) as refused:
        Campaign.load(document)
    assert said in str(refused.value)
    assert str(refused.value).startswith("campaign: ")


def test_files_that_are_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    with pytest.raises(InputError, match=r"sweep.toml: No such file or directory; it takes a TOML"):
        Campaign.load(path)
    path.write_text("[campaign]\ntitle = ")
    with pytest.raises(InputError, match=r"sweep.toml: Invalid value"):
        Campaign.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"sweep.toml: "):
        Campaign.load(path)


def test_short_runs_travel_together_and_long_ones_alone():
    runs = Campaign.load(sweep(seeds="1..32")).runs()
    assert [len(task) for task in _tasks(runs, pace=10.0)] == [1] * 64
    first = _tasks(runs, pace=10.0)[:2]
    assert [task[0][0].point.params["traffic.transfers.load"] for task in first] == [0.4, 0.8]
    together = _tasks(runs, pace=0.01)
    assert sorted(run.id for task in together for run in each(task)) == sorted(
        run.id for run in runs
    )
    # One simulation takes all seeds of a point that it can: 128 runs, two workers.
    assert len(together[0]) == 1
    assert len(together[0][0]) == 32
    assert len(together) < 16


def test_what_is_ragged_is_not_simulated_together():
    runs = Campaign.load(sweep(seeds="1..32", loads=[0.5])).runs()
    for task in _tasks(runs[1:], pace=0.01):
        for group in task:
            schedulers = [run.scheduler for run in group if run.seed == group[0].seed]
            seeds = list(dict.fromkeys(run.seed for run in group))
            expected = [(seed, scheduler) for seed in seeds for scheduler in schedulers]
            assert [(run.seed, run.scheduler) for run in group] == expected


def _tasks(runs, pace):
    waiting = Waiting(runs)
    tasks = []
    while waiting:
        tasks.append(waiting.take(pace, workers=2))
    return tasks


def test_what_the_documentation_shows(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text()
    path = tmp_path / "sweep.toml"
    path.write_text(re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1])
    campaign = Campaign.load(path)
    assert (len(campaign.points()), len(campaign.runs())) == (6, 180)
    ranges = re.findall(r"^\| `(\{ from .*?\})` \| (.*?) \|$", text, re.MULTILINE)
    assert len(ranges) == 4
    for shown, expected in ranges:
        found = values(tomllib.loads(f"range = {shown}")["range"], "range")
        assert [str(value) for value in found] == re.findall(r"[^`, ]+", expected)
