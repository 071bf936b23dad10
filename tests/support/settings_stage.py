"""A running broker whose settings a test changes, and what of it shows from outside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kavka.protocol.errors import ErrorCode
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import BROKER, EARLIEST, RawClient

BROKER_ID = "5"
"""The stage's broker must have this id, and `log.dirs` named by whoever starts it."""
EFFECT_TIMEOUT_S = 240.0
"""A cleaner's worker runs at a low priority: beside busy programs it gets a twentieth of a processor."""


class Stage:
    """A running broker, a connection to it, and the topic of one test."""

    def __init__(self, broker: KavkaProcess, topic: str) -> None:
        self.broker = broker
        self.topic = topic
        self.client = RawClient(broker.host, broker.port)
        self._changed: set[str] = set()

    def change(self, **settings: str) -> None:
        """Change settings of this broker (underscores for dots); they are taken back at the end."""
        changes = {name.replace("_", "."): value for name, value in settings.items()}
        response = self.client.alter(BROKER, BROKER_ID, list(changes.items()))
        assert response.error_code == ErrorCode.NONE, response.error_message
        self._changed |= changes.keys()

    def create(self, **configs: str) -> None:
        self.client.create_topic(self.topic, **dict[str, Any](configs))

    def produce(self, value: bytes = b"v", **more: object) -> ErrorCode:
        return ErrorCode(self.client.produce(self.topic, value, **more).error_code)  # type: ignore[arg-type]  # passed on as they came

    @property
    def directories(self) -> list[Path]:
        """Those of `log.dirs`."""
        return [Path(each) for each in self.broker.overrides["log.dirs"].split(",")]

    @property
    def folder(self) -> Path:
        """Where the topic lies; must not be asked while it moves."""
        return next(found for each in self.directories if (found := each / f"{self.topic}-0").exists())

    def segments(self) -> int:
        return len(list(self.folder.glob("*.log")))

    def start_offset(self) -> int:
        return self.client.offset(self.topic, EARLIEST)

    def recovery_point(self) -> int:
        lines = (self.folder.parent / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]
        return next((int(line.split()[2]) for line in lines if line.startswith(f"{self.topic} 0 ")), -1)

    def restore(self) -> None:
        """Take back what was changed, over a new connection: the old one may have gone with its listener or thread."""
        self.client.close()
        if self._changed:
            wait_until(self._taken_back, EFFECT_TIMEOUT_S, "the settings could not be taken back")
            self._changed.clear()

    def reconnect(self) -> None:
        """Go on after `restore`."""
        self.client = RawClient(self.broker.host, self.broker.port)

    def _taken_back(self) -> bool:
        try:
            with RawClient(self.broker.host, self.broker.port) as client:
                response = client.alter(BROKER, BROKER_ID, [(name, None) for name in self._changed])
        except OSError:
            return False
        return bool(response.error_code == ErrorCode.NONE)


def eventually(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, EFFECT_TIMEOUT_S, what)
