"""The elected controller: one thread draining a bounded queue of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from kavka.cluster.controller.requests import (
    ConfigEntity,
    ConfigUpdate,
    ElectionType,
    NewPartitions,
    NewTopic,
    ProducerIdBlock,
    TopicResult,
)
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


class Controller:
    """Candidate for, and while elected the one, controller of the cluster.

    Every public method may be called by any thread; work happens on the controller's own thread, and the future is
    completed there, so a callback on it must be short. While another broker is the controller, futures fail with
    BrokerError(NOT_CONTROLLER).
    """

    def start(self) -> Future[None]:
        """Join the election. Done when it is decided and, if won, when all brokers were told what they lead."""
        raise NotImplementedError

    def stop(self) -> None:
        """Resign if elected, fail what waits, join the thread."""
        raise NotImplementedError

    @property
    def is_active(self) -> bool:
        raise NotImplementedError

    @property
    def controller_id(self) -> int:
        """The broker that is the controller as far as is known here, or -1."""
        raise NotImplementedError

    def create_topics(self, topics: Sequence[NewTopic], validate_only: bool = False) -> Future[list[TopicResult]]:
        """One result a topic, in order. Answers when the leaders here took over and the metadata is published."""
        raise NotImplementedError

    def delete_topics(self, names: Sequence[str]) -> Future[dict[str, BrokerError | None]]:
        """Answers when the topics are gone from the metadata; replicas on dead brokers are deleted on their return."""
        raise NotImplementedError

    def create_partitions(
        self, growths: Sequence[NewPartitions], validate_only: bool = False
    ) -> Future[dict[str, BrokerError | None]]:
        raise NotImplementedError

    def alter_configs(
        self, entity: ConfigEntity, update: Mapping[str, str] | ConfigUpdate, validate_only: bool = False
    ) -> Future[None]:
        """Replace an entity's configuration, on any broker. Answers when this broker's listeners have applied it."""
        raise NotImplementedError

    def allocate_producer_id_block(self, broker_id: int) -> Future[ProducerIdBlock]:
        raise NotImplementedError

    def alter_partition(self, request: AlterPartitionRequest) -> Future[AlterPartitionResponse]:
        raise NotImplementedError

    def elect_leaders(
        self, election: ElectionType, partitions: Sequence[tuple[str, int]] | None
    ) -> Future[dict[tuple[str, int], BrokerError | None]]:
        raise NotImplementedError

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> Future[list[tuple[str, int]]]:
        """Move leadership away from a broker that stops; answers with the partitions that it still leads."""
        raise NotImplementedError
