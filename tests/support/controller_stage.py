"""Where controllers are tested: a registry with the trunk of the tree, fake brokers, and the controllers started."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.controller.controller import Controller
from kavka.cluster.promise import Promise
from kavka.cluster.registry.embedded import EmbeddedRegistry
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
    inter_broker_listener_name: str | None = None

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

    def candidate(self, broker_id: int) -> Controller:
        controller = Controller(self.registry, broker_id, self.cluster, self.settings, self.clock, placement_seed=1)
        self.controllers.append(controller)
        return controller

    def settle(self, controller: Controller) -> None:
        """Wait until the controller has seen what was written to the tree before."""
        wait(controller.create_topics([], validate_only=True))

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
    return promise.result(30)
