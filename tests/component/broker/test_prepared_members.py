"""The short ways of members of classic groups: the same answers, and the same log, as by the ordinary way."""

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.requests.prepared_member import RepeatedHeartbeats, RepeatedWaits
from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.services import Services
from kavka.broker.settings.dynamic_config import DynamicConfig
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern
from kavka.coordinator.group.classic import joining
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kavka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kavka.protocol.schema import Request, schema_of
from tests.support.broker_handlers import BROKER_ID
from tests.support.group_core import OFFSETS, GroupCore
from tests.support.network_stage import SIZE
from tests.support.prepared_ways import watch_short_ways

ANSWERS: dict[type[Request], Any] = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
}
NEWEST = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}
AT_ONCE = "group.initial.rebalance.delay.ms=0"


def key_of(kind: type[Request]) -> int:
    key = schema_of(kind).key
    assert key is not None
    return key


class Pair:
    """Two brokers that are asked the same: one that prepares, and one that takes the ordinary way."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.short = GroupCore(directory / "short", AT_ONCE, inline=True)
        self.ordinary = GroupCore(directory / "ordinary", AT_ONCE, prepares=False)
        self._ids = {core: count() for core in self.cores}
        self._asked = self.short
        monkeypatch.setattr(joining, "uuid4", lambda: f"id-{next(self._ids[self._asked])}")

    @property
    def cores(self) -> tuple[GroupCore, GroupCore]:
        return self.short, self.ordinary

    def run(self, act: Any) -> list[Any]:
        """`act(core)` on either, and then what both have left to do."""
        outcomes = []
        for core in self.cores:
            self._asked = core
            outcomes.append(act(core))
            core.stage.settle()
        return outcomes

    def check_logs(self) -> None:
        assert self.short.log_bytes(OFFSETS, 0) == self.ordinary.log_bytes(OFFSETS, 0)


class Member:
    """One member, and its connections to both brokers."""

    def __init__(self, pair: Pair, *, version: int = 9, group_id: str = "g") -> None:
        self._pair = pair
        self._ends = pair.run(lambda core: core.stage.connect())
        self._version = version
        self._correlation_id = 0
        self._waiting: list[tuple[type[Request], int]] = []
        self.group_id = group_id
        self.member_id = ""
        self.generation = -1
        self.joined: JoinGroupResponse | None = None

    def ask(self, *requests: Request) -> list[Any]:
        """All that has come back to this member when both brokers are at rest; the same from either."""
        for request in requests:
            self._send(request)
        return self.answers()

    def _send(self, request: Request) -> None:
        kind = type(request)
        self._correlation_id += 1
        version = min(self._version, NEWEST[kind])
        self._waiting.append((kind, version))
        frame = encode_request_header(key_of(kind), version, self._correlation_id, "member") + encode(request, version)
        ends = dict(zip(self._pair.cores, self._ends, strict=True))

        def send(core: GroupCore) -> None:
            ends[core][1].input += SIZE.pack(len(frame)) + frame

        self._pair.run(send)

    def answers(self) -> list[Any]:
        short, ordinary = (bytes(socket.taken) for _, socket in self._ends)
        assert short == ordinary
        for _, socket in self._ends:
            socket.taken.clear()
        answers = []
        while short:
            size = SIZE.unpack_from(short)[0] + SIZE.size
            answers.append(self._decoded(short[SIZE.size : size]))
            short = short[size:]
        return answers

    def _decoded(self, data: bytes) -> Any:
        kind, version = self._waiting.pop(0)
        _, position = decode_response_header(key_of(kind), version, data)
        answer = decode(ANSWERS[kind], version, data, position)
        if isinstance(answer, JoinGroupResponse):
            self.member_id = answer.member_id
            if not answer.error_code:
                self.generation, self.joined = answer.generation_id, answer
        return answer

    def join(self, metadata: bytes = b"topics") -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )

    def sync(self, generation: int | None = None) -> SyncGroupRequest:
        leads = self.joined is not None and self.joined.leader == self.member_id
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=each.member_id.encode())
                for each in (self.joined.members if leads and self.joined is not None else ())
            ],
        )

    def beat(self, generation: int | None = None) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id,
        )

    def leave(self) -> LeaveGroupRequest:
        if self._version < 3:
            return LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id, members=[])
        return LeaveGroupRequest(group_id=self.group_id, members=[MemberIdentity(member_id=self.member_id)])


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    made = Pair(tmp_path, monkeypatch)
    yield made
    for core in made.cores:
        core.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, RepeatedWaits)


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, RepeatedHeartbeats)


def rebalance(members: list[Member]) -> None:
    """All join, the first of them first; then all ask for what they are assigned, the first last."""
    for member in members:
        # Before v4 who is new waits for its id.
        if member.member_id:
            member.ask(member.join())
    for member in members:
        member.answers()
    for member in reversed(members):
        member.ask(member.sync())
    for member in members:
        member.answers()


def a_group(pair: Pair, members: int, **fields: Any) -> list[Member]:
    """One that has been through some generations, so that all of them are known by what they ask."""
    group = [Member(pair, **fields) for _ in range(members)]
    for member in group:
        member.ask(member.join())
    for _ in range(4):
        rebalance(group)
    return group


@pytest.mark.parametrize("version", [0, 1, 3, 4, 5, 6, 7, 8, 9])
def test_members_that_join_again_take_the_short_way_and_get_the_same(
    pair: Pair, waits: list[bool], beats: list[bool], version: int
) -> None:
    group = a_group(pair, 3, version=version)
    generation = group[0].generation
    waits.clear()
    for number in range(3):
        rebalance(group)
        assert {member.generation for member in group} == {generation + number + 1}
        assert [member.ask(member.beat())[0].error_code for member in group] == [0, 0, 0]

    assert waits
    assert all(waits)
    assert beats == [True] * 6, "the first heartbeat of each is learnt from"
    pair.check_logs()


def test_a_member_that_waits_is_answered_by_whoever_ends_the_wait(pair: Pair, waits: list[bool]) -> None:
    first, second, third = a_group(pair, 3)
    waits.clear()

    assert first.ask(first.join()) == []
    assert second.ask(second.join()) == []
    assert [each.error_code for each in third.ask(third.join())] == [0]
    assert [len(each.members) for each in first.answers()] == [3]
    assert [len(each.members) for each in second.answers()] == [0]
    assert waits == [True, True, True]


def test_a_request_behind_one_that_waits_runs_and_is_answered_after_it(
    pair: Pair, waits: list[bool], beats: list[bool]
) -> None:
    first, second = a_group(pair, 2)
    first.ask(first.beat())
    waits.clear()

    assert first.ask(first.join(), first.beat()) == []
    second.ask(second.join())

    joined, beat = first.answers()
    assert joined.error_code == ErrorCode.NONE
    assert beat.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert (waits, beats) == ([True, True], [True])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_members_ask_is_answered_as_by_the_ordinary_way(
    pair: Pair, waits: list[bool], beats: list[bool], seed: int
) -> None:
    chance = random.Random(seed)
    members = [Member(pair, version=chance.choice((3, 5, 7, 9, 9))) for _ in range(4)]
    for _ in range(400):
        member = chance.choice(members)
        match chance.randrange(20):
            case 0 | 1 | 2 | 3 | 4 | 5:
                member.ask(member.join())
            case 6:
                member.ask(member.join(chance.choice((b"topics", b"others", b"more of them"))))
            case 7 | 8 | 9 | 10 | 11 | 12:
                member.ask(member.sync())
            case 13:
                member.ask(member.sync(member.generation + 1))
            case 14 | 15 | 16:
                member.ask(member.beat())
            case 17:
                member.ask(member.beat(member.generation - 1))
            case 18:
                member.ask(member.join(), member.sync(), member.beat())
            case _:
                if chance.random() < 0.3:
                    member.ask(member.leave())
                    member.member_id = ""
        for each in members:
            each.answers()

    assert {True, False} == set(waits)
    assert True in beats
    pair.check_logs()


def test_a_session_timeout_that_is_not_allowed_any_more_is_refused(pair: Pair, waits: list[bool]) -> None:
    (member,) = a_group(pair, 1)
    waits.clear()
    for core in pair.cores:
        core.services.config = DynamicConfig(core.rig.broker_config("group.max.session.timeout.ms=20000"), BROKER_ID)

    assert [each.error_code for each in member.ask(member.join())] == [ErrorCode.INVALID_SESSION_TIMEOUT]
    assert waits == [True]


def test_nothing_is_run_by_rights_that_are_gone(tmp_path: Path, waits: list[bool], beats: list[bool]) -> None:
    def made(services: Services) -> AclAuthorizer:
        return AclAuthorizer((), services.changed)

    core = GroupCore(tmp_path, AT_ONCE, inline=True, authorizer=made)
    authorizer = core.services.authorizer
    assert isinstance(authorizer, AclAuthorizer)
    may_read = frozenset({AclEntry("User:ANONYMOUS", "Allow", "Read", "*")})
    authorizer.swap({ResourcePattern("Group", "g"): may_read})
    beat = encode_request_header(12, 4, 1, "member") + encode(
        HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4
    )
    codes = [core.ask(beat)[-3:-1] for _ in range(2)]
    authorizer.swap({})
    codes.append(core.ask(beat)[-3:-1])

    unknown, denied = (
        code.to_bytes(2, "big") for code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    )
    assert codes == [unknown, unknown, denied]
    assert beats == [True, False]
    core.close()


def test_a_shard_that_does_not_serve_is_answered_as_ever(pair: Pair, waits: list[bool], beats: list[bool]) -> None:
    (member,) = a_group(pair, 1)
    member.ask(member.beat())
    waits.clear()
    beats.clear()

    for core in pair.cores:
        core.services.groups.runtime.resigns(0)

    assert [each.error_code for each in member.ask(member.beat())] == [ErrorCode.NOT_COORDINATOR]
    assert [each.error_code for each in member.ask(member.join())] == [ErrorCode.NOT_COORDINATOR]
    assert (waits, beats) == ([True], [False])


def test_a_long_request_is_not_remembered(pair: Pair, waits: list[bool]) -> None:
    member = Member(pair)
    for _ in range(5):
        member.ask(member.join(bytes(5000)))

    assert waits == []


def test_a_closed_connection_remembers_nothing(pair: Pair, beats: list[bool]) -> None:
    (member,) = a_group(pair, 1)
    member.ask(member.beat())
    connection, _ = member._ends[0]
    known = connection.session.prepared.values()

    pair.short.stage.thread.close_connection(connection)

    assert [each._request for each in known if hasattr(each, "_request")] == [None, None, None]


def test_a_request_whose_connection_is_closed_as_it_runs_is_left_alone(
    pair: Pair, waits: list[bool], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (member,) = a_group(pair, 1)
    waits.clear()
    connection, _ = member._ends[0]
    run = RepeatedWaits.run

    def closed_meanwhile(self: RepeatedWaits, *arguments: Any) -> Any:
        answer = run(self, *arguments)
        pair.short.stage.thread.close_connection(connection)
        return answer

    monkeypatch.setattr(RepeatedWaits, "run", closed_meanwhile)
    member._send(member.join())
    assert waits == [True]
    assert [each for each in caplog.records if each.levelname in ("ERROR", "CRITICAL")] == []
