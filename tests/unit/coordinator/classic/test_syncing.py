"""SyncGroup: assignments are written, then handed out."""

import pytest

from kavka.coordinator.group.group import Client
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataValue
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.classic_stage import GROUP, REBALANCE_MS, SESSION_MS, ClassicStage, logged_state


def completing(stage: ClassicStage, count: int = 2) -> list[str]:
    """A group in CompletingRebalance; the leader first."""
    ids = [stage.new()[0] for _ in range(count)]
    stage.advance(3_000 * (count + 1))
    assert stage.state == "CompletingRebalance"
    return ids


def test_followers_wait_for_the_leader_and_all_get_what_it_assigned() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)
    waiting = stage.sync(follower, 1)
    assert waiting.waits

    leading = stage.sync(leader, 1, {leader: b"L", follower: b"F"})

    assert (waiting.answer.assignment, leading.answer.assignment) == (b"F", b"L")
    assert leading.answer.protocol_name == "range"
    assert stage.state == "Stable"
    assert stage.counts["kafka_server_group_coordinator_metrics_group_completed_rebalance_count"] == 1


def test_an_assignment_is_handed_out_once_it_is_committed() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)
    waiting = stage.sync(follower, 1)
    stage.holds_replies = True

    leading = stage.sync(leader, 1, {follower: b"F"})

    assert waiting.waits
    assert leading.waits
    stage.holds_replies = False
    stage.commit()
    assert waiting.answer.assignment == b"F"


def test_all_who_wait_are_told_when_the_assignment_is_not_committed_in_time() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)
    waiting = stage.sync(follower, 1)
    leading: list[object] = []
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=leader, assignments=[])
    client = Client("c", "/127.0.0.1", 5)

    decided = stage.shard.classic.sync(request, client, leading.append)
    told = decided.appended() if decided.appended is not None else None
    assert told is not None
    assert told.reads_committed
    assert told.uncommitted is not None
    instead = told.uncommitted(BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    assert [reply for reply, _ in instead] == [leading.append, waiting.answers.append]
    assert {response.error_code for _, response in instead} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_the_record_holds_the_generation_with_everybodys_assignment() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)

    stage.sync(leader, 1, {leader: b"L", "stranger": b"?"})

    value = stage.records()[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", leader)
    assert [(each.member_id, each.subscription, each.assignment) for each in value.members] == [
        (leader, b"r", b"L"),
        (follower, b"r", b""),
    ]
    assert (value.members[0].session_timeout, value.members[0].rebalance_timeout) == (SESSION_MS, REBALANCE_MS)
    assert (value.members[0].client_id, value.members[0].client_host) == ("c", "/127.0.0.1")


def test_a_member_that_asks_in_a_stable_group_gets_its_assignment() -> None:
    stage = ClassicStage()
    _, follower = stage.stable(2)

    assert stage.sync(follower, 1).answer.assignment == follower.encode()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": None, "protocol_type": None}, ErrorCode.NONE),
    ],
)
def test_what_does_not_fit_the_generation_is_refused(given: dict[str, object], error: ErrorCode) -> None:
    stage = ClassicStage()
    _, follower = stage.stable(2)

    asked = stage.sync(**{"member_id": follower, "generation": 1, **given})  # type: ignore[arg-type]  # as in the table

    assert asked.answer.error_code == error


def test_a_later_sync_takes_the_place_of_one_that_waits() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)
    earlier = stage.sync(follower, 1)

    later = stage.sync(follower, 1)

    assert earlier.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    stage.sync(leader, 1, {follower: b"F"})
    assert later.answer.assignment == b"F"


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)
    waiting = stage.sync(follower, 1)
    for _ in range(REBALANCE_MS // 5_000):
        stage.heartbeat(leader, 1)
        stage.heartbeat(follower, 1)
        stage.advance(5_000)

    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(stage.group().members) == [follower]
    assert stage.group().leader_id == follower
    assert f"no SyncGroup in time of: {leader}" in [each.reason for each in stage.group().history][-1]


def test_a_member_that_has_not_synced_in_a_stable_group_is_removed_too() -> None:
    stage = ClassicStage()
    leader, follower = completing(stage)
    stage.sync(leader, 1, {follower: b"F"})
    for _ in range(REBALANCE_MS // 5_000):
        stage.heartbeat(leader, 1)
        stage.heartbeat(follower, 1)
        stage.advance(5_000)

    assert stage.state == "PreparingRebalance"
    assert list(stage.group().members) == [leader]


def test_nobody_is_removed_once_all_have_synced() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    for _ in range(REBALANCE_MS // 5_000):
        stage.heartbeat(leader, 1)
        stage.heartbeat(follower, 1)
        stage.advance(5_000)

    assert stage.state == "Stable"


def test_a_failed_append_sends_all_back_with_its_error_and_the_log_keeps_the_old_generation() -> None:
    stage = ClassicStage()
    stage.stable(2)
    before = logged_state(stage.group())
    stage.new()
    for each in list(stage.group().members)[:2]:
        stage.join(each)
    leader, *others = stage.group().members
    waiting = [stage.sync(each, 2) for each in others]
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    leading = stage.sync(leader, 2, {})

    assert {each.answer.error_code for each in (*waiting, leading)} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert stage.state == "PreparingRebalance"
    assert logged_state(stage.replayed().table.get("g")) == before  # type: ignore[arg-type]  # it's a classic group
    assert all(stage.join(each).waits for each in others)
    assert stage.join(leader).answer.generation_id == 3
