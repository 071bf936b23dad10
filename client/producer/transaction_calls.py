"""What a transactional producer may do when: its states, and calls that are waited for, perhaps more than once."""

import enum
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from kavka.client.api_errors import AbortableError, KafkaError
from kavka.client.network_port import NetworkPort
from kavka.client.producer.errors import TransactionStateError
from kavka.client.producer.transaction_requests import Result, again


class State(enum.Enum):
    """How far the producer is; see the head of the module."""

    UNINITIALIZED = "init_transactions() has not been called"
    INITIALIZING = "the producer id is being asked for"
    READY = "begin_transaction() is next"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING = "the transaction is being committed"
    ABORTING = "the transaction is being aborted"
    ABORTABLE_ERROR = "the transaction can only be aborted"
    FATAL_ERROR = "the producer cannot go on"


def abortable_error(error: KafkaError) -> KafkaError:
    """An abortable error because of one that would not say so."""
    abortable = AbortableError(f"a record of the transaction failed: {error}")
    abortable.__cause__ = error
    return abortable


class _Call(NamedTuple):
    """One of the user's calls: by its name, what it was given, and what came of it."""

    name: str
    arguments: object
    result: Result


class TransactionCalls:
    """A producer's state, and the user's calls on it.

    Threads: any. `_lock` guards all, and is never held while something is waited for.
    """

    def __init__(self, network: NetworkPort) -> None:
        self._network: Final = network
        self._lock: Final = threading.RLock()
        self._state = State.UNINITIALIZED
        self._error: KafkaError | None = None
        self._outstanding: _Call | None = None
        """The user's last one that had to wait: it is to be repeated when it was not waited for to the end."""

    def begin(self) -> None:
        """Open a transaction."""
        with self._lock:
            # A call that was not waited for comes first.
            self._under_way("begin_transaction")
            self._raise_error()
            self._move(State.IN_TRANSACTION, "begin_transaction", State.READY)

    def check_open(self) -> None:
        """Raise unless a transaction is open. Cheap: asked for each record."""
        if self._state is not State.IN_TRANSACTION:
            with self._lock:
                self._raise_error()
                raise TransactionStateError(f"a record needs an open transaction: {self._state.value}")

    def refused(self, error: KafkaError) -> None:
        """A broker does not let the client in: a call that is under way fails, as in Kafka's client."""
        with self._lock:
            if self._outstanding is not None and not self._outstanding.result.is_done:
                self._state, self._error = State.FATAL_ERROR, error

    def _move(self, state: State, call: str, *expected: State) -> None:
        if self._state not in expected:
            raise TransactionStateError(f"{call}() is not possible now: {self._state.value}")
        self._state = state

    def _raise_error(self) -> None:
        if self._error is not None:
            raise again(self._error)

    def _call(self, name: str, begin: Callable[[], Result], arguments: object = None) -> Result:
        """Begin what a user's call asks for, unless it is the repetition of one that was not waited for.

        One with other arguments is none: it comes behind the former, which goes on.
        """
        with self._lock:
            before = self._under_way(name)
            if before is not None and before.arguments == arguments:
                return before.result
            result = begin()
            self._outstanding = _Call(name, arguments, result)
        self._network.wakeup()
        return result

    def _under_way(self, name: str) -> _Call | None:
        """This call, if it is under way already. Raises TransactionStateError while another one is."""
        before = self._outstanding
        if before is None or before.result.is_taken:
            return None
        if before.name == name:
            return before
        if self._state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            return None
        raise TransactionStateError(f"{before.name}() timed out, and has to be called again before {name}()")
