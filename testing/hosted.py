"""One broker among a test's: its server, its directory, and its place in the registry, over starts, stops and kills."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.broker.faults.control import FaultControl
from kavka.broker.server import Broker as Server
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.config.broker_config import BrokerConfig
from kavka.config.thread_names import mark_of
from kavka.testing.clock import TravelClock
from kavka.testing.errors import BrokerDiedError
from kavka.testing.files import UnsyncedFiles

if TYPE_CHECKING:
    from kavka.storage.files import Files

HOST: Final = "127.0.0.1"
PLAINTEXT: Final = "PLAINTEXT"
DEFAULTS: Final = {
    # A group's first members are not waited for, and there is one partition of each internal topic to load.
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # What a test needs of threads and memory.
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
}
"""Settings of every test's broker, unless it is given others. No environment variable is read."""


class HostedBroker:
    """Starts, stops, kills and starts a broker again; its port stays the same.

    Threads: one at a time calls, but `bounce` may come from any, as a fault; `_turn` has one step end before the next
    begins. `failure` may be read by any.
    """

    def __init__(
        self,
        broker_id: int,
        directory: Path,
        settings: Mapping[str, str],
        clock: TravelClock,
        ensemble: MemoryEnsemble,
        faults: FaultControl,
        *,
        is_marked: bool = False,
        on_fatal: Callable[[], None] | None = None,
    ) -> None:
        """`is_marked`: whether the threads' names are to say whose they are. `on_fatal` is called, by any thread, when
        it has died by itself; it runs on in parts until it is stopped.
        """
        self.broker_id: Final = broker_id
        self.directory: Final = directory
        self._settings: Final = {
            **DEFAULTS,
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{HOST}:0",
            "log.dirs": str(directory),
            **settings,
        }
        self._clock: Final = clock
        self._ensemble: Final = ensemble
        self._faults: Final = faults
        self._turn: Final = threading.Lock()
        self._is_marked: Final = is_marked
        self._on_fatal: Final = on_fatal
        self._is_ended = False
        """By us, whose doing it is then no death."""
        self._failed_bounce: str | None = None
        """Why it did not come back from one, until it is started again."""
        self.files: Files = UnsyncedFiles()
        """What the next start gives to the broker."""
        self.server: Server | None = None
        """While it runs."""
        self.registry: MemoryRegistry | None = None
        self.address = ""
        """host:port of the first listener, after the first start."""
        self.addresses: Mapping[str, str] = {}
        """host:port of each listener, by its name."""
        self._plain_listener: str | None = None

    def address_at(self, listener: str) -> str:
        """host:port of the listener with this name. Raises ValueError."""
        if listener not in self.addresses:
            raise ValueError(f"there is no listener {listener!r}: there are {', '.join(self.addresses) or 'none yet'}")
        return self.addresses[listener]

    @property
    def plain_address(self) -> str:
        """host:port of the first listener without TLS and SASL. Raises RuntimeError where there is none."""
        if self._plain_listener is None:
            raise RuntimeError(
                "what asks the broker here speaks PLAINTEXT, and it has no such listener: "
                "add one beside those that are tested, or ask by a client of your own"
            )
        return self.addresses[self._plain_listener]

    @property
    def failure(self) -> str | None:
        """Why it has died, if it has."""
        server = self.server
        return self._failed_bounce if server is None or self._is_ended else server.fatal_reason

    def check(self) -> None:
        """Raises BrokerDiedError."""
        if (reason := self.failure) is not None:
            raise BrokerDiedError(f"broker {self.broker_id} at {self.address} has died: {reason}")

    def start(self) -> None:
        """Serve. Raises StartError, ConfigError."""
        if self.server is not None:
            raise RuntimeError(f"broker {self.broker_id} runs")
        self._as_its_own(self._start)

    def stop(self) -> None:
        """Stop in order: flushed, and marked as such. Nothing happens when it does not run."""
        self._as_its_own(self._stop)

    def bounce(self) -> None:
        """Stop in order and start again. Raises RuntimeError when it does not run, StartError: it has died by that."""
        self._as_its_own(self._bounce)

    def kill(self) -> None:
        """Lose the session, answer nobody any more, flush nothing: as by kill -9. Nothing happens when it does not run.

        What has been written is there at the next start, which recovers as after a crash.
        """
        self._as_its_own(self._kill)

    def drop(self) -> None:
        """As `kill`, but with its session: for one that nobody will miss, and that has nothing to come back to."""
        self._as_its_own(self._drop)

    def expire_session(self) -> None:
        """End its session with the registry; the broker registers again in the next one."""
        if self.registry is not None:
            self.registry.expire()

    def _start(self) -> None:
        self._is_ended = False
        server = Server(
            BrokerConfig(self._settings),
            on_fatal=self._died,
            files=self.files,
            faults=self._faults,
            clock=self._clock.clock,
            open_registry=lambda *_: self._open_registry(),
        )
        try:
            server.start()
            endpoints = server.endpoints_text()
            self._settings["listeners"] = endpoints
            self.addresses = dict(endpoint.split("://") for endpoint in endpoints.split(","))
            self.address = next(iter(self.addresses.values()))
            plain = [
                each.name for each in server.services.config.current.listeners if each.security_protocol == PLAINTEXT
            ]
            self._plain_listener = plain[0] if plain else None
            self._forget_clock = self._clock.on_travel(server.time_moved)
            self.server = server
            self._failed_bounce = None
        except BaseException:
            # An interrupt may come when it serves already, or while it takes back what it has done.
            server.stop()
            raise

    def _bounce(self) -> None:
        if self.server is None:
            raise RuntimeError(f"broker {self.broker_id} does not run")
        self._stop()
        try:
            self._start()
        except Exception as failure:
            self._failed_bounce = f"it did not start again: {failure}"
            self._died()
            raise

    def _stop(self) -> None:
        if self.server is not None:
            self._forget_clock()
            self.server.stop()
            self.server = self.registry = None

    def _kill(self) -> None:
        if self.registry is not None:
            self.registry.lose()
        self._drop()

    def _drop(self) -> None:
        if self.server is not None:
            self._is_ended = True
            self._forget_clock()
            self.server.abandon()
            self.server = self.registry = None

    def _open_registry(self) -> MemoryRegistry:
        self.registry = MemoryRegistry(self._ensemble)
        return self.registry

    def _died(self) -> None:
        if self._on_fatal is not None and not self._is_ended:
            self._on_fatal()

    def _as_its_own(self, step: Callable[[], None]) -> None:
        """Run it on a thread whose name says whose it is: those that it starts have that in their names too."""
        with self._turn:
            self._run_marked(step)

    def _run_marked(self, step: Callable[[], None]) -> None:
        if not self._is_marked:
            step()
            return
        raised: list[BaseException] = []

        def run() -> None:
            try:
                step()
            except BaseException as failure:  # noqa: BLE001 - raised again by who waits for it
                raised.append(failure)

        thread = threading.Thread(target=run, name=f"{mark_of(self.broker_id)}control", daemon=True)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]
