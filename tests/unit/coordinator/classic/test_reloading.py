"""What a group is after its coordinator has been loaded from the log, and what becomes of those who wait."""

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.records import VALUE_VERSION
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.support.classic_stage import GROUP, SESSION_MS, ClassicStage, logged_state


def test_a_stable_group_is_as_it_was_and_its_members_go_on() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    before = logged_state(stage.group())

    stage.reload()

    assert logged_state(stage.group()) == before
    assert stage.heartbeat(follower, 1) == 0
    assert stage.sync(follower, 1).answer.assignment == follower.encode()
    assert stage.join(follower).answer.generation_id == 1
    assert stage.join(leader).waits


def test_members_have_a_full_session_after_loading() -> None:
    stage = ClassicStage()
    stage.stable(2)
    stage.advance(SESSION_MS - 1)

    stage.reload()
    stage.advance(SESSION_MS - 1)
    assert stage.state == "Stable"
    stage.advance(1)

    assert stage.state == "Empty"


def test_those_who_wait_are_told_that_the_coordinator_has_moved() -> None:
    stage = ClassicStage()
    joining = stage.new()[1]
    others = ClassicStage()
    _, follower = (others.new()[0] for _ in range(2))
    others.advance(9_000)
    syncing = others.sync(follower, 1)

    stage.unload()
    others.unload()

    assert joining.answer.error_code == ErrorCode.NOT_COORDINATOR
    assert syncing.answer.error_code == ErrorCode.NOT_COORDINATOR


def test_a_rebalance_that_was_going_on_starts_from_the_last_generation_that_was_written() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    before = logged_state(stage.group())
    third, _ = stage.new()
    stage.join(follower)

    stage.reload()

    assert logged_state(stage.group()) == before
    assert stage.join(third).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(leader, 1) == 0


def test_an_empty_group_stays_empty_with_its_generation() -> None:
    stage = ClassicStage()
    stage.leave(*stage.stable(2))

    stage.reload()

    assert stage.state == "Empty"
    assert stage.group().generation == 2
    assert stage.new()[1].waits


def test_a_group_that_is_too_large_now_rebalances() -> None:
    stage = ClassicStage()
    ids = stage.stable(3)
    stage.config = type(stage.config)({"group.max.size": "2"})

    stage.reload()

    assert stage.state == "PreparingRebalance"
    joins = [stage.join(each) for each in ids]
    assert [each.answer.error_code for each in joins] == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_a_deleted_group_is_gone_with_its_timers() -> None:
    stage = ClassicStage()
    stage.leave(*stage.stable(2))
    stage.join()
    group = stage.group()

    for record in group.tombstones():
        stage.shard.replay(record, 0, None)

    assert stage.shard.table.get(GROUP) is None
    assert group.state_name == "Dead"
    assert not stage.timers.keys()


def test_a_record_of_old_brokers_has_the_session_for_its_rebalance_timeout() -> None:
    stage = ClassicStage()
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout=-1,
        session_timeout=7_000,
        subscription=b"s",
        assignment=b"a",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="nobody-known",
        current_state_timestamp=-1,
        members=[member],
    )

    stage.shard.replay(CoordinatorRecord(GroupMetadataKey(group=GROUP), value, VALUE_VERSION), 0, None)

    assert stage.group().members["m"].rebalance_timeout_ms == 7_000
    assert stage.group().leader_id == "m"


def test_after_the_last_generation_comes_the_first() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    stage.group().generation = (1 << 31) - 1

    joins = [stage.join(member_id) for member_id in (leader, follower)]
    assert [each.answer.generation_id for each in joins] == [1, 1]
    stage.sync_all([leader, follower])
    stage.group().generation = (1 << 31) - 1
    stage.leave(leader, follower)

    assert stage.group().generation == 1
    replayed = stage.replayed().table.get(GROUP)
    assert isinstance(replayed, ClassicGroup)
    assert replayed.generation == 1
