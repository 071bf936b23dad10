"""What a change of settings does to the running broker: what may fail first, the rest when the change counts."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.security.gates import Gates
    from kavka.broker.socket_server import SocketServer
    from kavka.broker.waiting.scheduler import Scheduler
    from kavka.config.broker_config import BrokerConfig
    from kavka.storage.cleaner.log_cleaner import LogCleaner
    from kavka.storage.log_manager import LogManager

ENDPOINTS: Final = frozenset({"listeners", "advertised.listeners"})


class RunningParts:
    """The parts that settings reach by being told; all others read the snapshot of the moment.

    `announce` tells the cluster of other endpoints. Threads: called under `DynamicConfig`'s lock.
    """

    def __init__(
        self,
        sockets: "SocketServer",
        gates: "Gates",
        logs: "LogManager",
        cleaner: "LogCleaner",
        scheduler: "Scheduler",
        announce: "Callable[[BrokerConfig], None]",
    ) -> None:
        self._sockets: Final = sockets
        self._gates: Final = gates
        self._logs: Final = logs
        self._cleaner: Final = cleaner
        self._scheduler: Final = scheduler
        self._announce: Final = announce

    def prepare(self, config: "BrokerConfig") -> None:
        """Open the addresses and start the threads that `config` adds, and change nothing else.

        Raises OSError; what could be opened is there then, until `keep_only`. Raises ConfigError before it opens any.
        """
        # First: who connects to a new listener must find its gate.
        self._gates.prepare(config)
        self._sockets.prepare(config)
        self._cleaner.prepare(config)

    def keep_only(self, configs: "Sequence[BrokerConfig]") -> None:
        """Close the addresses and end the threads that none of these has."""
        with ExitStack() as stack:
            stack.callback(self._cleaner.keep_only, configs)
            stack.callback(self._gates.keep_only, configs)
            stack.callback(self._sockets.keep_only, configs)

    def changed(
        self,
        old: "BrokerConfig",
        new: "BrokerConfig",
        names: frozenset[str],
        pending: "Sequence[BrokerConfig]" = (),
    ) -> None:
        """`new` counts from now on, and has been prepared; so have those that are `pending`, and they stay so.

        Every part is told, whatever becomes of the others: half of a change is worse than one part that has missed it.
        Raises what one part raised, with other parts' failures as its context.
        """
        with ExitStack() as stack:  # it runs what was entered last first, and each step although another failed
            if names & ENDPOINTS:
                stack.callback(self._announce, new)
            stack.callback(self._sockets.reconfigure, new, pending)
            stack.callback(self._gates.keep_only, [new, *pending])
            stack.callback(self._scheduler.intervals_changed)
            if "background.threads" in names:
                stack.callback(self._scheduler.resize, new.background_threads)
            stack.callback(self._cleaner.reconfigure, new, pending)
            stack.callback(self._logs.update_broker_config, new)
