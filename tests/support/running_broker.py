"""A broker as an object, on ephemeral ports of the loopback interface, whose settings a test changes over the wire."""

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kavka.broker.clock import SYSTEM_CLOCK, Clock
from kavka.broker.server import Broker
from kavka.config.broker_config import BrokerConfig
from kavka.config.values import Source
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.storage.files import Files
from tests.support.logged_errors import LoggedErrors
from tests.support.processes import free_port, wait_until
from tests.support.server import KEPT
from tests.support.wire import BROKER, RawClient

if TYPE_CHECKING:
    from kavka.broker.faults.control import FaultControl

HOST = "127.0.0.1"
BROKER_ID = "5"


class RunningBroker:
    """`with RunningBroker(tmp_path) as running:` serves; `restart` stops it and starts it with the same settings.

    What it logs as an error must be announced: `running.errors.expect(pattern)`.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        files: Files | None = None,
        faults: "FaultControl | None" = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.files = files
        self.faults = faults
        self.clock = clock
        self.port = free_port()
        self.settings = {
            "broker.id": BROKER_ID,
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(directory),
            **KEPT,
            **(settings or {}),
        }
        self.errors = LoggedErrors()
        self.broker: Broker

    def __enter__(self) -> Self:
        self.errors.__enter__()
        try:
            self.start()
        except BaseException:
            self.errors.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.stop()
        self.errors.__exit__(kind, error, trace)

    def start(self) -> None:
        self.broker = Broker(BrokerConfig(self.settings), files=self.files, faults=self.faults, clock=self.clock)
        self.broker.start()

    def restart(self) -> None:
        self.broker.stop()
        self.start()

    def alter(self, changes: Mapping[str, str | None], name: str = BROKER_ID) -> Any:
        """Set settings, or with None take them away; the answer for the resource."""
        with RawClient(HOST, self.port) as client:
            return client.alter(BROKER, name, list(changes.items()))

    def described(self, kind: int = BROKER, name: str = BROKER_ID) -> dict[str, tuple[str | None, Source]]:
        """A resource's settings: value and source."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        with RawClient(HOST, self.port) as client:
            (result,) = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
        return {entry.name: (entry.value, Source(entry.config_source)) for entry in result.configs}


def wait_for_threads(**counts: int) -> None:
    """Until this process has so many threads of each name (underscores for dashes): those that end take their time."""

    def found() -> dict[str, int]:
        return {name: threads(name.replace("_", "-")) for name in counts}

    wait_until(lambda: found() == counts, 60, lambda: f"{found()} instead of {counts}")


def threads(prefix: str) -> int:
    """How many threads of this process have such a name."""
    return sum(thread.name.startswith(prefix) for thread in threading.enumerate())
