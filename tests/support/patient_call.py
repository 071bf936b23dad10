"""A call into librdkafka that may never come back, given up after a time."""

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException


class NeverBackError(Exception):
    """The call goes on, in a thread of its own; what it was made on must not be used any more."""


def within(timeout_s: float, call: Callable[[], Any]) -> Any:
    """What the call returns. Raises what it raises (KafkaException), NeverBackError if there is neither in time.

    send_offsets_to_transaction may wait without an end for a coordinator that has left the cluster's metadata, whatever
    time it was given (librdkafka's issues 5511 and 5456; seen with 2.16.0).
    """
    outcome: list[Any] = []
    failures: list[KafkaException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except KafkaException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout_s)
    if failures:
        raise failures[0]
    if not outcome:
        raise NeverBackError
    return outcome[0]
