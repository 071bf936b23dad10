"""The `inter-broker` thread: all requests to other brokers but those of followers, over one network client."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from kavka.client import ClientSettings, NetworkClient
from kavka.client.counts import ClientCounts
from kavka.client.security_port import Securing
from kavka.config.thread_names import thread_name

log = logging.getLogger(__name__)


class Sender(Protocol):
    """Somebody whose requests go out by the thread."""

    def advance(self, client: NetworkClient, now_ms: float) -> float:
        """Send what can be sent now. Never waits.

        How long until there is something to do though nothing has happened, in ms, infinity for never. Called on the
        thread, again and again: after all that happens to the client, and after `InterBroker.wake`.
        """


class InterBroker:
    """Owns the thread and its network client.

    Threads: `add`, `remove`, `wake` by any; `start` and `stop` once each. `_senders` is swapped whole, under `_lock`;
    the thread reads it without. `on_death` is told, on the thread, what ended it that should not have.
    """

    def __init__(
        self,
        settings: ClientSettings,
        on_death: Callable[[BaseException], None],
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
        security: Securing | None = None,
    ) -> None:
        self._settings: Final = settings
        self._security: Final = security
        self._on_death: Final = on_death
        self.now_ms: Final = now_ms
        """The clock of all senders."""
        self._lock: Final = threading.Lock()
        self._senders: tuple[Sender, ...] = ()
        self._is_stopping = False
        self.counts: Final = ClientCounts()
        """What the client has done so far."""
        self._client: NetworkClient | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread. Raises OSError: no descriptors are left."""
        client = self._client = NetworkClient(
            self._settings, counts=self.counts, security=self._security, now_ms=self.now_ms
        )
        self._thread = threading.Thread(target=self._run, args=(client,), name=thread_name("inter-broker"), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and join the thread. Senders are not told: whoever made them closes them."""
        self._is_stopping = True
        self.wake()
        if self._thread is not None:
            self._thread.join()

    def add(self, sender: Sender) -> None:
        """Have its requests sent from now on."""
        with self._lock:
            self._senders = (*self._senders, sender)
        self.wake()

    def remove(self, sender: Sender) -> None:
        """Do not ask it for requests any more; those in flight are still answered."""
        with self._lock:
            self._senders = tuple(each for each in self._senders if each is not sender)

    def wake(self) -> None:
        """A sender has something to do."""
        client = self._client
        if client is not None:
            client.wakeup()

    def _run(self, client: NetworkClient) -> None:
        try:
            while not self._is_stopping:
                now_ms = self.now_ms()
                wait_ms = min((each.advance(client, now_ms) for each in self._senders), default=float("inf"))
                client.poll(wait_ms)
        except BaseException as failure:
            self._on_death(failure)
            raise
        finally:
            client.close()
