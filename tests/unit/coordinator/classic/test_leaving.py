"""LeaveGroup, lost sessions, and groups whose last member goes."""

import pytest

from kavka.coordinator.group.classic.rebalance import RETRY_MS
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataValue
from tests.support.classic_stage import GROUP, SESSION_MS, ClassicStage, logged_state


def test_a_member_leaves_and_the_others_have_to_join_again() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)

    answer = stage.leave(leader, reason="closing").answer

    assert (answer.error_code, answer.members[0].error_code, answer.members[0].member_id) == (0, 0, leader)
    assert stage.state == "PreparingRebalance"
    assert stage.group().leader_id == follower
    assert "closing" in [each.reason for each in stage.group().history][-1]
    assert stage.join(follower).answer.generation_id == 2


def test_several_leave_at_once_each_with_its_own_error() -> None:
    stage = ClassicStage()
    first, _second, third = stage.stable_static("a", "b", "c")

    answer = stage.leave(first, ("", "b"), (third, "a"), ("", "unknown"), first, "").answer

    assert [each.error_code for each in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(stage.group().members) == [third]


def test_a_wrong_id_for_an_instance_is_fenced() -> None:
    stage = ClassicStage()
    first, second = stage.stable_static("a", "b")

    answer = stage.leave((second, "a")).answer

    assert answer.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert set(stage.group().members) == {first, second}


@pytest.mark.parametrize(("who", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_MEMBER_ID)])
def test_before_v3_the_one_members_error_is_the_requests(who: int, error: ErrorCode) -> None:
    stage = ClassicStage()
    leader, _ = stage.stable(2)

    answer = stage.leave((leader, "stranger")[who], version=2).answer

    assert (answer.error_code, answer.members) == (error, [])


@pytest.mark.parametrize(("version", "error"), [(2, ErrorCode.UNKNOWN_MEMBER_ID), (3, ErrorCode.NONE)])
def test_a_group_that_does_not_exist_has_unknown_members(version: int, error: ErrorCode) -> None:
    answer = ClassicStage().leave("someone", version=version).answer

    assert answer.error_code == error
    assert [each.error_code for each in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * (version > 2)


def test_an_id_that_was_given_out_can_be_handed_back() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    member_id = stage.join().answer.member_id
    again = [stage.join(each) for each in (leader, follower)]

    answer = stage.leave(member_id).answer

    assert answer.members[0].error_code == 0
    assert [each.answer.generation_id for each in again] == [2, 2]


def test_what_a_leaving_member_waits_for_is_answered() -> None:
    stage = ClassicStage()
    ids = [stage.new()[0] for _ in range(3)]
    stage.advance(12_000)
    waiting_sync = stage.sync(ids[1], 1)
    stage.leave(ids[1])
    waiting_join = stage.join(ids[2])

    stage.leave(ids[2])

    assert waiting_sync.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert waiting_join.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_whose_last_member_leaves_is_empty_in_the_log_too() -> None:
    stage = ClassicStage()
    ids = stage.stable(2)

    stage.leave(*ids)

    value = stage.records()[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol, value.leader, value.members) == (2, None, None, [])
    assert value.protocol_type == "consumer"
    assert value.current_state_timestamp == stage.group().state_timestamp_ms
    assert stage.state == "Empty"
    assert not stage.timers.keys()
    assert stage.join().answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_nobody_is_lost_because_the_time_of_day_was_set() -> None:
    stage = ClassicStage()
    (member,) = stage.stable(1, session_ms=10_000)
    stage.advance(5_000)
    stage.heartbeat(member, 1)

    stage.set_clock(forward_ms=3_600_000)
    stage.advance(6_000)

    assert stage.state == "Stable"
    stage.advance(4_000)
    assert stage.state == "Empty"


def test_a_member_without_heartbeats_is_lost_after_its_session() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    stage.advance(SESSION_MS - 1)
    stage.heartbeat(follower, 1)
    assert stage.state == "Stable"

    stage.advance(1)

    assert stage.state == "PreparingRebalance"
    assert list(stage.group().members) == [follower]
    assert f"member {leader} is lost" in [each.reason for each in stage.group().history][-1]


def test_heartbeats_keep_a_member_without_a_timer_each() -> None:
    stage = ClassicStage()
    (member_id,) = stage.stable(1)
    runs: list[object] = []
    schedule = stage.timers.schedule
    stage.timers.schedule = lambda *given: (runs.append(given[0]), schedule(*given))[1]  # type: ignore[method-assign,func-returns-value]  # counts the calls

    for _ in range(100):
        stage.advance(1_000)
        assert stage.heartbeat(member_id, 1) == 0

    assert len(runs) <= 11
    stage.advance(SESSION_MS - 1)
    assert stage.state == "Stable"
    stage.advance(1)
    assert stage.state == "Empty"


def test_commits_of_offsets_keep_a_member_too() -> None:
    stage = ClassicStage()
    (member_id,) = stage.stable(1)
    stage.advance(SESSION_MS - 1)
    stage.group().validate_offset_commit(member_id, None, 1, transactional=False, api_version=8)

    stage.advance(SESSION_MS - 1)

    assert stage.state == "Stable"


def test_that_nobody_is_left_is_written_again_when_it_could_not_be() -> None:
    stage = ClassicStage()
    (member_id,) = stage.stable(1)
    logged = logged_state(stage.group())
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    answer = stage.leave(member_id).answer

    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert stage.state == "PreparingRebalance"
    replayed = stage.replayed().table.get(GROUP)
    assert logged_state(replayed) == logged  # type: ignore[arg-type]  # it's a classic group
    stage.advance(RETRY_MS)
    assert stage.state == "Empty"
    assert stage.group().generation == 2


def test_a_member_may_come_before_that_is_written() -> None:
    stage = ClassicStage()
    (member_id,) = stage.stable(1)
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    stage.leave(member_id)

    newcomer, joined = stage.new()

    assert joined.answer.generation_id == 2
    stage.sync_all([newcomer])


def test_leaving_together_before_the_first_generation_ends_with_an_empty_group() -> None:
    stage = ClassicStage()
    ids = [stage.new()[0] for _ in range(2)]
    stage.leave(*ids)
    assert stage.state == "PreparingRebalance"

    stage.advance(6_000)

    assert stage.state == "Empty"
