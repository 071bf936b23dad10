"""Giving the answers of a decision, when it is known what has become of its records."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from kavka.coordinator.runtime.append_errors import told_to_clients
from kavka.coordinator.runtime.result import Reply, Result
from kavka.protocol.errors import BrokerError

Refused = Callable[[BrokerError], object]

log = logging.getLogger(__name__)


class Outcome:
    """Takes, once, whether what waited for the high watermark is committed, or won't be in time. Any thread."""

    __slots__ = ("_refused", "_result", "_taken")

    def __init__(self, result: Result, refused: Refused) -> None:
        self._result = result
        self._refused = refused
        self._taken = threading.Lock()

    def __call__(self, error: BrokerError | None) -> None:
        if not self._taken.acquire(blocking=False):
            return
        result = self._result
        if error is None:
            send(result.replies)
        elif result.uncommitted is not None:
            send(result.uncommitted(told_to_clients(error)))
        else:
            self._refused(told_to_clients(error))


def send(replies: Iterable[tuple[Reply, Any]]) -> None:
    """Call each with its answer. No lock may be held."""
    for reply, response in replies:
        try:
            reply(response)
        except Exception:
            # One client's broken connection must not keep the others from their answers.
            log.exception("a reply failed")
