"""What a change of settings does to the running broker: what may fail first, the rest when the change counts."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.scheduler import Scheduler
    from kavka.broker.socket_server import SocketServer
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
        logs: "LogManager",
        cleaner: "LogCleaner",
        scheduler: "Scheduler",
        announce: "Callable[[BrokerConfig], None]",
    ) -> None:
        self._sockets: Final = sockets
        self._logs: Final = logs
        self._cleaner: Final = cleaner
        self._scheduler: Final = scheduler
        self._announce: Final = announce

    def prepare(self, config: "BrokerConfig") -> None:
        """Open the addresses and start the threads that `config` adds. Raises OSError, with nothing changed."""
        self._sockets.prepare(config)
        try:
            self._cleaner.reconfigure(config)
        except OSError:
            self._sockets.abandon()
            raise

    def abandon(self, config: "BrokerConfig") -> None:
        """Close and end them again: `config` stays."""
        self._sockets.abandon()
        self._cleaner.reconfigure(config)

    def changed(self, old: "BrokerConfig", new: "BrokerConfig", names: frozenset[str]) -> None:
        """`new` counts from now on, and has been prepared.

        Every part is told, whatever becomes of the others: half of a change is worse than one part that has missed it.
        Raises what one part raised, with other parts' failures as its context.
        """
        with ExitStack() as stack:  # it runs what was entered last first, and each step although another failed
            if names & ENDPOINTS:
                stack.callback(self._announce, new)
            stack.callback(self._sockets.reconfigure, new)
            stack.callback(self._scheduler.intervals_changed)
            if "background.threads" in names:
                stack.callback(self._scheduler.resize, new.background_threads)
            stack.callback(self._cleaner.reconfigure, new)
            stack.callback(self._logs.update_broker_config, new)
