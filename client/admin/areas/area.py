"""What the areas stand on: one call, waited for."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, NamedTuple

from kavka.client.admin.driver import AdminCall
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.admin.machine import AdminMachine
from kavka.client.admin.operation import Item, Operation, Outcome, Result
from kavka.client.admin.ports import AdminPorts
from kavka.client.api_errors import KafkaError
from kavka.client.client_thread import ClientThread
from kavka.client.errors import ClientClosedError, ClientDiedError


class Outcomes(NamedTuple, Generic[Item, Result]):
    """What came of an operation's items: each is in one of the two."""

    results: dict[Item, Result]
    errors: dict[Item, KafkaError]


class Area:
    """Runs operations on the client's thread, and waits for them on the caller's. Threads: any.

    A deadline is a moment on the client's clock, made once for each call of the user's: what takes several requests,
    one after the other, has one.
    """

    def __init__(
        self, thread: ClientThread, machine: AdminMachine, ports: AdminPorts, default_timeout_ms: float
    ) -> None:
        self._thread: Final = thread
        self._machine: Final = machine
        self._ports: Final = ports
        self._default_timeout_ms: Final = default_timeout_ms

    def _deadline(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:
            timeout_ms = self._default_timeout_ms
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms is {timeout_ms}: a time limit cannot be negative")
        return self._ports.now_ms() + timeout_ms

    def _outcomes(self, operation: Operation[Item, Result], deadline_ms: float) -> Outcomes[Item, Result]:
        """Run it. Raises what keeps the client from being used at all: closed, forked, died."""
        if not operation.items:
            self._thread.check()
            return Outcomes({}, {})
        done = threading.Event()
        call = AdminCall(operation, self._ports, deadline_ms, done.set)
        self._thread.submit(partial(self._machine.begin, call))
        try:
            done.wait()
        except BaseException:
            # Interrupted: nobody waits for it any more.
            with suppress(KafkaError):
                self._thread.submit(partial(call.fail, ClientClosedError("nobody waits for this call any more")))
            raise
        if call.errors and isinstance(self._thread.failure, ClientDiedError):
            # What it died of says more than that it was closed.
            self._thread.check()
        return Outcomes(call.results, call.errors)

    def _run(self, operation: Operation[Item, Result], deadline_ms: float) -> dict[Item, Result]:
        """Run it; the results, or the errors raised."""
        found = self._outcomes(operation, deadline_ms)
        return settled(operation.name, found.results, found.errors)

    def _one(self, operation: Operation[Item, Result], deadline_ms: float) -> Result:
        """Run an operation that has one item."""
        (item,) = operation.items
        found = self._outcomes(operation, deadline_ms)
        if item in found.errors:
            raise found.errors[item]
        return found.results[item]

    def _broker_ids(self, deadline_ms: float) -> list[int]:
        """All brokers that there are now."""
        from kavka.client.admin.operations.cluster import cluster_by_metadata

        return [node.id for node in self._one(cluster_by_metadata(with_operations=False), deadline_ms).nodes]


def each_of(items: Iterable[Any]) -> list[Any]:
    """The items. Raises TypeError for one that was given in place of several: its letters or fields would be taken."""
    if isinstance(items, str | bytes) or hasattr(items, "_fields"):
        raise TypeError(f"several are expected, as in [{items!r}], not one by itself")
    return list(items)


def settled(name: str, results: dict[Item, Result], errors: Mapping[Item, KafkaError]) -> dict[Item, Result]:
    """The results if nothing failed. Raises the error if there was one item, ItemErrors if there were more."""
    if not errors:
        return results
    if len(errors) + len(results) == 1:
        ((item, error),) = errors.items()
        if error.item is None:
            error.item = item
        raise error
    raise ItemErrors(name, errors, results)


def split(name: str, outcomes: Mapping[Item, Outcome[Result]]) -> dict[Item, Result]:
    """The same of results and errors that came together."""
    errors: dict[Any, KafkaError] = {}
    results: dict[Any, Any] = {}
    for item, found in outcomes.items():
        if isinstance(found, KafkaError):
            errors[item] = found
        else:
            results[item] = found
    return settled(name, results, errors)


def merged(name: str, outcomes: Outcomes[int, list[Any]]) -> list[Any]:
    """What several brokers listed, each once. Raises ItemErrors by broker if some did not answer."""
    lists = settled(name, outcomes.results, outcomes.errors)
    return list(dict.fromkeys(_chained(lists.values())))


def _chained(lists: Iterable[list[Any]]) -> Iterable[Any]:
    for each in lists:
        yield from each
