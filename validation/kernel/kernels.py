"""The distribution kernels: which ones there are, and how one gets here.

They are Debian's `cloud-amd64` kernels, which have BPF queueing disciplines and BTF. Names are
never guessed: the package lists say which versions there are and of what packages each is made.
Everything is kept in one folder (`target/kernels`, or SHORTLANE_KERNELS), so that what was fetched
once needs no network again.
"""

from __future__ import annotations

import fcntl
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apt import Apt, AptError

ROOT = Path(__file__).resolve().parents[2]
# The first series that Debian builds with BPF queueing disciplines, which Linux has since 6.16.
# `oldest` is that; an older one serves to show what happens without.
OLDEST = (6, 17)
# Newer kernels are split: `linux-image` is empty and asks for the three others.
NAME_PATTERN = r"^linux-(image|base|binary|modules)-[0-9].*cloud-amd64$"
NAME = re.compile(r"linux-(?:image|base|binary|modules)-(\d+\.\d+\S*-cloud-amd64)")
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# Package lists older than this are fetched again, if they can be.
LISTS_LAST_S = 7 * 24 * 3600


class KernelError(Exception):
    """No such kernel, or it cannot be had; the text says why."""


@dataclass(frozen=True)
class Package:
    """One package of a kernel, as the package lists have it."""

    name: str
    version: str
    size: int
    depends: tuple[str, ...]

    @property
    def release(self) -> str:
        """The kernel's own version, which `uname -r` prints."""
        found = NAME.fullmatch(self.name)
        if found is None:
            raise KernelError(f"{self.name} is not the name of a kernel package")
        return found.group(1)


@dataclass(frozen=True)
class Release:
    """A kernel that there is: its version and what to fetch."""

    name: str
    packages: tuple[Package, ...]

    @property
    def number(self) -> tuple[int, int, int]:
        """Such as (6, 17, 13), to compare by."""
        return _number(self.name)

    @property
    def series(self) -> str:
        """Such as 6.17."""
        return "{}.{}".format(*self.number)

    @property
    def short(self) -> str:
        """Such as 6.17.13, to say which kernel a line is from."""
        return "{}.{}.{}".format(*self.number)


@dataclass(frozen=True)
class Kernel:
    """A kernel that is here, unpacked."""

    release: Release
    folder: Path

    @property
    def image(self) -> Path:
        """What QEMU boots."""
        plain = self.folder / "vmlinux"
        return plain if plain.exists() else self.folder / "vmlinuz"

    @property
    def modules(self) -> Path:
        """The modules, uncompressed, and depmod's tables."""
        return self.folder / "lib" / "modules" / self.release.name

    def config(self) -> dict[str, str]:
        """The options that are set, such as `{"CONFIG_NET_SCH_BPF": "y"}`."""
        text = (self.folder / "config").read_text()
        return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))


def packages_in(paragraphs: str) -> list[Package]:
    """The kernel packages among control-file paragraphs."""
    found = []
    for paragraph in re.split(r"\n\s*\n", paragraphs):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", paragraph, re.MULTILINE))
        if NAME.fullmatch(fields.get("Package", "")):
            alternatives = re.split(r"[,|]", fields.get("Depends", ""))
            depends = tuple(word.split()[0] for word in alternatives if word.split())
            size = int(fields.get("Size", 0))
            found.append(Package(fields["Package"], fields["Version"], size, depends))
    return found


def releases_of(packages: list[Package]) -> list[Release]:
    """The kernels that these packages make up, oldest first."""
    named = {package.name: package for package in packages}
    found = []
    for image in packages:
        if not image.name.startswith("linux-image-"):
            continue
        parts = [part for part in image.depends if NAME.fullmatch(part)]
        # An archive drops the modules of a superseded kernel before it drops the rest.
        if all(part in named for part in parts):
            found.append(Release(image.release, (image, *(named[part] for part in parts))))
    return sorted(found, key=lambda release: (release.number, release.name))


def choose(releases: list[Release], wanted: str) -> Release:
    """The newest release of a series (`7.3`), that very one (`7.3.4`), `oldest` or `newest`."""
    capable = [release for release in releases if release.number[:2] >= OLDEST]
    if wanted == "newest" and capable:
        return capable[-1]
    if wanted == "oldest" and capable:
        wanted = capable[0].series
    fitting = [it for it in releases if wanted in (it.series, it.short, it.name)]
    if not fitting:
        series = ", ".join(dict.fromkeys(it.series for it in releases)) or "none"
        raise KernelError(f"no kernel {wanted} in the package lists; there are: {series}")
    return fitting[-1]


class Store:
    """The folder with everything that was fetched."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is `target/kernels` unless SHORTLANE_KERNELS or the caller says otherwise."""
        chosen = folder or Path(os.environ.get("SHORTLANE_KERNELS") or ROOT / "target" / "kernels")
        self.folder = chosen.absolute()
        self.apt = Apt(self.folder / "apt")
        self.listed = self.folder / "packages.json"

    def releases(self, refresh: bool = False) -> list[Release]:
        """The kernels that there are; the lists are fetched if they are old or `refresh` is set."""
        with self._locked():
            there = self.listed.exists()
            if there and not refresh and time.time() - self.listed.stat().st_mtime < LISTS_LAST_S:
                return self._read_list()
            try:
                self._fetch_list()
            except AptError as error:
                if not there:
                    raise KernelError(f"no package lists: {error}") from error
                print(f"kernels: the package lists stay as they are: {error}", flush=True)
            return self._read_list()

    def get(self, wanted: str) -> Kernel:
        """The kernel that `choose` chooses, fetched if it is not here yet."""
        try:
            release = choose(self.releases(), wanted)
        except KernelError:
            # It may have come since the lists were fetched.
            release = choose(self.releases(refresh=True), wanted)
        try:
            self._fetch(release)
        except AptError:
            # A newer version may have taken its place.
            release = choose(self.releases(refresh=True), wanted)
            try:
                self._fetch(release)
            except AptError as error:
                raise KernelError(f"Linux {release.name} cannot be had: {error}") from error
        return Kernel(release, self._place(release))

    def here(self, release: Release) -> Kernel | None:
        """The kernel, if it was fetched before."""
        return Kernel(release, self._place(release)) if self._is_here(release) else None

    def _place(self, release: Release) -> Path:
        return self.folder / release.name

    def _is_here(self, release: Release) -> bool:
        return self._place(release).is_dir()

    def _fetch_list(self) -> None:
        print("kernels: fetching the package lists", flush=True)
        self.apt.update()
        packages = packages_in(self.apt.records(NAME_PATTERN))
        part = self.listed.with_suffix(".part")
        part.write_text(json.dumps([vars(package) for package in packages], indent=1) + "\n")
        part.replace(self.listed)

    def _read_list(self) -> list[Release]:
        rows = json.loads(self.listed.read_text())
        return releases_of([Package(**{**row, "depends": tuple(row["depends"])}) for row in rows])

    def _fetch(self, release: Release) -> None:
        """Fetch and unpack, unless that was done before."""
        with self._locked():
            if self._is_here(release):
                return
            size = sum(package.size for package in release.packages) / 1e6
            print(f"kernels: fetching Linux {release.name}, {size:.0f} MB", flush=True)
            part = self.folder / f"{release.name}.part"
            shutil.rmtree(part, ignore_errors=True)
            for package in release.packages:
                deb = self.apt.download(package.name, package.version, part / "deb")
                _checked(["dpkg", "-x", str(deb), str(part)])
            shutil.rmtree(part / "deb")
            _arrange(part, release.name)
            part.rename(self._place(release))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Two runs at once must not fetch the same thing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _arrange(folder: Path, name: str) -> None:
    """One place for what has been in two: `vmlinuz`, `config` and `lib/modules`."""
    modules = folder / "lib" / "modules" / name
    if (folder / "usr" / "lib" / "modules").is_dir():
        (folder / "lib").mkdir(exist_ok=True)
        (folder / "usr" / "lib" / "modules").rename(modules.parent)
    for part in ("vmlinuz", "config"):
        places = (modules / part, folder / "boot" / f"{part}-{name}")
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise KernelError(f"the packages of Linux {name} hold no {part}")
        found.rename(folder / part)
    for unneeded in ("usr", "boot"):
        shutil.rmtree(folder / unneeded, ignore_errors=True)
    # busybox's modprobe knows no xz.
    for packed in modules.rglob("*.ko.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    _checked(["depmod", "-b", str(folder), name])
    _uncompress(folder / "vmlinuz", folder / "vmlinux")


def _uncompress(source: Path, target: Path) -> None:
    """The kernel within `vmlinuz`, which an emulated CPU would take seconds to unpack.

    Where it lies is in the header that the kernel's x86 boot protocol describes. One that is not
    packed by zstd stays as it is.
    """
    data = source.read_bytes()
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (data[0x1F1] + 1) * 512 + offset
    # The last four bytes are the size of what comes out.
    packed = data[start : start + length - 4]
    if packed.startswith(ZSTD_MAGIC):
        part = target.with_suffix(".zst")
        part.write_bytes(packed)
        _checked(["zstd", "-dq", "--rm", str(part), "-o", str(target)])


def _checked(command: list[str]) -> None:
    environment = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    except OSError as error:
        raise KernelError(f"{command[0]}: {error.strerror}; see scripts/setup.sh") from error
    except subprocess.CalledProcessError as error:
        raise KernelError(f"{' '.join(command)}: {error.stderr.strip()}") from error


def _number(release: str) -> tuple[int, int, int]:
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if found is None:
        raise KernelError(f"{release} is not the version of a kernel")
    return int(found[1]), int(found[2]), int(found[3] or 0)
