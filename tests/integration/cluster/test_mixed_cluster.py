"""Kavka and Apache Kafka 3.9 in one cluster: either controls, leads, follows and coordinates what the other did."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exact_copies import SOURCE, TARGET, ExactCopies
from tests.support.mixed_chores import do_chores
from tests.support.numbered_producer import PARTITIONS
from tests.support.process_cluster import INTERNAL, ProcessCluster
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

KAFKA, KAVKA, OTHER = 1, 2, 3
COPIED = (SOURCE, TARGET)
ALL = (*COPIED, *INTERNAL)


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kafkas=[KAFKA], kavkas=[KAVKA, OTHER]) as made:
        for topic in COPIED:
            made.create(topic, PARTITIONS, first=KAFKA)
        yield made


@pytest.mark.timeout(900)
def test_nothing_is_lost_whoever_controls_leads_and_dies(cluster: ProcessCluster, tmp_path: Path) -> None:
    with ExactCopies(tmp_path, cluster.bootstrap) as copies:
        cluster.wait_in_sync(*ALL)
        for controller, other in ((KAFKA, KAVKA), (KAVKA, KAFKA)):
            cluster.make_controller(controller)
            for leader, coordinator in ((KAVKA, KAFKA), (KAFKA, KAVKA)):
                cluster.lead(COPIED, leader)
                cluster.lead(INTERNAL, coordinator)
                copies.wait_for_more()
            do_chores(cluster, f"chores.{controller}", other)

        # All is led and coordinated by who dies: Kafka under Kavka, then Kavka under Kafka.
        for killed, controller in ((KAFKA, KAVKA), (KAVKA, KAFKA)):
            cluster.make_controller(controller)
            cluster.lead(ALL, killed)
            cluster.kill(killed)
            for topic in ALL:
                cluster.wait_for_leader(topic, other_than=killed)
            copies.wait_for_more()
            cluster.start(killed)
            cluster.wait_in_sync(*ALL)

        # Kafka, which controls, is emptied and stops in order; then it gets all back.
        cluster.place(ALL, [KAVKA, OTHER])
        cluster.stop(KAFKA)
        copies.wait_for_more()
        cluster.start(KAFKA)
        cluster.lead(ALL, KAFKA)
        copies.wait_for_more()
        copies.finish()
        cluster.wait_until_identical(*ALL)
