"""The `shortlane` command: what is written in Python, and the native command line for the rest."""

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from shortlane import _native
from shortlane.errors import InputError, ShortlaneError, Usage

#: Commands written in Python: modules `shortlane.<name>._command`.
PYTHON_COMMANDS = ("campaign", "paper", "report")

#: How this Python plays client and server of the lab.
AGENT = ["-I", "-S", str(Path(__file__).with_name("_agent.py")), _native.__file__]


class Parser(argparse.ArgumentParser):
    """Refuses in one line what it does not take, as the rest of the command line does."""

    def error(self, message: str) -> NoReturn:
        """Raise `Usage`."""
        raise Usage(f"{message}; --help says what is accepted")


def count(text: str) -> int:
    """The value of an option that takes a number; raises what `argparse` expects."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted; it takes a number, 1 to 1024")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (those of the process) and give its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    match words:
        case [name, *rest] if name in PYTHON_COMMANDS:
            return _python(name, rest)
        case ["help", name] if name in PYTHON_COMMANDS:
            return _python(name, ["--help"])
    return _rust(["shortlane", *words])


def _python(name: str, arguments: Sequence[str]) -> int:
    module = importlib.import_module(f"shortlane.{name}._command")
    parser = Parser(prog=f"shortlane {name}", description=module.__doc__)
    module.add_arguments(parser)
    try:
        module.run(parser.parse_args(arguments))
        sys.stdout.flush()
    except ShortlaneError as error:
        print(f"shortlane: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        print("shortlane: interrupted", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # A reader that has seen enough and left is no failure; nor is what Python has yet to flush.
        sys.stdout = None
    return 0


def _rust(words: Sequence[str]) -> int:
    """Run the command line in Rust, which takes care of signals itself."""
    # Python's own handler would be called beside it, and raise KeyboardInterrupt at the end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command_line(words, sys.executable, AGENT)


if __name__ == "__main__":
    sys.exit(main())
