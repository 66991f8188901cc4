"""The `shortlane` command of the package: the same as the binary, and what is written in Python."""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys

import pytest
from commands import SHORTLANE, environment, run, start
from shortlane._command import PYTHON_COMMANDS, Parser

from scenarios import SCENARIO


def test_help_lists_every_command():
    answer = run("--help")
    assert answer.returncode == 0
    assert "Usage: shortlane <COMMAND>" in answer.stdout
    for name in ("list", "lab", "replay", "sim", "report", "paper", "campaign"):
        assert f"\n  {name} " in answer.stdout
    assert "lab-agent" not in answer.stdout
    assert run("--version").stdout.startswith("shortlane ")


@pytest.mark.parametrize("name", PYTHON_COMMANDS)
def test_each_command_in_python_has_help(name):
    answer = run(name, "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith(f"usage: shortlane {name}")


#: What a help text may begin with.
VERBS = (
    "End",
    "Give",
    "Go",
    "Judge",
    "Keep",
    "Make",
    "Print",
    "Read",
    "Replace",
    "Run",
    "Show",
    "Take",
    "Use",
    "Write",
)


def helps(parser):
    """The help texts of a parser and of its commands."""
    yield parser.description
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (choice.help for choice in action._choices_actions)
            for command in action.choices.values():
                yield from helps(command)
        elif not isinstance(action, argparse._HelpAction):
            yield action.help


@pytest.mark.parametrize("name", PYTHON_COMMANDS)
def test_help_begins_with_a_verb_as_that_of_the_other_commands(name):
    module = importlib.import_module(f"shortlane.{name}._command")
    parser = Parser(description=module.__doc__)
    module.add_arguments(parser)
    texts = list(helps(parser))
    assert len(texts) > 5
    assert [text for text in texts if text.split()[0] not in VERBS] == []


@pytest.mark.parametrize("name", PYTHON_COMMANDS)
def test_what_a_command_does_not_take_is_said_in_one_line(name):
    answer = run(name, "--nonsense")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("shortlane: ")
    assert answer.stderr.endswith("; --help says what is accepted\n")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("paper", "efd"), ("campaign", "run", "x.toml", "--out", "x")])
def test_no_runs_at_a_time_are_refused(words):
    answer = run(*words, "--jobs", "0")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "--jobs: '0' is not accepted; it takes a number, 1 to 1024" in answer.stderr


def test_exit_statuses_are_those_of_the_binary():
    assert run("list", "efd").returncode == 0
    nothing = run("sim", "no-such")
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert nothing.stderr.startswith("shortlane: no-such: No such file")
    assert nothing.stderr.count("\n") == 1
    assert run("nonsense").returncode == 2
    assert run().returncode == 2


def test_commands_in_python_end_as_the_others_do():
    code = """
import sys, types
from shortlane import _command
from shortlane.errors import Failed, Usage
module = types.ModuleType("shortlane.report._command", "Pages.")
def add_arguments(parser):
    parser.add_argument("how")
def run(arguments):
    if arguments.how == "badly":
        raise Usage("x.toml: no such thing")
    if arguments.how == "not":
        raise Failed("it did not work out")
    if arguments.how == "interrupted":
        raise KeyboardInterrupt
    print("done")
module.add_arguments, module.run = add_arguments, run
sys.modules["shortlane.report"] = types.ModuleType("shortlane.report")
sys.modules["shortlane.report._command"] = module
sys.exit(_command.main(sys.argv[1:]))
"""

    def call(*arguments, stdout=subprocess.PIPE):
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment(),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    well = call("report", "well")
    assert (well.returncode, well.stdout, well.stderr) == (0, "done\n", "")
    for how, status, said in [
        ("badly", 2, "shortlane: x.toml: no such thing\n"),
        ("not", 1, "shortlane: it did not work out\n"),
        ("interrupted", 1, "shortlane: interrupted\n"),
    ]:
        answer = call("report", how)
        assert (answer.returncode, answer.stdout, answer.stderr) == (status, "", said)
    for words in (["report", "--help"], ["help", "report"]):
        answer = call(*words)
        assert answer.returncode == 0
        assert answer.stdout.startswith("usage: shortlane report")
    assert call("report").returncode == 2

    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out:
        left = call("report", "well", stdout=out)
    assert (left.returncode, left.stderr) == (0, "")


def test_a_reader_that_leaves_is_no_failure():
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out:
        process = subprocess.run(
            [*SHORTLANE, "list"],
            env=environment(),
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (process.returncode, process.stderr) == (0, "")


def test_ctrl_c_shows_what_is_complete(tmp_path):
    path = tmp_path / "voice.toml"
    path.write_text(SCENARIO.to_toml())
    with start([*SHORTLANE, "sim", str(path), "--seeds", "1..1000"]) as process:
        # The first line of progress: runs are under way.
        assert "10 %" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "shortlane: interrupted; what is shown rests on" in errors
    assert "KeyboardInterrupt" not in errors
    assert out.startswith("voice: ")


def has_namespaces():
    tries = (["unshare", "--net", "true"], ["unshare", "--net", "--map-root-user", "true"])
    return any(subprocess.run(t, capture_output=True, check=False).returncode == 0 for t in tries)


@pytest.mark.skipif(not has_namespaces(), reason="no network namespaces here")
def test_the_lab_runs_with_agents_of_this_python(tmp_path):
    options = ["--late-limit", "90%", "--duration", "5s", "--rate", "5mbit", "--seed=7", "--json"]
    schedulers = ["--scheduler", "fifo", "--scheduler", "efd:threshold=10packets"]
    # A module of the current directory is not what the agents import.
    (tmp_path / "shortlane.py").write_text("raise SystemExit(3)")
    out = tmp_path / "out"
    command = [sys.executable, "-P", "-m", "shortlane", "lab"]
    for _ in range(3):
        with start([*command, *options, *schedulers, "--out", str(out)], cwd=tmp_path) as process:
            text, errors = process.communicate(timeout=240)
        # A machine that was too busy to measure anything is not what is tested.
        if "in a row were void" not in errors:
            break
    assert process.returncode == 0, errors
    found = [s["scheduler"] for s in json.loads(text)["summary"]["schedulers"]]
    assert found == ["fifo", "efd:threshold=10packets"]
    info = json.loads((out / "run.json").read_text())
    assert info["command"][:2] == ["shortlane", "lab"]
