"""The `shortlane` command: what is written in Python, and the native command line for the rest."""

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence

from shortlane.errors import InputError, ShortlaneError

#: Commands written in Python, with what `--help` says of them.
PYTHON_COMMANDS = {
    "campaign": "a sweep of any size, on this machine or a Dask cluster, that survives anything",
    "paper": "a paper's figures and tables again, with a verdict for each claim",
    "report": "one self-contained HTML page from a directory of results",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with `arguments` (those of the process) and gives its exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments[0] not in PYTHON_COMMANDS:
        return native(arguments)
    name, *rest = arguments
    module = importlib.import_module(f"shortlane.{name}._command")
    parser = argparse.ArgumentParser(prog=f"shortlane {name}", description=module.__doc__)
    module.add_arguments(parser)
    try:
        module.run(parser.parse_args(rest))
    except ShortlaneError as error:
        print(f"shortlane: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        print("shortlane: interrupted", file=sys.stderr)
        return 1
    return 0


def native(arguments: Sequence[str]) -> int:
    """The command line in Rust; it takes care of signals itself."""
    from shortlane import _native

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return int(_native.command_line(list(arguments)))


if __name__ == "__main__":
    sys.exit(main())
