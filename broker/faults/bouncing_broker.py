"""A broker that can be asked to restart in place: the daemon's, with `kavka.faults.enable`."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from kavka.broker.faults.control import FaultControl
from kavka.broker.faults.door import FaultDoor
from kavka.broker.server import Broker, StartError
from kavka.config.broker_config import BrokerConfig
from kavka.config.values import Source

log = logging.getLogger(__name__)


class BouncingBroker:
    """As `broker.server.Broker`, over restarts; the faults' door stays where it is, with its token.

    Threads: `start` and `stop` by its owner, `bounce` by any. `_lock` guards `_broker` and `_stopped`: one of them at a
    time, so that a stop waits for a restart.
    """

    def __init__(self, config: BrokerConfig, *, on_fatal: Callable[[], None] | None = None) -> None:
        self._config = config
        self._on_fatal = on_fatal
        self._lock = threading.Lock()
        self._stopped = False
        self._failure: str | None = None
        self._control: Final = FaultControl(bounce=self.bounce)
        self._door: Final = FaultDoor(self._control, config.kavka_faults_port)
        self._broker = self._made()

    @property
    def fatal_reason(self) -> str | None:
        """Why it cannot go on, if so."""
        return self._failure or self._broker.fatal_reason

    @property
    def broker_id(self) -> int:
        """See Broker."""
        return self._broker.broker_id

    def endpoints_text(self) -> str:
        """See Broker."""
        return self._broker.endpoints_text()

    def hang_up(self) -> bool:
        """See Broker."""
        return self._broker.hang_up()

    def start(self) -> None:
        """Serve, and open the door. Raises StartError."""
        self._broker.start()
        try:
            self._door.start()
        except OSError as failure:
            self._broker.stop()
            raise StartError(str(failure)) from failure

    def stop(self) -> None:
        """Stop in order."""
        with self._lock:
            self._stopped = True
        # Those who ask by the door may wait for what a fault holds up; one that restarts the broker comes to its end.
        self._control.clear()
        self._door.stop()
        self._broker.stop()

    def bounce(self, _broker_id: int) -> None:
        """Stop in order and start again, at the same ports. Raises RuntimeError, also when the start failed: then the
        broker is dead, and its owner is told.
        """
        with self._lock:
            if self._stopped:
                raise RuntimeError("the broker stops")
            static = dict(next(layer for source, layer in self._config.layers if source is Source.STATIC_BROKER))
            # Where port 0 was asked for, clients are to find it again.
            self._config = BrokerConfig({**static, "listeners": self._broker.endpoints_text()})
            log.info("restarting in place")
            self._broker.stop()
            self._broker = self._made()
            try:
                self._broker.start()
            except StartError as failure:
                self._failure = f"the broker did not start again: {failure}"
                if self._on_fatal is not None:
                    self._on_fatal()
                raise RuntimeError(self._failure) from failure

    def _made(self) -> Broker:
        return Broker(self._config, on_fatal=self._on_fatal, faults=self._control)
