"""A campaign from its sweep to its results: load, run, resume."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from shortlane.campaign import points as expand
from shortlane.campaign.part import Outcome, Part
from shortlane.campaign.points import Point, Run
from shortlane.campaign.pool import Pool
from shortlane.campaign.progress import Tell
from shortlane.campaign.spec import Sweep

__all__ = ["Campaign"]


class Campaign:
    """A sweep: scenarios, schedulers and seeds to run, on this machine or a cluster."""

    def __init__(self, sweep: Sweep) -> None:
        """Expands a sweep; raises `InputError` for keys that its scenario has no place for."""
        self.sweep = sweep
        self._runs = expand.runs(sweep)

    @classmethod
    def load(cls, source: str | Path | Mapping[str, Any]) -> "Campaign":
        """Reads a sweep from a TOML file, or from a table with the same keys.

        Raises `InputError` that names file, key, what was found and what is accepted.
        """
        return cls(Sweep.load(source))

    @property
    def title(self) -> str:
        """Its title, which also says whose a folder of results is."""
        return self.sweep.title

    def points(self) -> list[Point]:
        """Every combination of what varies, but scheduler and seed."""
        return expand.points(self.sweep)

    def runs(self) -> list[Run]:
        """Every run, in the order in which they are started."""
        return list(self._runs)

    def run(
        self,
        out: str | Path,
        *,
        cluster: str | None = None,
        jobs: int | None = None,
        progress: Tell | bool | None = None,
        limit_s: float | None = None,
        tries: int = 3,
        hang_s: float = 60.0,
        again: bool = False,
        only: Collection[str] | None = None,
    ) -> Outcome:
        """Runs what is not done yet, and returns when everything is done or has failed.

        `out` is a directory or a URL that fsspec knows. `cluster` is the address of a Dask
        scheduler; without one, `jobs` processes of this machine work, one per core by default.
        `progress` takes a fraction and a text, or is True for a line on standard error. A run that
        takes longer than `limit_s` seconds of real time has failed, as has one whose worker died
        `tries` times; a local worker that has not answered for `hang_s` seconds is replaced.
        `again` goes on in a folder with results of another version, or of runs that this campaign
        no longer has, without reading them. `only` are the ids of the runs to do now, of which the
        outcome then tells; a later call does others.

        Raises `InputError` if `out` is another campaign's or in use, or no cluster answers, and
        `RunError` if it cannot go on (a full disk, a cluster that is gone, workers of another
        version). Whatever stops it, the runs that were done stay done.
        """
        part = self.part(out, limit_s=limit_s, again=again, only=only)
        with Pool(
            cluster=cluster, jobs=jobs, progress=progress, tries=tries, hang_s=hang_s
        ) as pool:
            pool.add(part)
            [(_, outcome)] = pool.ended()
        return outcome

    def part(
        self,
        out: str | Path,
        *,
        limit_s: float | None = None,
        again: bool = False,
        only: Collection[str] | None = None,
        rank: int = 0,
    ) -> Part:
        """Runs for a `Pool`, of which those with a smaller `rank` come first; the rest as of `run`.

        Raises `InputError` if `out` is another campaign's or in use.
        """
        return Part(self.sweep, self._runs, out, limit_s=limit_s, again=again, only=only, rank=rank)
