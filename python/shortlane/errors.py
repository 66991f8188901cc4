"""What can go wrong, for whoever calls the library and for the command's exit status."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shortlane.results import Results

__all__ = ["Failed", "InputError", "RunError", "ScenarioError", "ShortlaneError", "Usage"]


class ShortlaneError(Exception):
    """Anything that Shortlane refuses or fails at; its text is one line."""


class InputError(ShortlaneError, ValueError):
    """Bad input: names what was found, where, and what is accepted. The command exits with 2."""


class ScenarioError(InputError):
    """A scenario that is not accepted: names file, line and key."""


class RunError(ShortlaneError, RuntimeError):
    """It did not work out. The command exits with 1."""

    results: "Results | None"
    """What there is all the same: the runs that were complete by then."""

    def __init__(self, text: str, results: "Results | None" = None) -> None:
        """Say what went wrong, and hand over what there is."""
        super().__init__(text)
        self.results = results


#: The names by which commands raise them.
Usage = InputError
Failed = RunError
