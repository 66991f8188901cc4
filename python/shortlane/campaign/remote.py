"""The call that goes to a worker, whatever the worker has.

Dask would unpickle runs before any code of ours runs, and fail in ways that say little where the
package is missing or another version. So what is sent is a function by its code and runs as bytes.
"""

import pickle
from collections.abc import Callable
from typing import Any

from shortlane.campaign.share import Task
from shortlane.campaign.work import Order, Report

__all__ = ["Call", "call", "payload"]

#: Gives a report, or why this worker can do nothing for the campaign.
Call = Callable[[str, int, bytes], Report | str]


def payload(order: Order, task: Task) -> bytes:
    """A task as bytes."""
    return pickle.dumps((order, task))


def call() -> Call:
    """What a worker calls with version and schema of the client, and a payload.

    A function within a function is sent by its code; it imports what it needs where it runs, and
    names nothing of the package before.
    """

    def carry_out(version: str, schema: int, sent: bytes) -> Any:
        import os
        import pickle
        import socket

        worker = f"worker {socket.gethostname()}, process {os.getpid()}"
        try:
            import shortlane
        except ImportError as error:
            return f"{worker} has no shortlane: {error}"
        here = (shortlane.__version__, shortlane.SCHEMA_VERSION)
        if here != (version, schema):
            found = f"{worker} has shortlane {here[0]} (schema {here[1]})"
            return f"{found}, and the campaign takes {version} (schema {schema})"
        from shortlane.campaign.work import carry_out as run

        return run(worker, *pickle.loads(sent))

    return carry_out
