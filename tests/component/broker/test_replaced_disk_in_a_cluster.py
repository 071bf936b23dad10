"""All brokers were down, and one comes back with an empty disk: the controller has another lead what it led."""

import shutil
from pathlib import Path

from kavka.broker.partitions.disk_notices import DiskNotices
from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.broker.partitions.topic_adoption import known_partitions
from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.registry.embedded import FILE_NAME
from kavka.cluster.znodes.notifications import LogDirEvent
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import FakeBroker
from tests.support.log_managers import ManagerRig
from tests.support.partition_logs import append

MINE, OTHER = 1, 2
TOPIC = "visits"


class Hosting(FakeBroker):
    """A broker whose replicas are real."""

    def __init__(self, replicas: ReplicaManager) -> None:
        super().__init__(MINE)
        self.replicas = replicas

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        super().leader_and_isr(request)
        return self.replicas.leader_and_isr(request)


class Cluster:
    """Broker 2 is the controller."""

    def __init__(self, directory: Path) -> None:
        self.stage = Stage(directory / FILE_NAME)
        self.logs = ManagerRig([directory / "data"])
        self.start()

    def start(self) -> None:
        stage = self.stage
        manager = self.logs.make()
        manager.lock_directories()
        manager.load(known_partitions(stage.registry))
        manager.claim(MINE, "cluster", is_replicated=True)
        self.replicas = ReplicaManager(MINE, manager)
        stage.brokers(MINE, OTHER)
        stage.cluster.brokers[MINE] = Hosting(self.replicas)
        self.controller: Controller = stage.controller(OTHER)

    def stop(self) -> None:
        self.stage.restart()
        self.logs.manager.close()

    def state(self) -> PartitionState:
        data, stat = self.stage.registry.get(PartitionState.path(TOPIC, 0))
        return PartitionState.decode(TOPIC, 0, data, stat.version)

    def look_after_disks(self) -> None:
        """What the broker does every few seconds."""
        event = LogDirEvent.encode(MINE)
        DiskNotices(
            self.replicas, lambda: self.stage.registry.create(LogDirEvent.PREFIX, event, sequential=True)
        ).retry()
        self.stage.settle(self.controller)


def test_an_empty_disk_takes_no_leadership_back(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    wait(cluster.controller.create_topics([NewTopic(TOPIC, assignments={0: [MINE, OTHER]})]))
    log = cluster.replicas.partitions[TOPIC, 0].log
    assert log is not None
    append(log, b"kept", leader_epoch=0)
    assert cluster.state()[:3] == (MINE, 0, (MINE, OTHER))
    cluster.look_after_disks()

    cluster.stop()
    shutil.rmtree(tmp_path / "data")
    cluster.start()

    assert cluster.state().leader == OTHER
    assert MINE not in cluster.state().isr
    cluster.look_after_disks()
    role = cluster.replicas.partitions[TOPIC, 0].role
    assert (role.is_leader, role.leader_id) == (False, OTHER)
    cluster.stop()


def test_a_disk_that_stays_leads_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    wait(cluster.controller.create_topics([NewTopic(TOPIC, assignments={0: [MINE, OTHER]})]))
    cluster.look_after_disks()

    cluster.stop()
    cluster.start()

    assert cluster.state().leader == MINE
    assert cluster.replicas.partitions[TOPIC, 0].role.is_leader
    cluster.stop()
