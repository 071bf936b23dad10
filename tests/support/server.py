"""What a test or a benchmark may ask of any running broker, ours or Apache Kafka's."""

import time
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tests.support.probe import is_ready
from tests.support.processes import Process, wait_until

KEPT: Final = {"log.retention.ms": "-1"}
"""What tests write may be of any time. By default retention takes what is older than a week, half a minute after the
start and every five minutes from then on, from under whoever is reading it."""


class ComplaintError(AssertionError):
    """A broker logged an error, or ended with one, that its test did not announce."""


class Server(Protocol):
    """A broker in a directory of its own. After `stop` or `kill`, `start` serves the same data again."""

    name: str
    directory: Path

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def bootstrap(self) -> str:
        """host:port, as clients want it."""
        ...

    @property
    def process(self) -> Process:
        """The broker's own process; raises RuntimeError while it is stopped."""
        ...

    def start(self) -> float:
        """Start it and wait until it can be used (`probe.is_ready`); the seconds from exec to then."""
        ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


class RunningServer:
    """The shared part of the servers: one process, and the way to stop it. Owned by the thread that made it."""

    name: str
    directory: Path
    host = "127.0.0.1"
    port: int
    _process: Process | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def process(self) -> Process:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process

    def start(self) -> float:
        raise NotImplementedError

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def wait_until_ready(self, started_at: float, timeout_s: float) -> float:
        """Poll until it has registered and knows a controller; the seconds since `started_at` (time.monotonic)."""

        def ready() -> bool:
            self.process.check_alive()
            return is_ready(self.host, self.port)

        wait_until(ready, timeout_s, lambda: f"{self.name} is not ready:\n{self.process.log_text()[-3000:]}")
        return time.monotonic() - started_at

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.stop()
            return
        try:
            self.stop()
        except ComplaintError as complaint:
            error.add_note(str(complaint))
