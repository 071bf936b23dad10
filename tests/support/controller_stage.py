"""Where controllers are tested: a registry with the trunk of the tree, fake brokers, and the controllers started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.controller.controller import Controller
from kavka.cluster.features import FinalizedFeatures
from kavka.cluster.promise import Promise
from kavka.cluster.registry.embedded import EmbeddedRegistry
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
)
from tests.support.fake_brokers import FakeCluster

_T = TypeVar("_T")


class Clock:
    def __init__(self) -> None:
        self.time_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.time_ms


class Settings:
    """The settings that the controller reads."""

    delete_topic_enable = True
    num_partitions = 2
    default_replication_factor = 1
    unclean_leader_election_enable = False
    auto_leader_rebalance_enable = True
    leader_imbalance_per_broker_percentage = 10
    inter_broker_protocol_version = "3.9-IV0"
    inter_broker_listener_name: str | None = None
    awaits_other_releases = False

    @property
    def current(self) -> Settings:
        return self


class Stage:
    """One registry, its brokers, and the controllers started so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = Clock()
        self.settings = Settings()
        self.registry = EmbeddedRegistry(path, self.clock)
        prepare_tree(self.registry)
        self.cluster = FakeCluster(self.registry)
        self.controllers: list[Controller] = []

    def brokers(self, *broker_ids: int) -> FakeCluster:
        for broker_id in broker_ids:
            self.cluster.add(broker_id)
        return self.cluster

    def controller(self, broker_id: int = 1) -> Controller:
        controller = self.candidate(broker_id)
        wait(controller.start())
        return controller

    def candidate(
        self, broker_id: int, on_features: Callable[[FinalizedFeatures], object] = lambda features: None
    ) -> Controller:
        controller = Controller(
            self.registry,
            broker_id,
            self.cluster,
            self.settings,
            self.clock,
            on_features=on_features,
            placement_seed=1,
        )
        self.controllers.append(controller)
        return controller

    def settle(self, controller: Controller) -> None:
        """Wait until the controller has seen what was written to the tree before."""
        wait(controller.create_topics([], validate_only=True))

    def state(self, topic: str = "t", partition: int = 0) -> PartitionState:
        data, stat = self.registry.get(PartitionState.path(topic, partition))
        return PartitionState.decode(topic, partition, data, stat.version)

    def assignment(self, topic: str = "t") -> TopicAssignment:
        return TopicAssignment.decode(topic, self.registry.get(TopicAssignment.path(topic))[0])

    def alter_isr(
        self,
        controller: Controller,
        *isr: int,
        topic: str = "t",
        partition: int = 0,
        recovery: int | None = None,
        broker_epoch: int | None = None,
    ) -> ErrorCode:
        """The leader asks for this ISR, knowing the state as it is; `broker_epoch` names a former run of it."""
        now = self.state(topic, partition)
        asked = AlterPartitionRequestPartitionData(
            partition_index=partition,
            leader_epoch=now.leader_epoch,
            new_isr=list(isr),
            partition_epoch=now.version,
            leader_recovery_state=now.recovery if recovery is None else recovery,
        )
        request = AlterPartitionRequest(
            broker_id=now.leader,
            broker_epoch=self.cluster.epoch(now.leader) if broker_epoch is None else broker_epoch,
            topics=[AlterPartitionRequestTopicData(topic_name=topic, partitions=[asked])],
        )
        code = wait(controller.alter_partition(request)).topics[0].partitions[0].error_code
        self.settle(controller)
        return ErrorCode(code)

    def restart(self) -> None:
        """Everything stops and the registry opens again; brokers are to be added anew."""
        self.close()
        self.registry = EmbeddedRegistry(self.path, self.clock)
        self.cluster = FakeCluster(self.registry)

    def close(self) -> None:
        for controller in self.controllers:
            controller.stop()
        self.controllers.clear()
        self.registry.close()


def wait(promise: Promise[_T]) -> _T:
    return promise.result(60)
