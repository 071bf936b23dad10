"""What stands before the clients of each listener: a SASL gate, or nothing. SASL's code is loaded where it is needed.

A listener that is not known, as it is on its way in or out, lets nobody in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kavka.config.listeners import SASL

if TYPE_CHECKING:
    from kavka.broker.requests.session import Gate
    from kavka.broker.security.sasl.listeners import SaslListeners
    from kavka.broker.security.sasl.sasl_listener import SaslListener
    from kavka.broker.services import Services
    from kavka.broker.waiting.timer import Timer
    from kavka.config.broker_config import BrokerConfig


class Gates:
    """The gates of one broker.

    Threads: `gate_of` by any; the others by who starts and stops the broker, and by whichever changes its settings, one
    at a time. `_listeners` is replaced whole.
    """

    def __init__(self, services: "Services", timer: "Timer", now_ns: Callable[[], int]) -> None:
        """`now_ns` is the timer's clock."""
        self._services = services
        self._timer = timer
        self._now_ns = now_ns
        self._listeners: Mapping[str, SaslListener | None] = {}
        """By name; None: no SASL."""
        self._sasl: SaslListeners | None = None

    def prepare(self, config: "BrokerConfig") -> None:
        """Make ready those of its listeners that are not there. Raises ConfigError where one cannot be served."""
        self._listeners = {**self._made(config), **self._listeners}

    def keep_only(self, configs: "Sequence[BrokerConfig]") -> None:
        """Have what the first of these says, and besides what only others have; nothing else."""
        listeners: dict[str, SaslListener | None] = {}
        for config in configs:
            listeners = {**self._made(config), **listeners}
        self._listeners = listeners
        if self._sasl is not None:
            self._sasl.keep_only([each for each in listeners.values() if each is not None])

    def stop(self) -> None:
        """End what fetches keys."""
        if self._sasl is not None:
            self._sasl.keep_only([])

    def gate_of(self, listener_name: str) -> "Gate | None":
        """What stands before a new connection to that listener."""
        listener = self._listeners.get(listener_name, CLOSED)
        if listener is None or isinstance(listener, ClosedGate):
            return listener
        assert self._sasl is not None
        return self._sasl.gate(lambda: self._now(listener_name, listener))

    def _now(self, listener_name: str, known: "SaslListener") -> "SaslListener":
        """The listener as it is set now; as it was, once it has gone or has no SASL any more."""
        return self._listeners.get(listener_name) or known

    def _made(self, config: "BrokerConfig") -> "dict[str, SaslListener | None]":
        made: dict[str, SaslListener | None] = {}
        for listener in config.listeners:
            if not listener.security_protocol.startswith(SASL):
                made[listener.name] = None
                continue
            if self._sasl is None:
                from kavka.broker.security.sasl.listeners import SaslListeners

                self._sasl = SaslListeners(self._services, self._timer, self._now_ns)
            made[listener.name] = self._sasl.made(config, listener.name)
        return made


class ClosedGate:
    """Lets nobody in. Threads: any."""

    def longest_frame_bytes(self, usual_bytes: int) -> int:
        """See Gate."""
        return usual_bytes

    def execute(self, context: Any, passage: Any) -> bool:
        """See Gate."""
        closed: bool = passage.reject(context, "its listener is closed")
        return closed

    def may_begin_again(self) -> bool:
        """See Gate."""
        return False

    def begin_again(self, mechanism: str, context: Any) -> Any:
        """See Gate."""
        raise RuntimeError("nobody was let in")

    def rejected(self, listener_name: str) -> None:
        """See Gate."""

    def end(self) -> None:
        """See Gate."""


CLOSED: Final = ClosedGate()
