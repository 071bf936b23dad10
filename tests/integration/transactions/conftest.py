"""Java producers of today (transactions of version 2) and of 3.9 (version 1), beside the module's broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import RunningServer
from tests.support.transactions import TransactionalProducers


@pytest.fixture(scope="module")
def producers(broker: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionalProducers]:
    """One JVM for the module's tests; each uses names and transactional ids of its own."""
    with TransactionalProducers(broker, tmp_path_factory.mktemp("java") / "client.log") as running:
        yield running


@pytest.fixture(scope="module")
def old_producers(broker: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionalProducers]:
    log: Path = tmp_path_factory.mktemp("java-3.9") / "client.log"
    with TransactionalProducers(broker, log, bundle="kafka-3.9") as running:
        yield running


@pytest.fixture(params=["kafka-4.3", "kafka-3.9"])
def client(request: pytest.FixtureRequest) -> TransactionalProducers:
    """The producers of either version, for what must be the same."""
    name = {"kafka-4.3": "producers", "kafka-3.9": "old_producers"}[request.param]
    running: TransactionalProducers = request.getfixturevalue(name)
    return running
