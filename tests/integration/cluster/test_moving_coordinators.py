"""Copying exactly once while coordinators and leaders are killed: transactions stay whole, offsets never go back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kavka.coordinator.partitioning import partition_for
from tests.support.exact_copies import GROUP, SOURCE, TARGET, TRANSACTION, ExactCopies
from tests.support.numbered_producer import PARTITIONS
from tests.support.process_cluster import INTERNAL, ProcessCluster
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

IDS = (1, 2, 3)
INTERNAL_PARTITIONS = 3
SETTINGS = {
    "controlled.shutdown.enable": "false",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
}


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kavkas=IDS, settings=SETTINGS) as made:
        made.create(SOURCE, PARTITIONS, first=IDS[0])
        made.create(TARGET, PARTITIONS, first=IDS[1])
        yield made


@pytest.mark.timeout(600)
def test_copies_are_exact_though_coordinators_and_leaders_are_killed(cluster: ProcessCluster, tmp_path: Path) -> None:
    victims = (
        (TRANSACTION_STATE_TOPIC, partition_for(TRANSACTION, INTERNAL_PARTITIONS)),
        (GROUP_METADATA_TOPIC, partition_for(GROUP, INTERNAL_PARTITIONS)),
        (TARGET, 0),
    )
    with ExactCopies(tmp_path, cluster.bootstrap) as copies:
        for topic, partition in victims:
            cluster.wait_in_sync(SOURCE, TARGET, *INTERNAL)
            killed = cluster.told(topic)[partition].leader
            cluster.kill(killed)
            cluster.wait_for_leader(topic, other_than=killed)
            copies.wait_for_more()
            cluster.start(killed)
        cluster.wait_in_sync(SOURCE, TARGET, *INTERNAL)
        copies.finish()
