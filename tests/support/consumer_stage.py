"""A shard on stage, with groups of the consumer protocol and the members that a test plays.

stage = ConsumerStage()
stage.topics.add("t", partitions=3)
a = stage.joined("a", ["t"])
a.beat()
assert a.owns == {("t", 0), ("t", 1), ("t", 2)}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.coordinator.group.consumer.state import LoggedState
from kavka.coordinator.group.group import Client, Viewer
from kavka.coordinator.group.shard import GroupShard
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.support.coordinator_stage import Asked, Stage

GROUP = "g"
REBALANCE_TIMEOUT_MS = 30_000
Named = set[tuple[str, int]]
"""Partitions by topic name."""


class ConsumerStage(Stage[GroupShard]):
    def __init__(self, settings: Mapping[str, str] | None = None, **others: Any) -> None:
        super().__init__(
            GroupShard,
            {"group.consumer.migration.policy": "bidirectional", **(settings or {})},
            **others,
        )

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        group = self.shard.groups.get(group_id)
        assert isinstance(group, ConsumerGroup), f"{group_id} is {group}"
        return group

    @property
    def logged(self) -> LoggedState:
        return self.group().logged

    def heartbeat(
        self, member_id: str, epoch: int, *, version: int = 1, viewer: Viewer | None = None, **fields: Any
    ) -> Asked:
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": GROUP, "member_id": member_id, "member_epoch": epoch, **fields}
        )
        client = Client(f"client-{member_id}", "/127.0.0.1", version, viewer)
        return self.ask(lambda shard, reply: shard.consumer_heartbeat(request, client, reply))

    def joined(self, member_id: str, topics: Iterable[str] = (), **fields: Any) -> PlayedMember:
        """A member that has joined."""
        member = PlayedMember(self, member_id, topics, **fields)
        member.join()
        return member

    def settle(self, *members: PlayedMember, rounds: int = 12) -> None:
        """Every member sends heartbeats, until all have what they shall have."""
        for _ in range(rounds):
            for member in members:
                member.beat()
        assert self.group().state_name == "Stable", self.logged.members


class PlayedMember:
    """A consumer as a client plays it: it does what it is told, and says what it owns.

    `hidden`: topics that it may not describe; None for one whose rights nobody asks for.
    `epoch` is 0 when it is not in the group. `owns`: what it consumes from now, by topic name. `says_all`: an answer
    was lost, so the next heartbeat says everything, to be told everything, as clients do.
    """

    def __init__(
        self,
        stage: ConsumerStage,
        member_id: str,
        topics: Iterable[str] = (),
        *,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        hidden: set[str] | None = None,
    ) -> None:
        self.hidden = hidden
        self.stage = stage
        self.member_id = member_id
        self.topics = list(topics)
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        self.owned: dict[bytes, set[int]] = {}
        self.told: dict[bytes, set[int]] | None = None
        self.says_all = False

    @property
    def owns(self) -> Named:
        return {
            (self.stage.topics.name_of(topic_id) or topic_id.hex(), number)
            for topic_id, numbers in self.owned.items()
            for number in numbers
        }

    @property
    def viewer(self) -> Viewer | None:
        hidden = self.hidden
        return None if hidden is None else Viewer(f"User:{self.member_id}", lambda name: name not in hidden)

    def join(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Join, or join anew with empty hands. Fails the test if it is refused."""
        self.owned, self.told, self.epoch = {}, None, 0
        asked = self.send(full=True, **fields)
        response: ConsumerGroupHeartbeatResponse = asked.answer
        self.take(response)
        return response

    def beat(
        self, *, full: bool = False, obeys: bool = True, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse | ErrorCode:
        """A heartbeat, and what follows from its answer: a member that is fenced gives up all and joins anew."""
        asked = self.send(full=full, **fields)
        code = asked.error if asked.errors else ErrorCode(asked.answer.error_code)
        if code is not ErrorCode.NONE:
            if code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                self.owned, self.told, self.epoch = {}, None, 0
            return code
        response: ConsumerGroupHeartbeatResponse = asked.answer
        self.take(response, obeys=obeys)
        return response

    def send(self, *, full: bool = False, **fields: Any) -> Asked:
        """The request alone; what is answered changes nothing here."""
        said: dict[str, Any] = {
            "instance_id": self.instance_id,
            "topic_partitions": [
                TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in self.owned.items()
                if numbers
            ],
        }
        if full or self.says_all or self.epoch == 0:
            said |= {
                "rebalance_timeout_ms": self.rebalance_timeout_ms,
                "subscribed_topic_names": self.topics,
                "subscribed_topic_regex": self.regex,
                "server_assignor": self.assignor,
            }
        return self.stage.heartbeat(self.member_id, self.epoch, viewer=self.viewer, **{**said, **fields})

    def take(self, response: ConsumerGroupHeartbeatResponse, *, obeys: bool = True) -> None:
        """Remember what was answered, and do it unless it takes its time."""
        self.epoch = response.member_epoch
        self.says_all = False
        if response.assignment is not None:
            self.told = {each.topic_id: set(each.partitions) for each in response.assignment.topic_partitions}
        if obeys:
            self.obey()

    def obey(self) -> None:
        """Own what it was told to own, and nothing else."""
        if self.told is not None:
            self.owned, self.told = self.told, None

    def leave(self, epoch: int = -1) -> Asked:
        self.owned, self.told, self.epoch = {}, None, 0
        return self.stage.heartbeat(self.member_id, epoch, instance_id=self.instance_id)


def facts(logged: LoggedState) -> dict[str, Any]:
    """All that a log says of a group, and all that is counted from it, to be compared."""
    logged.count_anew()
    return {name: getattr(logged, name) for name in LoggedState.__slots__}
