"""Where the papers' claims are: `papers/` of the checkout, or the copy in the installed package."""

from importlib import resources
from pathlib import Path

from shortlane.errors import InputError

__all__ = ["folder", "names"]


def folder(name: str) -> Path:
    """The folder of paper `name`: its claims, its campaigns, the findings.

    A path of a folder is that folder; whether it has a `paper.toml` is for its reader to say.

    Raises:
        InputError: there is no such paper; names those that there are.

    """
    if ("/" in name or name.startswith(".")) and Path(name).is_dir():
        return Path(name).resolve()
    for papers in places():
        if (papers / name / "paper.toml").is_file():
            return papers / name
    known = names()
    accepted = ", ".join(known) if known else "none is installed"
    raise InputError(f"there is no paper {name!r}; there are: {accepted}; or give a folder")


def names() -> list[str]:
    """The papers that can be run."""
    found = {claims.parent.name for papers in places() for claims in papers.glob("*/paper.toml")}
    return sorted(found)


def places() -> list[Path]:
    """Folders that may hold papers, the checkout's first."""
    package = Path(str(resources.files("shortlane")))
    return [
        place for place in (package.parents[1] / "papers", package / "papers") if place.is_dir()
    ]
