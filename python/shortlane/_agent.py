"""Client or server of the lab, as a process of its own: `_agent.py EXTENSION ROLE`.

The lab gives its agents a fraction of a second to begin. So this imports the extension module
alone, by its path, and neither the package nor anything else.
"""

import signal
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec


def main() -> int:
    """Play the role, and give the exit status."""
    _, path, role = sys.argv
    loader = ExtensionFileLoader("shortlane._native", path)
    native = loader.create_module(ModuleSpec("shortlane._native", loader, origin=path))
    loader.exec_module(native)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return int(native.command_line(["shortlane", "lab-agent", role], sys.executable, []))


if __name__ == "__main__":
    sys.exit(main())
