"""A broker for a test: real, over a real socket, in this process's threads."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kavka.broker.faults.control import FaultControl
from kavka.cluster.registry.memory import MemoryEnsemble
from kavka.config.sources import refuse_unknown
from kavka.testing.clock import TravelClock
from kavka.testing.entering import entered
from kavka.testing.hosted import HostedBroker
from kavka.testing.served import Served


class Broker(Served):
    """`with Broker() as broker:` has one serving at `broker.bootstrap_servers`; also `async with`.

    Its directory is temporary and goes with it, its port is the system's choice. Nothing of the process is changed,
    neither signals nor logging, and several can be there at once; nothing of them is left after `close`.

    Threads: one at a time starts, stops, kills and closes it; the rest is for any.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        clock: TravelClock | None = None,
        on_fatal: Callable[[], None] | None = None,
    ) -> None:
        """`settings`: a broker's, by Kafka's names. `on_fatal` is called, by any thread, when it dies by itself.

        Raises ConfigError for a name that no setting has.
        """
        super().__init__()
        self._settings: Final = dict(settings or {})
        refuse_unknown(self._settings)
        self._faults: Final = FaultControl(bounce=lambda _: self.hosted.bounce())
        self.clock = clock if clock is not None else TravelClock()
        self._directory: Final = tempfile.TemporaryDirectory(prefix="kavka-testing-", ignore_cleanup_errors=True)
        self.hosted: Final = HostedBroker(
            1,
            Path(self._directory.name),
            self._settings,
            self.clock,
            MemoryEnsemble(self.clock.now_ms),
            self._faults,
            on_fatal=on_fatal,
        )
        """What is behind it."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await entered(self.__enter__, self.close)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    @property
    def bootstrap_servers(self) -> str:
        """host:port; the same after a restart."""
        return self.hosted.address

    def bootstrap_at(self, listener: str) -> str:
        return self.hosted.address_at(listener)

    @property
    def listeners(self) -> Sequence[str]:
        return list(self.hosted.addresses)

    @property
    def plain_servers(self) -> str:
        return self.hosted.plain_address

    @property
    def faults(self) -> FaultControl:
        return self._faults

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not been stopped."""
        return self.hosted.server is not None

    def check(self) -> None:
        self.hosted.check()

    def start(self) -> None:
        """Serve, with what was there before. Raises StartError, ConfigError."""
        self._open_door(self._settings)
        self.hosted.start()

    def stop(self) -> None:
        """Stop in order, as by SIGTERM; `start` has it come back with what it had."""
        self.hosted.stop()

    def kill(self) -> None:
        """End it as by kill -9: nobody is answered, nothing flushed. `start` recovers."""
        self.hosted.kill()

    def restart(self) -> None:
        """`stop`, then `start`: at the same address."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it for good, and remove its directory. May be called twice."""
        with ExitStack() as stack:
            stack.callback(self._directory.cleanup)
            stack.callback(self.hosted.stop)
            stack.callback(self._end_faults)
            stack.callback(self._close_clients)
