"""The same consumer-group requests to Kavka and to Apache Kafka 4.3, their answers made comparable.

Kafka 4.3 begins a group with epoch 2 where its first member names topics, 3.9 and Kavka with 1: epochs are told and
shown relative to that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_subscription,
)
from kavka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.wire import Wire

Named = Mapping[str, list[int]]
JOINING: dict[str, Any] = {"rebalance_timeout_ms": 600_000, "owned": {}}
TIME_TO_LOAD_S = 120.0
NOT_SHOWN = re.compile(r"regular expression: .*")
"""Whose words follow: the regular expressions' engine's."""


class Script:
    """One broker's side: what was asked, and its answers, as `transcript`."""

    def __init__(self, broker: RunningServer) -> None:
        self.transcript: list[tuple[Any, ...]] = []
        self.owned: dict[str, list[int]] = {}
        """The assignment that was answered last."""
        self._client = Wire(broker.host, broker.port)
        self._names: dict[bytes, str] = {}
        self._first_epochs: dict[str, int] = {}

    def close(self) -> None:
        self._client.close()

    def know(self, name: str, partitions: int) -> None:
        """Wait for a topic, whose name is shown for its id from now on."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)

        def is_there() -> bool:
            found = self._client.ask(request, 12).topics[0]
            self._names[found.topic_id] = name
            return len(found.partitions) == partitions

        wait_until(is_there, TIME_TO_LOAD_S, f"{name} does not come")

    def topic_ids(self) -> dict[str, bytes]:
        """The ids of the topics that it knows, by name."""
        return {name: topic_id for topic_id, name in self._names.items()}

    def group(self, group_id: str) -> None:
        """Wait until the group's coordinator is there."""

        def ready() -> bool:
            self._client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
            return bool(self.describe(group_id).error_code == ErrorCode.GROUP_ID_NOT_FOUND)

        wait_until(ready, TIME_TO_LOAD_S, f"{group_id} gets no coordinator")

    def beat(
        self, group: str, member: str, epoch: int, *, owned: Named | None = None, version: int = 1, **fields: Any
    ) -> None:
        """ConsumerGroupHeartbeat; positive epochs count from the group's first."""
        if owned is not None:
            ids = self.topic_ids()
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=ids[name], partitions=numbers) for name, numbers in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=self._absolute(group, epoch), **fields
        )
        answer = self._client.ask(request, version)
        if epoch == 0 and answer.error_code == 0 and "subscribed_topic_names" in fields:
            self._first_epochs.setdefault(group, answer.member_epoch - 1)
        told = None
        if answer.assignment is not None:
            assigned = answer.assignment.topic_partitions
            self.owned = {self._names.get(each.topic_id, "?"): sorted(each.partitions) for each in assigned}
            told = sorted((name, len(numbers)) for name, numbers in self.owned.items())
        self.transcript.append(
            (
                f"{group}: {member} beats in {epoch}",
                ErrorCode(answer.error_code).name,
                self._words(group, answer.error_message),
                answer.member_id if member else len(answer.member_id or ""),
                self._relative(group, answer.member_epoch),
                answer.heartbeat_interval_ms,
                told,
            )
        )

    def show(self, group: str) -> None:
        """ConsumerGroupDescribe."""
        found = self.describe(group)
        members = sorted(
            (
                member.member_id,
                member.instance_id,
                self._relative(group, member.member_epoch),
                sorted(member.subscribed_topic_names),
                member.subscribed_topic_regex,
                member.member_type,
                sum(len(each.partitions) for each in member.assignment.topic_partitions),
                sum(len(each.partitions) for each in member.target_assignment.topic_partitions),
            )
            for member in found.members
        )
        epochs = [self._relative(group, epoch) for epoch in (found.group_epoch, found.assignment_epoch)]
        error = (ErrorCode(found.error_code).name, found.error_message)
        self.transcript.append((f"{group} is shown", *error, found.group_state, epochs, found.assignor_name, members))

    def join(self, group: str, member: str, *, protocol_type: str = "consumer", topic: str = "t") -> None:
        """JoinGroup of a classic member."""
        metadata = encode_subscription(ConsumerProtocolSubscription(topics=[topic]))
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=600_000,
            rebalance_timeout_ms=600_000,
            member_id=member,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = self._client.ask(request, 9)
        self.transcript.append(
            (
                f"{group}: {member} joins",
                ErrorCode(answer.error_code).name,
                self._relative(group, answer.generation_id),
                (answer.protocol_type, answer.protocol_name, answer.leader, answer.skip_assignment),
                bool(answer.member_id),
                len(answer.members),
            )
        )

    def sync(self, group: str, member: str, generation: int, *, name: str = "range") -> None:
        """SyncGroup of a classic member."""
        request = SyncGroupRequest(
            group_id=group,
            generation_id=self._absolute(group, generation),
            member_id=member,
            protocol_type="consumer",
            protocol_name=name,
            assignments=[],
        )
        answer = self._client.ask(request, 5)
        assigned = decode_assignment(answer.assignment)[0].assigned_partitions if answer.assignment else []
        self.transcript.append(
            (
                f"{group}: {member} syncs in {generation}",
                ErrorCode(answer.error_code).name,
                (answer.protocol_type, answer.protocol_name),
                [(each.topic, len(each.partitions)) for each in assigned],
            )
        )

    def classic_beat(self, group: str, member: str, generation: int) -> None:
        request = HeartbeatRequest(group_id=group, generation_id=self._absolute(group, generation), member_id=member)
        code = ErrorCode(self._client.ask(request, 4).error_code).name
        self.transcript.append((f"{group}: {member} beats, classic, in {generation}", code))

    def commit(self, group: str, member: str, epoch: int, *, version: int = 9, index: int = 0) -> None:
        """OffsetCommit of one partition, whose index is not noted."""
        partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=None)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=self._absolute(group, epoch),
            member_id=member,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        code = ErrorCode(self._client.ask(request, version).topics[0].partitions[0].error_code).name
        self.transcript.append((f"{group}: {member} commits in {epoch}, v{version}", code))

    def describe(self, group: str) -> Any:
        """The group as ConsumerGroupDescribe has it; not noted."""
        request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
        return self._client.ask(request, 1).groups[0]

    def _absolute(self, group: str, epoch: int) -> int:
        return epoch + self._first_epochs.get(group, 0) if epoch > 0 else epoch

    def _relative(self, group: str, epoch: int) -> int:
        return epoch - self._first_epochs.get(group, 0) if epoch > 0 else epoch

    def _words(self, group: str, text: str | None) -> str | None:
        if text is None:
            return None
        text = re.sub(r"\((\d+)\)", lambda found: f"({self._relative(group, int(found[1]))})", text)
        return NOT_SHOWN.sub("regular expression", text)
