"""An idempotent producer with five requests under way, as Java's is, while leaders die: each record is there once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.numbered_producer import PARTITIONS
from tests.support.process_cluster import ProcessCluster
from tests.support.producing import Producing, assert_nothing_lost_or_doubled
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

IDS = (1, 2, 3)
TOPIC = "numbers"
RATE = 1000
TIMEOUT_S = 120.0


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    # Small segments: snapshots of what producers wrote are taken, and read again.
    settings = {"log.segment.bytes": "100000", "log.roll.jitter.ms": "0"}
    with ProcessCluster(zookeeper, tmp_path, kavkas=IDS, settings=settings) as made:
        made.create(TOPIC, PARTITIONS, first=IDS[0])
        yield made


@pytest.mark.timeout(600)
def test_no_record_is_doubled_or_lost_when_leaders_are_killed(cluster: ProcessCluster, tmp_path: Path) -> None:
    with Producing(tmp_path, cluster.bootstrap, TOPIC, "n", "java", rate=RATE) as producer:
        producer.wait_for_more(TIMEOUT_S)
        for killed in (*IDS, *IDS):
            cluster.lead([TOPIC], killed)
            producer.wait_for_more(TIMEOUT_S)
            cluster.kill(killed)
            cluster.wait_for_leader(TOPIC, other_than=killed)
            producer.wait_for_more(TIMEOUT_S)
            cluster.start(killed)
            cluster.wait_in_sync(TOPIC)
            producer.wait_for_more(TIMEOUT_S)
        sent = producer.finish()

    cluster.lead([TOPIC], IDS[0])
    leader = cluster.kavka(IDS[0])
    assert producer.errors() == []
    assert assert_nothing_lost_or_doubled(leader.host, leader.port, TOPIC, [producer]) == sent
    cluster.wait_until_identical(TOPIC)
