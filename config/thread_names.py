"""Names of threads where several brokers share a process: each thread says whose it is."""

import re
import threading
from typing import Final

_MARK: Final = re.compile(r"broker-\d+:")


def mark_of(broker_id: int) -> str:
    """What the names of a broker's threads begin with, if the thread that starts the broker has it in its own name."""
    return f"broker-{broker_id}:"


def thread_name(name: str) -> str:
    """`name`, behind the mark of the broker whose thread calls; where none of its threads has one, `name` alone."""
    found = _MARK.match(threading.current_thread().name)
    return name if found is None else found[0] + name
