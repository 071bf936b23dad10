"""A group shard on stage, asked about offsets in few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kavka.coordinator.group.group import Client, GroupType, OffsetExpiry
from kavka.coordinator.group.history import History
from kavka.coordinator.group.shard import GroupShard
from kavka.coordinator.runtime.result import CoordinatorRecord, Producer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataKey
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.coordinator_stage import Asked, Stage

GROUP = "readers"
TOPIC = "events"
MINUTE_MS = 60_000
CHECK_INTERVAL_MS = 600_000

Wanted = Sequence[tuple[str, int]]
Offsets = Mapping[tuple[str, int], int]


def client(version: int) -> Client:
    return Client("a-client", "/10.0.0.9", version)


class OffsetStage(Stage[GroupShard]):
    """`put_offsets`, `txn_commit`, ... put requests to the shard; offsets are given as {(topic, partition): offset}."""

    def __init__(self, settings: Mapping[str, str] | None = None, topics: Sequence[str] = (TOPIC, "others")) -> None:
        super().__init__(GroupShard, settings)
        for name in topics:
            self.topics.add(name, partitions=10)
        self.topics_changed()

    def put_offsets(
        self,
        offsets: Offsets,
        group: str = GROUP,
        *,
        metadata: str | Mapping[int, str] | None = None,
        epoch: int = -1,
        member: str = "",
        generation: int = -1,
        version: int = 8,
        **more: Any,
    ) -> Asked:
        timestamp = more.pop("commit_timestamp", -1)
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        committed_metadata=metadata[partition] if isinstance(metadata, Mapping) else metadata,
                        commit_timestamp=timestamp,
                    )
                ],
            )
            for (topic, partition), offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group, member_id=member, generation_id_or_member_epoch=generation, topics=topics, **more
        )
        return self.ask(lambda shard, reply: shard.commit(request, client(version), reply))

    def txn_commit(
        self,
        offsets: Offsets,
        producer: Producer,
        group: str = GROUP,
        *,
        member: str = "",
        generation: int = -1,
        metadata: str | None = None,
    ) -> Asked:
        topics = [
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for (topic, partition), offset in offsets.items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id="a-transaction",
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id=generation,
            member_id=member,
            topics=topics,
        )
        return self.ask(lambda shard, reply: shard.txn_commit(request, client(3), reply))

    def ask_offsets(
        self,
        wanted: Wanted | None,
        group: str = GROUP,
        *,
        stable: bool = False,
        member: str | None = None,
        member_epoch: int = -1,
    ) -> Asked:
        topics = None
        if wanted is not None:
            topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[index]) for name, index in wanted]
        asked = OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=member_epoch, topics=topics)
        return self.ask(lambda shard, reply: shard.fetch(asked, reply, require_stable=stable))

    def offsets(self, group: str = GROUP, *, stable: bool = False) -> dict[tuple[str, int], int]:
        """All that the group has committed, as a client gets to see it."""
        answer = self.ask_offsets(None, group, stable=stable).answer
        return {
            (topic.name, part.partition_index): part.committed_offset
            for topic in answer.topics
            for part in topic.partitions
        }

    def delete_offsets(self, wanted: Wanted, group: str = GROUP) -> Asked:
        topics = [
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
            for name, index in wanted
        ]
        request = OffsetDeleteRequest(group_id=group, topics=topics)
        return self.ask(lambda shard, reply: shard.delete_offsets(request, reply))

    def delete_groups(self, *group_ids: str) -> dict[str, ErrorCode]:
        results = self.ask(lambda shard, reply: shard.delete_groups(group_ids, reply)).answer
        return {each.group_id: ErrorCode(each.error_code) for each in results}

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[str]:
        listed = self.ask(lambda shard, reply: shard.list_groups(states, types, reply)).answer
        return [each.group_id for each in listed]

    def expire(self) -> None:
        """Let the next check of the expiry come, with all its slices."""
        self.advance(2 * CHECK_INTERVAL_MS)

    def keys(self) -> list[tuple[Any, ...]]:
        """The keys of tombstones in the log, in order."""
        return [tuple(vars(each.key).values())[:-1] for each in self.records() if each.value is None]


def codes(response: Any) -> list[ErrorCode]:
    """The error codes of all partitions of a response."""
    return [ErrorCode(part.error_code) for topic in response.topics for part in topic.partitions]


class FakeGroup:
    """A group of which a test says what it answers."""

    def __init__(
        self,
        group_id: str = GROUP,
        *,
        refuse: ErrorCode | None = None,
        subscribed: Sequence[str] = (),
        empty: bool = False,
        base_timestamp_ms: Callable[[int], int] | None = None,
        state: str = "Stable",
        kind: GroupType = GroupType.CONSUMER,
        protocol_type: str = "consumer",
    ) -> None:
        self.group_id = group_id
        self.type = kind
        self.history = History()
        self.state_name = state
        self.protocol_type = protocol_type
        self.is_empty = empty
        self.member_count = 0 if empty else 1
        self.is_small = True
        self.refuse = refuse
        self.subscribed = set(subscribed)
        self.base_timestamp_ms = base_timestamp_ms
        self.asked: list[tuple[Any, ...]] = []

    def _answer(self, *asked: Any) -> None:
        self.asked.append(asked)
        if self.refuse is not None:
            raise BrokerError(self.refuse)

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> None:
        self._answer("commit", member_id, group_instance_id, generation, transactional, api_version)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._answer("fetch", member_id, member_epoch)

    def validate_delete(self) -> None:
        self._answer("delete")

    def validate_offset_delete(self) -> None:
        self._answer("offset delete")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offset_expiry(self, now_ms: int) -> OffsetExpiry | None:
        base = self.base_timestamp_ms
        return None if base is None else OffsetExpiry(base, self.is_subscribed_to)

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]
