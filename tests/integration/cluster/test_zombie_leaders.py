"""A leader that stood still while others were elected in its place: what it still takes for its own does no harm."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from tests.support.process_cluster import ProcessCluster
from tests.support.wire import PRODUCE_VERSION, Wire, batch_of, produce_request
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, NOW_MS = "visits", 1_700_000_000_000
IDS = (1, 2, 3)
# Alone it could acknowledge what it appends. It stands still for as long as its session, and thus for longer than its
# followers may lag: it would have them leave the ISR as soon as it wakes.
SETTINGS = {"min.insync.replicas": "1", "zookeeper.session.timeout.ms": "10000", "replica.lag.time.max.ms": "8000"}


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kavkas=IDS, settings=SETTINGS) as made:
        yield made


def request_of(value: bytes, acks: int) -> Any:
    return produce_request(TOPIC, batch_of([value], timestamp_ms=NOW_MS), acks=acks)


def write(cluster: ProcessCluster, broker_id: int, value: bytes) -> None:
    with cluster.client(broker_id) as client:
        (answer,) = client.ask(request_of(value, -1), PRODUCE_VERSION).responses
    assert answer.partition_responses[0].error_code == ErrorCode.NONE, answer


@pytest.mark.parametrize("is_controller", [False, True])
def test_what_a_zombie_is_still_sent_is_not_acknowledged_and_it_comes_back_unaided(
    cluster: ProcessCluster, is_controller: bool
) -> None:
    zombie = cluster.controller_id if is_controller else min({*IDS} - {cluster.controller_id})
    cluster.create(TOPIC, 1, first=zombie)
    write(cluster, zombie, b"before")
    address = (cluster.brokers[zombie].host, cluster.brokers[zombie].port)
    with Wire(*address, timeout_s=120) as waiting, Wire(*address, timeout_s=120) as hasty:
        assert waiting.ranges
        assert hasty.ranges
        with cluster.without(zombie, lingers=True):
            # They lie in its sockets, and are the first that it reads.
            waiting.send(request_of(b"never acknowledged", -1), PRODUCE_VERSION)
            hasty.send(request_of(b"acknowledged by one alone", 1), PRODUCE_VERSION)
            leader = cluster.wait_for_leader(TOPIC, other_than=zombie)
            write(cluster, leader, b"meanwhile")
        (refused,) = waiting.answer(request_of(b"", -1), PRODUCE_VERSION).responses
        hasty.answer(request_of(b"", 1), PRODUCE_VERSION)
    assert refused.partition_responses[0].error_code != ErrorCode.NONE

    cluster.wait_in_sync(TOPIC)
    write(cluster, leader, b"after")
    assert cluster.values(TOPIC, leader, 3) == [b"before", b"meanwhile", b"after"]
    cluster.wait_until_identical(TOPIC)
    cluster.lead([TOPIC], zombie)
    assert cluster.values(TOPIC, zombie, 3) == [b"before", b"meanwhile", b"after"]
