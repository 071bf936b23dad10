"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup as clients see them, in every version."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.broker.handlers import heartbeat, join_group, leave_group, sync_group  # noqa: F401 - registers the handlers
from kavka.broker.requests.handling import registered_handlers
from kavka.broker.security.acl import Operation
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kavka.protocol.schema import Request, schema_of
from tests.support.broker_handlers import Broker, Denying
from tests.support.classic_stage import ClassicStage

GROUP = "g"


class StagedGroups:
    """A group coordinator with one shard on a stage; `refuses` makes it refuse everything."""

    def __init__(self) -> None:
        self.stage = ClassicStage(group_initial_rebalance_delay_ms="0")
        self.refuses: ErrorCode | None = None
        self.asked: list[str] = []

    def run(self, group_id: str, operation: Callable[[Any], Result], refused: Callable[[BrokerError], object]) -> None:
        self.asked.append(group_id)
        if self.refuses is not None:
            refused(BrokerError(self.refuses))
        else:
            self.stage.run(operation, lambda error: (refused(error), None)[1])


@pytest.fixture
def groups() -> StagedGroups:
    return StagedGroups()


@pytest.fixture
def broker(groups: StagedGroups) -> Broker:
    broker = Broker()
    broker.services.groups = groups
    return broker


def join(member_id: str = "", version: int = 9, **given: Any) -> JoinGroupRequest:
    fields = {"group_id": GROUP, "session_timeout_ms": 10_000, "protocol_type": "consumer", **given}
    if version >= 1:
        fields.setdefault("rebalance_timeout_ms", 60_000)
    return JoinGroupRequest(
        member_id=member_id, protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")], **fields
    )


def sync(member_id: str, generation: int, version: int = 5, **given: Any) -> SyncGroupRequest:
    fields = {"group_id": GROUP, **({"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {})}
    assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"a")]
    return SyncGroupRequest(
        generation_id=generation, member_id=member_id, assignments=assignments, **{**fields, **given}
    )


def leave(member_id: str, version: int = 5, group_id: str = GROUP) -> LeaveGroupRequest:
    if version < 3:
        return LeaveGroupRequest(group_id=group_id, member_id=member_id)
    return LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=member_id)])


def beat(member_id: str, generation: int, group_id: str = GROUP) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id)


def versions(request: type[Request]) -> range:
    key = schema_of(request).key
    assert key is not None
    handler = registered_handlers()[key]
    return range(handler.min_version, handler.max_version + 1)


def joined(broker: Broker, version: int = 9) -> Any:
    answer = broker.ask(join(version=version), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = broker.ask(join(answer.member_id, version=version), version)
    return answer


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(broker: Broker, version: int) -> None:
    answer = joined(broker, version)

    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id
    assert [(each.member_id, each.metadata) for each in answer.members] == [(answer.member_id, b"m")]
    assert answer.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_names_no_protocol(broker: Broker, version: int) -> None:
    answer = broker.ask(join("stranger", version=version), version)

    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.protocol_name == (None if version >= 7 else "")
    assert (answer.member_id, answer.generation_id, answer.leader, answer.members) == ("stranger", -1, "", [])


@pytest.mark.parametrize("version", range(6))
def test_a_member_syncs_in_every_version(broker: Broker, version: int) -> None:
    member_id = joined(broker).member_id

    answer = broker.ask(sync(member_id, 1, version), version)

    assert (answer.error_code, answer.assignment) == (0, b"a")
    assert answer.protocol_name == ("range" if version >= 5 else None)
    refused = broker.ask(sync(member_id, 7, version), version)
    assert (refused.error_code, refused.assignment) == (ErrorCode.ILLEGAL_GENERATION, b"")


@pytest.mark.parametrize("version", range(5))
def test_a_member_beats_in_every_version(broker: Broker, version: int) -> None:
    member_id = joined(broker).member_id

    assert broker.ask(beat(member_id, 1), version).error_code == 0
    assert broker.ask(beat(member_id, 2), version).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_in_every_version(broker: Broker, version: int) -> None:
    member_id = joined(broker).member_id

    left = broker.ask(leave(member_id, version), version)
    again = broker.ask(leave(member_id, version), version)

    assert left.error_code == 0
    assert [each.error_code for each in left.members] == [0] * (version >= 3)
    code = again.members[0].error_code if version >= 3 else again.error_code
    assert code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("request_class", [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest])
def test_no_group_id_and_no_permission_are_refused_before_the_coordinator_is_asked(
    broker: Broker, groups: StagedGroups, request_class: type[Request]
) -> None:
    for version in versions(request_class):
        nameless, forbidden = (_request(request_class, version, group_id) for group_id in ("", GROUP))
        assert broker.ask(nameless, version).error_code == ErrorCode.INVALID_GROUP_ID
        denying = Denying((Operation.READ, GROUP))
        assert broker.ask(forbidden, version, authorizer=denying).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert groups.asked == []


@pytest.mark.parametrize("request_class", [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest])
@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_what_the_coordinator_refuses_is_answered(
    broker: Broker, groups: StagedGroups, request_class: type[Request], code: ErrorCode
) -> None:
    groups.refuses = code
    is_ignored = request_class is HeartbeatRequest and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    for version in versions(request_class):
        answer = broker.ask(_request(request_class, version, GROUP), version)
        assert answer.error_code == (ErrorCode.NONE if is_ignored else code)


@pytest.mark.parametrize("session_timeout_ms", [5_999, 1_800_001, -1])
def test_a_session_outside_the_brokers_limits_is_refused(broker: Broker, session_timeout_ms: int) -> None:
    answer = broker.ask(join(session_timeout_ms=session_timeout_ms), 9)

    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_a_sync_has_to_name_the_protocol_since_v5(broker: Broker, missing: str) -> None:
    member_id = joined(broker).member_id

    answer = broker.ask(sync(member_id, 1, **dict[str, Any]({missing: None})), 5)

    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_group_knows_who_its_member_is(broker: Broker, groups: StagedGroups) -> None:
    member_id = joined(broker).member_id

    member = groups.stage.group().members[member_id]

    assert (member.client_host, member.client_id) == ("/10.0.0.9", "a-client")


def _request(request_class: type[Request], version: int, group_id: str) -> Request:
    if request_class is JoinGroupRequest:
        return join(version=version, group_id=group_id)
    if request_class is SyncGroupRequest:
        return sync("m", 1, version, group_id=group_id)
    if request_class is HeartbeatRequest:
        return beat("m", 1, group_id)
    return leave("m", version, group_id)
