"""Which requests of a group's members the thread runs that has read them, and which it hands on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.coordinator.group.classic import group as classic
from kavka.coordinator.group.consumer import group as consumer
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kavka.protocol.schema import Request, schema_of
from tests.support.group_core import GroupCore
from tests.support.network_stage import SIZE

VERSIONS = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 0, ConsumerGroupHeartbeatRequest: 0}
ANSWERS = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse,
}


@pytest.fixture
def core(tmp_path: Path) -> Iterator[GroupCore]:
    core = GroupCore(tmp_path, "group.initial.rebalance.delay.ms=0", inline=True)
    yield core
    core.close()


class Client:
    """One connection. `handed_on`: whether its last request was left to the I/O threads."""

    def __init__(self, core: GroupCore) -> None:
        self.core = core
        core.connect()
        self._connection, self._socket = core.connection, core.socket
        self._asked: type[Request] = JoinGroupRequest
        self.handed_on = False

    def ask(self, request: Request) -> Any:
        """The answer; None if there is none yet."""
        kind = self._asked = type(request)
        key = schema_of(kind).key
        assert key is not None
        frame = encode_request_header(key, VERSIONS[kind], 1, "member") + encode(request, VERSIONS[kind])
        stage = self.core.stage
        self._socket.input += SIZE.pack(len(frame)) + frame
        stage.thread._on_readable(self._connection)
        self.handed_on = stage.queue.qsize() > 0
        stage.settle()
        return self.answer()

    def answer(self) -> Any:
        """What has come since, for the last request."""
        data = bytes(self._socket.taken[SIZE.size :])
        self._socket.taken.clear()
        if not data:
            return None
        key, version = schema_of(self._asked).key, VERSIONS[self._asked]
        assert key is not None
        _, position = decode_response_header(key, version, data)
        return decode(ANSWERS[self._asked], version, data, position)


def join(member_id: str = "", group_id: str = "g") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def sync(joined: JoinGroupResponse) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[]
    )


def given_id(client: Client) -> str:
    member_id: str = client.ask(join()).member_id
    return member_id


def test_members_of_a_small_group_join_and_sync_on_the_thread_that_has_read_it(core: GroupCore) -> None:
    client = Client(core)
    member_id = given_id(client)
    assert client.handed_on, "nothing is known of the client yet"
    for _ in range(3):
        joined = client.ask(join(member_id))
        assert (joined.error_code, joined.leader, client.handed_on) == (ErrorCode.NONE, member_id, False)
        assert client.ask(sync(joined)).error_code == ErrorCode.NONE
    assert not client.handed_on


def test_who_waits_for_others_is_answered_by_the_thread_that_has_read_the_last_one(core: GroupCore) -> None:
    first, second = Client(core), Client(core)
    first_id = given_id(first)
    first.ask(sync(first.ask(join(first_id))))
    second_id = given_id(second)
    assert first.ask(join(first_id)) is None, "the leader begins a rebalance"
    joined = second.ask(join(second_id))

    assert not first.handed_on
    assert not second.handed_on
    assert joined.generation_id == first.answer().generation_id == 2


def test_a_group_that_has_grown_is_left_to_the_io_threads(core: GroupCore, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(core)
    member_id = given_id(client)
    joined = client.ask(join(member_id))
    client.ask(sync(joined))
    monkeypatch.setattr(classic, "SMALL_GROUP_MEMBERS", 0)

    joined = client.ask(join(member_id))
    assert joined.error_code == ErrorCode.NONE
    assert client.handed_on
    assert client.ask(sync(joined)).error_code == ErrorCode.NONE
    assert client.handed_on


def test_while_a_log_moves_to_another_directory_groups_are_left_to_the_io_threads(core: GroupCore) -> None:
    """The coordinator's log may be the one, and its lock be held over fsyncs."""
    client = Client(core)
    member_id = given_id(client)
    joined = client.ask(join(member_id))
    moving: Any = core.services.logs.moves.moving
    beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=member_id)
    for is_moving in (True, False):
        if is_moving:
            moving["visits", 0] = core.log("visits")
        else:
            moving.clear()
        assert client.ask(sync(joined)).error_code == ErrorCode.NONE
        assert client.handed_on is is_moving
        assert client.ask(beat).error_code == ErrorCode.NONE
        assert client.handed_on is is_moving


@pytest.mark.parametrize(("length", "handed_on"), [(900, False), (1025, True)])
def test_of_groups_with_overlong_names_nothing_is_remembered(core: GroupCore, length: int, handed_on: bool) -> None:
    client = Client(core)
    member_id = client.ask(join(group_id="n" * length)).member_id
    assert client.ask(join(member_id, "n" * length)).error_code == ErrorCode.NONE
    assert client.handed_on is handed_on


def test_what_is_known_of_one_group_says_nothing_of_another(core: GroupCore) -> None:
    client = Client(core)
    client.ask(join(group_id="gg"))
    client.ask(join(group_id="gg"))
    assert not client.handed_on

    for group_id in ("g", "ggg", "gh"):
        client.ask(join(group_id=group_id))
        assert client.handed_on
        client.ask(join(group_id=group_id))
        assert not client.handed_on


@pytest.mark.parametrize("limit", ["SMALL_GROUP_MEMBERS", "SMALL_GROUP_TOPICS", "SMALL_GROUP_PARTITIONS"])
def test_heartbeats_of_a_small_consumer_group_are_run_by_the_thread_that_has_read_them(
    core: GroupCore, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    client = Client(core)

    def beat(epoch: int, member_id: str = "") -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id="c", member_id=member_id, member_epoch=epoch)
        if not epoch:
            request.rebalance_timeout_ms = 30_000
            request.subscribed_topic_names = ["visits"]
            request.topic_partitions = []
        response: ConsumerGroupHeartbeatResponse = client.ask(request)
        assert response.error_code == ErrorCode.NONE, response.error_message
        return response

    member_id = beat(0).member_id or ""
    assert client.handed_on
    beat(1, member_id)
    assert not client.handed_on

    monkeypatch.setattr(consumer, limit, 0)
    beat(1, member_id)
    assert client.handed_on
