"""Where runs are simulated: processes of this machine, or a Dask cluster that is there already."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator

import dask
from distributed import Client, LocalCluster

from shortlane.errors import InputError, RunError

__all__ = ["connect"]

#: How long a scheduler may take to answer, in seconds.
ANSWER_S = 10

#: Local workers are not profiled, and their event loops not watched: both are for Dask's dashboard,
#: and cost a few per cent of a processor.
QUIETER = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500 ms",
}


@contextlib.contextmanager
def connect(
    address: str | None, jobs: int | None, *, hang_s: float, tries: int
) -> Iterator[Client]:
    """A client of the cluster at `address`, or of `jobs` processes here, one per core by default.

    A local worker that dies is started again by its nanny, one that has not answered for `hang_s`
    is replaced, and what it ran is tried up to `tries` times. Raises `InputError` if nobody
    answers.
    """
    with _quiet():
        cluster = _local(jobs, hang_s, tries) if address is None else contextlib.nullcontext()
        with cluster as local, _client(local or address) as client:
            yield client


@contextlib.contextmanager
def _local(jobs: int | None, hang_s: float, tries: int) -> Iterator[LocalCluster]:
    settings = QUIETER | {
        "distributed.scheduler.worker-ttl": f"{hang_s} s",
        "distributed.scheduler.allowed-failures": tries - 1,
    }
    with dask.config.set(settings):
        with warnings.catch_warnings():
            # Another Dask on this machine is no news.
            warnings.filterwarnings("ignore", message="Port .* is already in use")
            cluster = _start(jobs or cores())
        try:
            yield cluster
        finally:
            cluster.close(timeout=30)


def _start(jobs: int) -> LocalCluster:
    try:
        return LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            env={"POLARS_MAX_THREADS": "1"},
        )
    except (OSError, RuntimeError) as error:
        raise RunError(f"cannot start local workers: {error}") from error


@contextlib.contextmanager
def _client(address: object) -> Iterator[Client]:
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=ANSWER_S, set_as_default=False
        )
    except (OSError, ValueError, ImportError) as error:
        found = " ".join(f"{error}".split())
        accepted = "the address of a running Dask scheduler, such as tcp://10.0.0.1:8786"
        raise InputError(f"--cluster {address}: {found}; it takes {accepted}") from error
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            client.close(timeout=5)  # type: ignore[no-untyped-call]


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what Dask logs of workers that come and go: the campaign says itself what matters."""
    names = ("distributed", "tornado.application", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
