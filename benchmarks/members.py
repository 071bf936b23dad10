"""Groups of fifty and more cheap members, of the classic and of the consumer protocol (KIP-848)."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Any

from benchmarks.librdkafka import LoadFailedError
from benchmarks.wire_load import RETRY_S, Connection, check, connect, wait_for_coordinator
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.server import RunningServer

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 7, 5, 4, 4
CONSUMER_HEARTBEAT_VERSION = 0
SESSION_TIMEOUT_MS = 30_000
# What a subscription to one topic and the assignment of two partitions are in size; no broker looks into them here.
METADATA = bytes(60)
ASSIGNMENT = bytes(40)
CONSUMER_PAUSE_S = 0.02
"""How often members of the consumer protocol ask what has become of them: the broker's pace would be seconds."""
SETTLE_TIMEOUT_S = 60.0
LEAVING = -1


class GroupOfMembers:
    """A group whose members are driven through one rebalance after the other. Belongs to one event loop."""

    def __init__(self, server: RunningServer, group: str, topic: str, members: int, partitions: int) -> None:
        self.server = server
        self.group = group
        self.topic = topic
        self.members = members
        self.partitions = partitions

    async def rebalance(self, times: int) -> Sequence[float]:
        """Form the group, disturb it so many times, and leave; the seconds of each rebalance."""
        connections = [await connect(self.server) for _ in range(self.members)]
        try:
            await wait_for_coordinator(connections[0], self.group)
            return await asyncio.wait_for(self._rebalance(connections, times), SETTLE_TIMEOUT_S * 2)
        finally:
            for connection in connections:
                connection.close()

    async def _rebalance(self, connections: Sequence[Connection], times: int) -> Sequence[float]:
        raise NotImplementedError


class ClassicGroupOfMembers(GroupOfMembers):
    """The leader joins again; the others learn of it by a heartbeat and follow; all ask for their assignment."""

    async def _rebalance(self, connections: Sequence[Connection], times: int) -> Sequence[float]:
        members = [_ClassicMember(connection, self.group) for connection in connections]
        await asyncio.gather(*(member.get_id() for member in members))
        await _until_stable(members)
        seconds = []
        for _ in range(times):
            started_at = time.perf_counter()
            await asyncio.gather(*(member.follow() for member in members))
            seconds.append(time.perf_counter() - started_at)
            if len({member.generation for member in members}) != 1:
                raise LoadFailedError("the members are in different generations")
        identities = [MemberIdentity(member_id=member.member_id) for member in members]
        left = await connections[0].ask(LeaveGroupRequest(group_id=self.group, members=identities), LEAVE_VERSION)
        check(left.error_code, "LeaveGroup")
        return seconds


async def _until_stable(members: "Sequence[_ClassicMember]") -> None:
    """Join, and live until all are in one generation: the first ones may be of the first members alone.

    Those have to hear of the later ones, as long as there are any: the broker waits for them, half a minute at most.
    """

    async def live(member: _ClassicMember) -> None:
        await member.join_and_sync()
        while len({each.generation for each in members}) > 1:
            if await member.must_join():
                await member.join_and_sync()

    await asyncio.wait_for(asyncio.gather(*(live(member) for member in members)), SETTLE_TIMEOUT_S)


class _ClassicMember:
    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group
        self.member_id = ""
        self.generation = -1
        self._leads = False

    async def get_id(self) -> None:
        while (joined := await self._join()).error_code != ErrorCode.MEMBER_ID_REQUIRED:
            if joined.error_code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                raise LoadFailedError(f"JoinGroup without id was answered with {joined.error_code}")
            await asyncio.sleep(RETRY_S)
        self.member_id = joined.member_id

    async def follow(self) -> None:
        """One rebalance as this member sees it; the leader begins it."""
        if not self._leads:
            while not await self.must_join():
                pass
        await self.join_and_sync()

    async def join_and_sync(self) -> None:
        """Join and get the assignment, again when the next rebalance has begun meanwhile."""
        while True:
            joined = await self._join()
            check(joined.error_code, "JoinGroup")
            self.generation = joined.generation_id
            self._leads = joined.leader == self.member_id
            synced = await self._connection.ask(
                SyncGroupRequest(
                    group_id=self._group,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[
                        SyncGroupRequestAssignment(member_id=each.member_id, assignment=ASSIGNMENT)
                        for each in joined.members
                    ],
                ),
                SYNC_VERSION,
            )
            if synced.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                check(synced.error_code, "SyncGroup")
                return

    async def must_join(self) -> bool:
        request = HeartbeatRequest(group_id=self._group, generation_id=self.generation, member_id=self.member_id)
        answer = await self._connection.ask(request, HEARTBEAT_VERSION)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return True
        check(answer.error_code, "Heartbeat")
        return False

    async def _join(self) -> Any:
        return await self._connection.ask(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=SESSION_TIMEOUT_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
            ),
            JOIN_VERSION,
        )


class ConsumerGroupOfMembers(GroupOfMembers):
    """One member leaves and another one joins; members give up and take what their heartbeats tell them."""

    async def _rebalance(self, connections: Sequence[Connection], times: int) -> Sequence[float]:
        members = [_ConsumerMember(connection, self.group, self.topic) for connection in connections]
        await self._settle(members)
        seconds = []
        for number in range(times):
            started_at = time.perf_counter()
            place = number % len(members)
            await members[place].leave()
            members[place] = _ConsumerMember(connections[place], self.group, self.topic)
            await self._settle(members)
            seconds.append(time.perf_counter() - started_at)
        await asyncio.gather(*(member.leave() for member in members))
        return seconds

    async def _settle(self, members: "Sequence[_ConsumerMember]") -> None:
        """Heartbeats of all until each partition is somebody's and everybody is in the same epoch."""
        done = asyncio.Event()

        def look() -> None:
            epochs = {member.epoch for member in members}
            if len(epochs) == 1 and 0 not in epochs:
                owned = {partition for member in members for partition in member.owned}
                if len(owned) == self.partitions:
                    done.set()

        async def live(member: _ConsumerMember) -> None:
            while not done.is_set():
                await member.heartbeat()
                look()
                # What is to be given up or acknowledged is told at once, as clients do.
                if not member.has_news and not done.is_set():
                    await asyncio.sleep(CONSUMER_PAUSE_S)

        await asyncio.wait_for(asyncio.gather(*(live(member) for member in members)), SETTLE_TIMEOUT_S)


class _ConsumerMember:
    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._connection = connection
        self._group = group
        self._topic = topic
        self._member_id = str(uuid.uuid4())
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self.has_news = True
        self._topics: list[TopicPartitions] = []

    async def heartbeat(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self.epoch,
            topic_partitions=self._topics if self.has_news else None,
        )
        if self.epoch == 0:
            request.rebalance_timeout_ms = SESSION_TIMEOUT_MS
            request.subscribed_topic_names = [self._topic]
            request.topic_partitions = []
        answer = await self._connection.ask(request, CONSUMER_HEARTBEAT_VERSION)
        if answer.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            return
        check(answer.error_code, f"ConsumerGroupHeartbeat: {answer.error_message}")
        self._member_id = answer.member_id or self._member_id
        self.epoch = answer.member_epoch
        self.has_news = answer.assignment is not None
        if answer.assignment is not None:
            self._topics = [
                TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in answer.assignment.topic_partitions
            ]
            self.owned = frozenset(partition for each in self._topics for partition in each.partitions)

    async def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(group_id=self._group, member_id=self._member_id, member_epoch=LEAVING)
        check((await self._connection.ask(request, CONSUMER_HEARTBEAT_VERSION)).error_code, "leaving")
