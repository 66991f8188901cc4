"""Packages of another Debian release than the machine's own, by apt.

apt works with a source list, package lists and a cache of its own, all in one folder: the machine's
own set-up is read (where is the Debian mirror?), never changed, and no root is needed.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# In this order. Backports keep their older versions, sid has the newest one only.
SUITES = ("bookworm", "trixie", "trixie-backports", "sid")
OS_RELEASE = Path("/etc/os-release")


class AptError(Exception):
    """apt cannot do what it was asked for; the text says what and why."""


class Apt:
    """An apt whose every file is in `folder`."""

    def __init__(self, folder: Path) -> None:
        """Nothing is run or written yet."""
        self.folder = folder.absolute()
        self.sources = self.folder / "sources.list"
        self.options = [
            f"Dir::Etc::sourcelist={self.sources}",
            "Dir::Etc::sourceparts=/dev/null",
            f"Dir::State::lists={self.folder / 'lists'}",
            f"Dir::Cache={self.folder}",
            # Root's apt would download as a user who may not write here.
            "APT::Sandbox::User=",
            "APT::Architecture=amd64",
            "Acquire::Languages=none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
            "Acquire::Retries=2",
        ]

    def update(self) -> None:
        """Fetch the package lists of `SUITES`, from the first mirror that has them."""
        for part in ("lists/partial", "archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        if not KEYRING.exists():
            raise AptError(f"no {KEYRING}: install debian-archive-keyring")
        refusals = []
        for mirror in mirrors():
            lines = [f"deb [signed-by={KEYRING}] {mirror} {suite} main\n" for suite in SUITES]
            self.sources.write_text("".join(lines))
            try:
                # Without `any` apt-get takes a list that it cannot fetch for a mere warning.
                self.run("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update")
            except AptError as error:
                refusals.append(f"{mirror}: {error}")
            else:
                return
        raise AptError("; ".join(refusals))

    def records(self, name_pattern: str) -> str:
        """What the lists say of the packages whose names match: control-file paragraphs."""
        found = self.run("apt-cache", "search", "--names-only", name_pattern)
        names = [line.split(" ", 1)[0] for line in found.splitlines()]
        return self.run("apt-cache", "show", *names) if names else ""

    def download(self, name: str, version: str, into: Path) -> Path:
        """The package's file, verified by apt."""
        into.mkdir(parents=True, exist_ok=True)
        self.run("apt-get", "-q", "download", f"{name}={version}", cwd=into)
        files = sorted(into.glob(f"{name}_*.deb"))
        if len(files) != 1:
            raise AptError(f"apt-get download {name}={version} left {len(files)} files in {into}")
        return files[0]

    def run(self, program: str, *arguments: str, cwd: Path | None = None) -> str:
        """What an apt program prints."""
        options = [word for option in self.options for word in ("-o", option)]
        return output([program, *options, *arguments], cwd)


def mirrors() -> list[str]:
    """Where Debian's archive may be: what the user says, or what the machine itself uses."""
    said = os.environ.get("SHORTLANE_DEBIAN_MIRROR")
    if said:
        return [said]
    found = mirrors_among(output(["apt-get", "update", "--print-uris"]), codename())
    if not found:
        raise AptError(
            "this machine's apt uses no Debian archive; name a mirror in SHORTLANE_DEBIAN_MIRROR"
        )
    return found


def mirrors_among(print_uris: str, suite: str) -> list[str]:
    """The archives that serve `suite`, from what `apt-get update --print-uris` prints."""
    found = re.findall(rf"^'(\S+?)/dists/{re.escape(suite)}/InRelease'", print_uris, re.MULTILINE)
    return list(dict.fromkeys(found))


def codename() -> str:
    """The machine's own Debian release, such as bookworm."""
    text = OS_RELEASE.read_text()
    if not re.search(r"^ID=debian$", text, re.MULTILINE):
        raise AptError("this is not Debian; name a Debian mirror in SHORTLANE_DEBIAN_MIRROR")
    named = re.search(r"^VERSION_CODENAME=(\S+)$", text, re.MULTILINE)
    return named.group(1) if named else "sid"


def output(command: list[str], cwd: Path | None = None) -> str:
    """What a command prints; AptError with the end of its complaints if it fails."""
    environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise AptError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:", "Err"))]
        why = " ".join(said[:3]) or done.stderr.strip()[-300:]
        raise AptError(f"{command[0]} failed with status {done.returncode}: {why}")
    return done.stdout
