"""Where a campaign keeps what it has: a local directory, or any URL that fsspec reads and writes.

A file is there whole or not at all. Locally it is written under a temporary name, synced and
renamed; elsewhere it is one upload. Readers never see `.*.tmp`.
"""

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

from shortlane.errors import InputError, RunError

__all__ = ["Store", "StoreError"]


class StoreError(RunError):
    """A file cannot be written or read; says which and why."""


class Store:
    """Files under one directory or URL, by names such as `runs/0123.parquet`."""

    def __init__(self, place: str | Path) -> None:
        """Raises `InputError` for a URL that fsspec does not know, or lacks a package for."""
        try:
            self.files, root = fsspec.core.url_to_fs(str(place))
        except (ImportError, ValueError) as error:
            accepted = "a directory, or a URL that fsspec knows (s3:// takes shortlane[s3])"
            raise InputError(f"--out {place}: {error}; it takes {accepted}") from error
        self.local = isinstance(self.files, LocalFileSystem)
        self.root = str(root)
        #: What another process, and on a cluster another machine, opens it by.
        self.url = self.root if self.local else str(place)

    def path(self, name: str) -> str:
        """The full path of a file."""
        return f"{self.root.rstrip('/')}/{name}"

    def write(self, name: str, content: bytes) -> None:
        """Writes a file whole or not at all; raises `StoreError`."""
        path = self.path(name)
        try:
            if self.local:
                _write_atomically(Path(path), content)
            else:
                self.files.pipe_file(path, content)
        except Exception as error:
            raise StoreError(f"cannot write {self.shown(name)}: {_reason(error)}") from error

    def read(self, name: str) -> bytes | None:
        """What is in a file, `None` if it is not there; raises `StoreError`."""
        try:
            content = self.files.cat_file(self.path(name))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise StoreError(f"cannot read {self.shown(name)}: {_reason(error)}") from error
        return bytes(content)

    def read_all(self, names: list[str]) -> dict[str, bytes]:
        """What is in several files, fetched at once; raises `StoreError`."""
        paths = {self.path(name): name for name in names}
        try:
            found: dict[str, Any] = self.files.cat(list(paths)) if paths else {}
        except Exception as error:
            raise StoreError(f"cannot read {self.shown(names[0])}: {_reason(error)}") from error
        return {paths[path]: content for path, content in found.items()}

    def names(self, folder: str, ending: str) -> set[str]:
        """The names, without folder and ending, of the files in a folder."""
        try:
            self.files.invalidate_cache()
            found = self.files.ls(self.path(folder), detail=False)
        except FileNotFoundError:
            return set()
        except Exception as error:
            raise StoreError(f"cannot list {self.shown(folder)}: {_reason(error)}") from error
        names = (str(path).rpartition("/")[2] for path in found)
        return {
            name.removesuffix(ending)
            for name in names
            if name.endswith(ending) and not name.startswith(".")
        }

    def has(self, name: str) -> bool:
        """Whether a file is there, as seen from here."""
        try:
            self.files.invalidate_cache()
            return bool(self.files.exists(self.path(name)))
        except Exception as error:
            raise StoreError(f"cannot read {self.shown(name)}: {_reason(error)}") from error

    def remove(self, name: str) -> None:
        """Removes a file that may be there."""
        with contextlib.suppress(FileNotFoundError):
            try:
                self.files.rm_file(self.path(name))
            except FileNotFoundError:
                raise
            except Exception as error:
                raise StoreError(f"cannot remove {self.shown(name)}: {_reason(error)}") from error

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps a second campaign out of a local directory; elsewhere nothing can.

        The kernel lets go of it however the process ends. Raises `InputError` if it is taken.
        """
        if not self.local:
            yield
            return
        path = Path(self.path("lock"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held = path.open("w")
        except OSError as error:
            raise StoreError(f"cannot write {path}: {_reason(error)}") from error
        with held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                said = "another campaign is running into it; wait for it, or take another --out"
                raise InputError(f"--out {self.root}: {said}") from error
            yield

    def clean(self) -> None:
        """Removes what killed writers left behind, of a local directory that is locked."""
        if self.local:
            for left in Path(self.root).glob("*/.*.tmp"):
                left.unlink(missing_ok=True)

    def shown(self, name: str) -> str:
        """The name of a file for people: its path or URL."""
        return self.path(name) if self.local else f"{self.url.rstrip('/')}/{name}"


def _write_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join((text or type(error).__name__).split())
