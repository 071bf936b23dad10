"""A consumer of the classic protocol, played by a test."""

from __future__ import annotations

from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kavka.protocol.messages.sync_group import SyncGroupRequestAssignment
from tests.support.classic_requests import classic_beat, classic_join, classic_sync
from tests.support.consumer_stage import ConsumerStage
from tests.support.coordinator_stage import Asked


class ClassicConsumer:
    """A consumer of the classic protocol, with the cooperative assignor's ways: it keeps what it may."""

    def __init__(self, stage: ConsumerStage, member_id: str = "", instance_id: str | None = None) -> None:
        self.stage = stage
        self.member_id = member_id
        self.instance_id = instance_id
        self.generation = -1
        self.owns: dict[str, list[int]] = {}

    @property
    def subscription(self) -> bytes:
        owned = [TopicPartition(topic=name, partitions=numbers) for name, numbers in self.owns.items()]
        return encode_subscription(ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned))

    def join(self) -> Asked:
        asked = classic_join(self.stage, self.member_id, self.subscription, instance_id=self.instance_id)
        if asked.answers and asked.answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = asked.answer.member_id
            asked = classic_join(self.stage, self.member_id, self.subscription, instance_id=self.instance_id)
        return asked

    def joined(self, asked: Asked, *, assigns: dict[str, list[int]] | None = None) -> None:
        """Take the answer to JoinGroup, and go on with SyncGroup; a leader assigns."""
        assert asked.answer.error_code == ErrorCode.NONE
        self.member_id, self.generation = asked.answer.member_id, asked.answer.generation_id
        assignments = [] if assigns is None else [assignment_for(self.member_id, assigns)]
        synced = classic_sync(self.stage, self.member_id, self.generation, assignments, instance_id=self.instance_id)
        assert synced.answer.error_code == ErrorCode.NONE
        assignment, _ = decode_assignment(synced.answer.assignment)
        self.owns = {each.topic: each.partitions for each in assignment.assigned_partitions}

    def beat(self) -> ErrorCode:
        asked = classic_beat(self.stage, self.member_id, self.generation, instance_id=self.instance_id)
        return asked.error if asked.errors else ErrorCode(asked.answer.error_code)

    def follow(self, shall_own: int) -> None:
        """Do what heartbeats and answers say, until it owns that many partitions."""
        for _ in range(5):
            if self.beat() is ErrorCode.REBALANCE_IN_PROGRESS:
                self.joined(self.join())
        assert sum(map(len, self.owns.values())) == shall_own


def assignment_for(member_id: str, partitions: dict[str, list[int]]) -> SyncGroupRequestAssignment:
    assigned = [TopicPartition(topic=name, partitions=numbers) for name, numbers in partitions.items()]
    data = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned))
    return SyncGroupRequestAssignment(member_id=member_id, assignment=data)
