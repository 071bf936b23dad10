"""The one thread behind a producer, a consumer or an administrator.

It owns the client's connections and its machine, which decides what to send and takes the answers. Others reach it by
`submit`; what they wait for they get by futures of their own.
"""

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from kavka.client.errors import ClientClosedError, ClientDiedError, UsedAfterForkError
from kavka.client.kafka_error import KafkaError
from kavka.client.lent_network import LentNetworkClient
from kavka.client.metadata import Metadata
from kavka.client.network_client import NetworkClient

EXIT_TIMEOUT_MS: Final = 10_000.0
"""What a client that nobody closed gets to finish when the interpreter ends."""
JOIN_GRACE_MS: Final = 1_000.0
"""Beyond its time limit, for a thread to notice that it is over."""

log = logging.getLogger(__name__)


class Machine(Protocol):
    """What a client does, with no thread, no socket and no clock of its own. All calls on the owner's thread."""

    def work(self, now_ms: float) -> float:
        """Do what can be done now; how long until there is something to do even if nothing happens.

        Called after each round of input and output, and after each wake-up. Must not wait.
        """

    def closing(self, now_ms: float) -> None:
        """The client is being closed: finish what has begun, begin nothing. Called once, `work` goes on after it."""

    def is_idle(self) -> bool:
        """Asked after `closing`: whether all is finished, so that the thread may end."""

    def closed(self) -> None:
        """The thread ends, be it in time, too late, or by an error: fail what still waits. The last call of all."""


class ClientThread:
    """Runs a machine and its connections until it is closed.

    Threads: `_machine` and `_network` belong to the thread, once it is started; all else is for any thread. `_lock`
    guards `_thread`, `_deadline_ms` and `_is_over`. `failure` is written once, and read without the lock.
    """

    def __init__(
        self,
        name: str,
        network: NetworkClient,
        machine: Machine,
        *,
        metadata: Metadata | None = None,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        """Starts nothing yet. `metadata` is closed with the thread, so that nobody waits for more of it."""
        self.name: Final = name
        self.now_ms: Final = now_ms
        self.failure: KafkaError | None = None
        """Why the client can be used no more: closed, died, or forked. A hot path looks here rather than `check`."""
        self._network: Final = network
        self._machine: Final = machine
        self._metadata: Final = metadata
        self._submitted: Final[deque[Callable[[], None]]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._deadline_ms: float | None = None
        self._is_over = False
        self._longest_sleep_ms = float("inf")
        self._turn: threading.Lock | None = None
        """Free while the thread sleeps, and only then."""
        _open.add(self)

    def lend(self, network: LentNetworkClient, longest_sleep_ms: float) -> None:
        """Let others `step_in`. Before `start`.

        What they begin may have a time limit of its own: the thread sleeps for `longest_sleep_ms` at most, to see it.
        """
        self._longest_sleep_ms = longest_sleep_ms
        self._turn = turn = threading.Lock()
        turn.acquire()
        network.lend(turn)

    def check(self) -> None:
        """Raise `failure`, if there is one."""
        failure = self.failure
        if failure is not None:
            # A new one each time: two threads must not write the traceback of one.
            raise type(failure)(*failure.args) from failure.__cause__

    def start(self) -> None:
        """Start the thread, unless it runs. Raises `failure`."""
        if self._thread is not None and self.failure is None:
            return
        with self._lock:
            self.check()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self.name, daemon=True)
                thread.start()
                self._thread = thread

    @property
    def is_owner(self) -> bool:
        """Whether the caller is the thread itself, as callbacks are."""
        return threading.current_thread() is self._thread

    def submit(self, call: Callable[[], None]) -> None:
        """Have `call` run on the thread, before the next `work`; what it raises ends the client.

        It is run, at the end of the thread at the latest. Raises `failure`: then it is not. Bounded by its callers,
        who wait for what they have submitted. Starts the thread.
        """
        self.start()
        with self._lock:
            if self._is_over:
                raise ClientClosedError(f"{self.name} was closed")
            self._submitted.append(call)
        self._network.wakeup()

    def step_in(self, call: Callable[[float], bool]) -> bool:
        """Run `call(now_ms)` here, in the thread's place, if it sleeps: what `call` says, or False.

        Saves waking it for a little work that it could begin only when the caller rests. Nothing that users gave may
        run in `call`. What it raises ends the client, as it would have on the thread.
        """
        turn = self._turn
        if turn is None or not turn.acquire(blocking=False):
            return False
        try:
            return self.failure is None and call(self.now_ms())
        except BaseException as error:
            self._submitted.append(partial(_raise, error))
            self._network.wakeup()
            raise
        finally:
            turn.release()

    def wakeup(self) -> None:
        """Have `work` called soon."""
        self._network.wakeup()

    def close(self, timeout_ms: float) -> bool:
        """End the thread: as soon as the machine is idle, or `timeout_ms` from now. Whether it has ended in time.

        Again is allowed, also from several threads: the earliest deadline counts. On the thread itself, in a callback,
        it does not wait: what is unfinished fails as soon as the callback returns.
        """
        if isinstance(self.failure, UsedAfterForkError):
            return True
        timeout_ms = 0.0 if self.is_owner else max(timeout_ms, 0.0)
        thread = self._begin_to_close(timeout_ms)
        if thread is None or self.is_owner:
            return True
        thread.join(min((timeout_ms + JOIN_GRACE_MS) / 1000, threading.TIMEOUT_MAX))
        if thread.is_alive():
            log.warning("not closed in time thread=%s timeout_ms=%d", self.name, timeout_ms)
        return not thread.is_alive()

    def _begin_to_close(self, timeout_ms: float) -> threading.Thread | None:
        """Have the thread end by then; it, to be waited for, or None for one that was never started."""
        with self._lock:
            deadline_ms = self.now_ms() + timeout_ms
            self._deadline_ms = deadline_ms if self._deadline_ms is None else min(self._deadline_ms, deadline_ms)
            thread = self._thread
            is_first = thread is None and not self._is_over
            if is_first:
                self._is_over = True
                self.failure = self.failure or ClientClosedError(f"{self.name} was closed")
        if is_first:
            self._end()
        if thread is not None:
            self._network.wakeup()
        return thread

    def _run(self) -> None:
        try:
            self._rounds()
        except BaseException as error:
            log.exception("a client's thread died thread=%s", self.name)
            died = ClientDiedError(f"{self.name} died: {error!r}")
            died.__cause__ = error
            self.failure = died
        with self._lock:
            self._is_over = True
            self.failure = self.failure or ClientClosedError(f"{self.name} was closed")
        try:
            self._run_submitted()
        except Exception:
            log.exception("what was asked of a client that ends failed thread=%s", self.name)
        self._end()

    def _rounds(self) -> None:
        """Until it is to end: what others want, what the machine wants, input and output."""
        network, machine, clock, submitted = self._network, self._machine, self.now_ms, self._submitted
        longest_ms = self._longest_sleep_ms
        is_closing = False
        while True:
            if submitted:
                self._run_submitted()
            now_ms = clock()
            deadline_ms = self._deadline_ms
            if deadline_ms is not None and not is_closing:
                is_closing = True
                machine.closing(now_ms)
            wait_ms = machine.work(now_ms)
            if deadline_ms is not None:
                if machine.is_idle() or now_ms >= deadline_ms:
                    return
                wait_ms = min(wait_ms, deadline_ms - now_ms)
            network.poll(min(longest_ms, wait_ms))

    def _run_submitted(self) -> None:
        submitted = self._submitted
        for _ in range(len(submitted)):
            submitted.popleft()()

    def _end(self) -> None:
        """Let go of all there is; what fails on the way stops nothing."""
        for step in (self._network.close, self._machine.closed):
            try:
                step()
            except Exception:
                log.exception("a client's end met an error thread=%s", self.name)
        if self._metadata is not None:
            assert self.failure is not None
            self._metadata.close(self.failure)
        _open.discard(self)

    def _after_fork(self) -> None:
        """In the child: the thread is not there, and the connections are the parent's. No lock can be relied on."""
        self._lock = threading.Lock()
        self._turn = None
        self._is_over = True
        self.failure = UsedAfterForkError(f"{self.name} belongs to process {os.getppid()}, which forked this one")
        self._network.let_go()


def _raise(error: BaseException) -> None:
    raise error


_open: Final[weakref.WeakSet[ClientThread]] = weakref.WeakSet()
"""Those that are not closed. Any thread adds and discards: one step each, under the interpreter's lock."""


def _after_fork_in_child() -> None:
    for thread in list(_open):
        thread._after_fork()
    _open.clear()


@atexit.register
def _close_all() -> None:
    """What nobody has closed is closed when the interpreter ends: daemon threads still run now, and not for long."""
    # For all together: however many there are, the end of the interpreter waits no longer.
    deadline = time.monotonic() + (EXIT_TIMEOUT_MS + JOIN_GRACE_MS) / 1000
    for client, thread in [(client, client._begin_to_close(EXIT_TIMEOUT_MS)) for client in list(_open)]:
        if thread is not None:
            thread.join(max(deadline - time.monotonic(), 0))
            if thread.is_alive():
                log.warning("not closed when the interpreter ended thread=%s", client.name)


os.register_at_fork(after_in_child=_after_fork_in_child)
