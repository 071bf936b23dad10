"""Members that do nothing but commit, one commit in flight each."""

import asyncio
import struct
import time
from itertools import count

from benchmarks.librdkafka import LoadFailedError
from benchmarks.wire_load import Connection, check, connect, frame_of, run, wait_for_coordinator
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.server import RunningServer

COMMIT_VERSION = 8
SESSION_TIMEOUT_MS = 30_000
OFFSET = struct.Struct(">q")
# Found in the encoded request, and replaced there.
PLACE_OF_OFFSET = 0x0102030405060708
JOIN_ATTEMPTS = 200
_runs = count(1)


def commit_offsets(server: RunningServer, topic: str, groups: int, commits: int) -> float:
    """So many commits, spread over groups of one member each; the seconds from the first request to the last answer."""
    return run(_commit_offsets(server, topic, groups, commits))


async def _commit_offsets(server: RunningServer, topic: str, groups: int, commits: int) -> float:
    number = next(_runs)
    members = [await _Committer.join(server, f"commits-{number}-{index}", topic) for index in range(groups)]
    try:
        started_at = time.perf_counter()
        await asyncio.gather(*(member.commit(commits // groups) for member in members))
        return time.perf_counter() - started_at
    finally:
        for member in members:
            await member.leave()


class _Committer:
    """The only member of a group; commits the next offset when the last commit is answered."""

    def __init__(self, connection: Connection, group: str, topic: str, member_id: str, generation: int) -> None:
        self._connection = connection
        self._group = group
        self._member_id = member_id
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=PLACE_OF_OFFSET, committed_leader_epoch=0, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        self._frame = bytearray(frame_of(request, COMMIT_VERSION))
        self._place = self._frame.index(OFFSET.pack(PLACE_OF_OFFSET))
        self._expected = b""
        self._left = 0
        self._done: asyncio.Future[None] | None = None

    @classmethod
    async def join(cls, server: RunningServer, group: str, topic: str) -> "_Committer":
        connection = await connect(server)
        await wait_for_coordinator(connection, group)
        # Before v4 a member joins with one request.
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        for _ in range(JOIN_ATTEMPTS):
            joined = await connection.ask(request, 3)
            if joined.error_code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                break
            await asyncio.sleep(0.05)
        check(joined.error_code, "JoinGroup")
        synced = await connection.ask(
            SyncGroupRequest(
                group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[]
            ),
            3,
        )
        check(synced.error_code, "SyncGroup")
        return cls(connection, group, topic, joined.member_id, joined.generation_id)

    async def commit(self, commits: int) -> None:
        self._left = commits
        self._done = asyncio.get_running_loop().create_future()
        self._send()
        await self._done

    async def leave(self) -> None:
        identity = MemberIdentity(member_id=self._member_id)
        await self._connection.ask(LeaveGroupRequest(group_id=self._group, members=[identity]), 3)
        self._connection.close()

    def _send(self) -> None:
        OFFSET.pack_into(self._frame, self._place, self._left)
        # uvloop may keep a bytearray that it could not send at once.
        self._connection.send(bytes(self._frame), self._answered)

    def _answered(self, answer: bytes) -> None:
        """All answers are the same bytes; the first one is looked at."""
        assert self._done is not None
        if answer != self._expected:
            # The partition's error code, before the tags of partition, topic and response.
            if answer[-5:-3] != b"\0\0" or self._expected:
                self._done.set_exception(LoadFailedError(f"OffsetCommit was answered with {answer.hex()}"))
                return
            self._expected = answer
        self._left -= 1
        if self._left:
            self._send()
        else:
            self._done.set_result(None)
