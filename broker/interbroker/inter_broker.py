"""The `inter-broker` thread: all requests to other brokers but those of followers, over one network client."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from kavka.client import ClientSettings, NetworkClient
from kavka.client.counts import ClientCounts

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
    ) -> None:
        """Raises OSError: no descriptors are left."""
        self._on_death: Final = on_death
        self.now_ms: Final = now_ms
        """The clock of all senders."""
        self._lock: Final = threading.Lock()
        self._senders: tuple[Sender, ...] = ()
        self._is_stopping = False
        self._client: Final = NetworkClient(settings, now_ms=now_ms)
        self._thread: Final = threading.Thread(target=self._run, name="inter-broker", daemon=True)

    @property
    def counts(self) -> ClientCounts:
        """What the client has done so far."""
        return self._client.counts

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and join the thread. Senders are not told: whoever made them closes them."""
        self._is_stopping = True
        if self._thread.is_alive():
            self.wake()
            self._thread.join()
        elif self._thread.ident is None:
            self._client.close()

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
        self._client.wakeup()

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                now_ms = self.now_ms()
                wait_ms = min((each.advance(self._client, now_ms) for each in self._senders), default=float("inf"))
                self._client.poll(wait_ms)
        except BaseException as failure:
            self._on_death(failure)
            raise
        finally:
            self._client.close()
