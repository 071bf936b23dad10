"""Step 5: two members of a group share the partitions of a topic: `python -m examples.tour.rebalance`."""

from typing import Any, Final

from examples.tour.connection import Connection, require, wait_until
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC: Final = "orders"
PARTITIONS: Final = 4
GROUP: Final = "shop"
COLUMN_WIDTH: Final = 46
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 7, 3, 3


class Member:
    """A member of the group on a connection of its own; what it does is printed in its column."""

    def __init__(self, name: str, column: int) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self._column = column
        self._connection = Connection()
        self._join: JoinGroupRequest | None = None

    def say(self, text: str) -> None:
        print(f"{'':{COLUMN_WIDTH * self._column}}{text}")

    def ask_to_join(self) -> None:
        """Send JoinGroup; the answer comes when the group has heard of all its members."""
        subscription = encode_subscription(ConsumerProtocolSubscription(topics=[TOPIC]), 0)
        self._join = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        self._connection.send(self._join, JOIN_VERSION)
        self.say(f"JoinGroup as {self.name if self.member_id else 'somebody new'}")

    def joined(self) -> list[str]:
        """Wait for the answer; the ids of all members if this one is the leader, else none."""
        assert self._join is not None
        answer = self._connection.receive(self._join, JOIN_VERSION)
        self.member_id = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.say(f"  MEMBER_ID_REQUIRED: your member id is {self.name}")
            return []
        require(answer.error_code)
        self.generation = answer.generation_id
        is_leader = answer.leader == self.member_id
        ids = [member.member_id for member in answer.members]
        self.say(f"  generation {self.generation}, {f'leader of {len(ids)}' if is_leader else 'a follower'}")
        return ids

    def sync(self, shares: dict[str, list[int]]) -> None:
        """Send SyncGroup, with everybody's partitions if this is the leader, and wait for one's own."""
        assignments = [
            SyncGroupRequestAssignment(member_id=member_id, assignment=_assignment(partitions))
            for member_id, partitions in shares.items()
        ]
        self.say(f"SyncGroup{' with the assignment' if shares else ''}")
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.member_id, assignments=assignments
        )
        answer = self._connection.ask(request, SYNC_VERSION)
        require(answer.error_code)
        assigned, _ = decode_assignment(answer.assignment)
        self.say(f"  partitions {', '.join(str(number) for number in assigned.assigned_partitions[0].partitions)}")

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.member_id)
        return ErrorCode(self._connection.ask(request, HEARTBEAT_VERSION).error_code)

    def heartbeats_until(self, expected: ErrorCode) -> None:
        """What a consumer does every three seconds; here again and again until the answer is another one."""
        wait_until(lambda: self.heartbeat() == expected)
        self.say("Heartbeat")
        self.say(f"  {expected.name}")

    def commit(self, partition: int, offset: int) -> None:
        committed = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[committed])],
        )
        self.say(f"OffsetCommit: partition {partition} read up to {offset}")
        answer = self._connection.ask(request, 7)
        self.say(f"  {ErrorCode(answer.topics[0].partitions[0].error_code).name}")

    def leave(self) -> None:
        self.say("LeaveGroup")
        request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=self.member_id)])
        answer: Any = self._connection.ask(request, 3)
        self.say(f"  {ErrorCode(answer.error_code).name}")

    def close(self) -> None:
        self._connection.__exit__(None, None, None)


def _assignment(partitions: list[int]) -> bytes:
    assigned = [TopicPartition(topic=TOPIC, partitions=partitions)]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)


def enter(member: Member) -> None:
    """The first JoinGroup of a new member only gets it a member id (KIP-394)."""
    member.ask_to_join()
    member.joined()
    member.ask_to_join()


def play(a: Member, b: Member) -> None:
    print(f"{'member A':{COLUMN_WIDTH}}member B")
    enter(a)
    a.joined()
    a.sync({a.member_id: [0, 1, 2, 3]})
    a.commit(0, 17)
    print()
    enter(b)
    a.heartbeats_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.ask_to_join()
    a.joined()
    b.joined()
    a.sync({a.member_id: [0, 1], b.member_id: [2, 3]})
    b.sync({})
    a.heartbeats_until(ErrorCode.NONE)
    print()
    b.leave()
    a.heartbeats_until(ErrorCode.REBALANCE_IN_PROGRESS)
    a.ask_to_join()
    a.joined()
    a.sync({a.member_id: [0, 1, 2, 3]})
    a.leave()


def main() -> None:
    with Connection() as connection:
        connection.make_topic(TOPIC, PARTITIONS)
        connection.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
    a, b = Member("A", 0), Member("B", 1)
    try:
        play(a, b)
    finally:
        a.close()
        b.close()


if __name__ == "__main__":
    main()
