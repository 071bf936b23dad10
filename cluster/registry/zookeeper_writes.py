"""Writes to ZooKeeper: alone, all or none, or many at once; each until it is answered, or known to be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Created,
    Operation,
    RegistryError,
    Result,
)
from kavka.cluster.registry.own_writes import Found
from kavka.cluster.registry.zookeeper_requests import Requests, batches, error_of, failed_at, guarded, refusal
from kavka.cluster.registry.zookeeper_session import Connection, Request, ZooKeeperSession

_T = TypeVar("_T")

Find = Callable[[Sequence[Operation], Connection], Found | None]
"""Looks for what became of operations that were sent in a connection which is over."""


class Writer:
    """Sends writes, and after a lost connection again, unless they were done.

    Threads: immutable; any thread that may wait.
    """

    __slots__ = ("_find", "_requests", "_session")

    def __init__(self, session: ZooKeeperSession, requests: Requests, find: Find) -> None:
        self._session = session
        self._requests = requests
        self._find = find

    def create(self, operation: Create) -> Created:
        def understand(answer: Any) -> Created:
            made, stat = answer
            return Created(self._requests.below_root(made), stat.czxid)

        return self._write([operation], self._requests.creation(operation), understand, _created)

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """All or none, as `Registry.multi`."""
        if not operations:
            return []

        def understand(answer: Any) -> list[Result]:
            results = self._requests.results(operations, answer)
            if isinstance(results, RegistryError):
                raise results
            return results

        return self._write(operations, self._requests.transaction(operations), understand, lambda found: found.results)

    def pipeline(self, operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        """Many operations that all succeed cost one round trip and one transaction; else each is done by itself."""
        transactions = [guarded(guard, operation) for operation in operations]
        results: dict[int, Result | RegistryError] = {}
        for index, transaction in enumerate(transactions):
            if (refused := refusal(transaction)) is not None:
                results[index] = refused
        for batch in batches([index for index in range(len(operations)) if index not in results], operations, guard):
            together = self._together([operations[index] for index in batch], guard) if len(batch) > 1 else None
            if together is not None:
                results.update(zip(batch, together, strict=True))
            else:
                self._one_by_one(batch, transactions, guard, results)
        return [results[index] for index in range(len(operations))]

    def _together(self, operations: Sequence[Operation], guard: Check | None) -> list[Result] | None:
        """All in one transaction; None, and nothing done, if one of them fails."""
        transaction = [*operations] if guard is None else [guard, *operations]

        def understand(answer: Any) -> list[Result] | None:
            _check_guard(guard, answer)
            results = self._requests.results(transaction, answer)
            return None if isinstance(results, RegistryError) else results

        results = self._write(
            transaction, self._requests.transaction(transaction), understand, lambda found: found.results
        )
        return None if results is None else results[-len(operations) :]

    def _one_by_one(
        self,
        left: list[int],
        transactions: Sequence[Sequence[Operation]],
        guard: Check | None,
        results: dict[int, Result | RegistryError],
    ) -> None:
        """Each in a transaction of its own, in order, some unanswered at a time."""
        connection = self._session.enter()
        while left:
            requests = [self._requests.transaction(transactions[index]) for index in left]
            exchange = self._session.exchange(connection, requests)
            done = len(exchange.answers)
            for index, answer in zip(left[:done], exchange.answers, strict=True):
                _check_guard(guard, answer)
                outcome = self._requests.results(transactions[index], answer)
                results[index] = outcome if isinstance(outcome, RegistryError) else outcome[-1]
            unknown, left = left[done : exchange.sent_count], left[done:]
            if left:
                before, connection = connection, self._session.enter_again(connection)
                for index in unknown:
                    found = self._find(transactions[index], before)
                    if found is not None:
                        results[index] = found.results[-1]
                left = [index for index in left if index not in results]

    def _write(
        self,
        operations: Sequence[Operation],
        request: Request,
        understand: Callable[[Any], _T],
        recognise: Callable[[Found], _T],
    ) -> _T:
        """Send a write, and after a lost connection again, unless it was done."""
        if (refused := refusal(operations)) is not None:
            raise refused
        connection = self._session.enter()
        while True:
            answers = self._session.exchange(connection, [request]).answers
            if answers:
                if isinstance(answers[0], Exception):
                    raise error_of(answers[0], operations[0].path)
                return understand(answers[0])
            before, connection = connection, self._session.enter_again(connection)
            if (found := self._find(operations, before)) is not None:
                return recognise(found)


def _check_guard(guard: Check | None, answer: Any) -> None:
    """Raise BadVersionError if a transaction that begins with the guard failed there."""
    if guard is not None and failed_at(answer) == 0:
        raise BadVersionError(guard.path)


def _created(found: Found) -> Created:
    return Created(str(found.results[0]), found.zxid)
