"""The only broker in sync dies: the partition waits for it, or goes on without it and says what is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from tests.support.process_cluster import NOBODY, TIMEOUT_S, ProcessCluster
from tests.support.wire import PRODUCE_VERSION, TOPIC, batch_of, produce_request
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

VISITS, NOW_MS = "visits", 1_700_000_000_000
IDS = AHEAD, BEHIND, OTHER = 1, 2, 3
SETTINGS = {"min.insync.replicas": "1"}


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    """With a partition whose second replica has two records of three: the third's only broker has been killed."""
    with ProcessCluster(zookeeper, tmp_path, kavkas=IDS, settings=SETTINGS) as made:
        made.make_controller(OTHER)
        made.create_on(VISITS, 1, [AHEAD, BEHIND])
        for value in (b"one", b"two"):
            write(made, AHEAD, value)
        made.kill(BEHIND)
        made.wait_for([VISITS], lambda told: told.isr == {AHEAD}, "the dead broker is in the ISR")
        write(made, AHEAD, b"three")
        made.kill(AHEAD)
        made.wait_for([VISITS], lambda told: told.leader == NOBODY, "the dead broker leads")
        made.start(BEHIND)
        yield made


def write(cluster: ProcessCluster, broker_id: int, value: bytes) -> None:
    request = produce_request(VISITS, batch_of([value], timestamp_ms=NOW_MS), acks=-1)
    with cluster.client(broker_id) as client:
        (answer,) = client.ask(request, PRODUCE_VERSION).responses
    assert answer.partition_responses[0].error_code == ErrorCode.NONE, answer


def test_the_partition_waits_for_the_broker_that_has_all(cluster: ProcessCluster) -> None:
    # The controller has dealt with the other one's return: it leads what is new.
    cluster.create_on("new", 1, [BEHIND])
    assert {each.leader for each in cluster.told(VISITS).values()} == {NOBODY}

    cluster.start(AHEAD)

    cluster.wait_in_sync(VISITS)
    assert cluster.told(VISITS)[0].leader == AHEAD
    assert cluster.values(VISITS, AHEAD, 3) == [b"one", b"two", b"three"]
    cluster.wait_until_identical(VISITS)


def test_unclean_it_goes_on_and_says_from_where_on_records_are_lost(cluster: ProcessCluster) -> None:
    behind = cluster.kavka(BEHIND)
    behind.expect_errors("beyond is lost")
    with cluster.client(BEHIND) as client:
        answer = client.alter(TOPIC, VISITS, [("unclean.leader.election.enable", "true")])
    assert answer.error_code == ErrorCode.NONE, answer

    assert cluster.wait_for_leader(VISITS, other_than=AHEAD) == BEHIND
    behind.process.wait_for_log(r"visits-0.*from offset 2 in epoch", TIMEOUT_S)
    write(cluster, BEHIND, b"another third")

    cluster.start(AHEAD)
    cluster.wait_in_sync(VISITS)
    cluster.wait_until_identical(VISITS)
    cluster.place([VISITS], [AHEAD, BEHIND])
    assert cluster.values(VISITS, AHEAD, 3) == [b"one", b"two", b"another third"]
