"""One broker for all tests of faults here; each has topics of its own, and leaves no fault behind."""

from collections.abc import Iterator

import pytest

from kavka.broker.faults.control import FaultControl
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import RawClient

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path_factory.mktemp("broker"), SETTINGS, faults=FaultControl()) as running:
        yield running


@pytest.fixture
def faults(running: RunningBroker) -> Iterator[FaultControl]:
    assert running.faults is not None
    yield running.faults
    running.faults.clear()


@pytest.fixture
def client(running: RunningBroker) -> Iterator[RawClient]:
    with RawClient(HOST, running.port) as client:
        yield client
