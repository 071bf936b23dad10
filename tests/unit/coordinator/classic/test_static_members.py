"""Static members (KIP-345): they come back under a new id, and the old one is fenced."""

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_subscription,
)
from kavka.protocol.internal.group_records import GroupMetadataValue
from tests.support.classic_stage import GROUP, REBALANCE_MS, SESSION_MS, ClassicStage, logged_state

OTHER = (("range", b"other"),)


def test_a_static_member_needs_no_id_first() -> None:
    stage = ClassicStage()

    joined = stage.join(instance_id="a")
    stage.advance(3_000)

    assert joined.answer.error_code == 0
    assert joined.answer.member_id.startswith("a-")
    assert joined.answer.members[0].group_instance_id == "a"


def test_a_restart_in_a_stable_group_changes_its_id_and_nothing_else() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable_static("a", "b")

    answer = stage.join(instance_id="b").answer

    assert answer.error_code == 0
    assert answer.generation_id == 1
    assert answer.member_id not in (leader, follower)
    assert (answer.leader, answer.members, answer.skip_assignment) == (leader, [], False)
    assert stage.state == "Stable"
    assert stage.sync(answer.member_id, 1, instance_id="b").answer.assignment == follower.encode()
    assert stage.heartbeat(leader, 1) == 0


def test_the_new_id_is_in_the_log() -> None:
    stage = ClassicStage()
    leader, _ = stage.stable_static("a", "b")

    new_leader = stage.join(instance_id="a", session_ms=20_000).answer.member_id

    value = stage.records()[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.leader, value.members[0].member_id, value.members[0].group_instance_id) == (
        new_leader,
        new_leader,
        "a",
    )
    assert value.members[0].assignment == leader.encode()
    assert value.members[0].session_timeout == 20_000
    replayed = stage.replayed().table.get(GROUP)
    assert logged_state(replayed) == logged_state(stage.group())  # type: ignore[arg-type]  # it's a classic group


def test_a_restarted_leader_is_told_the_members_and_not_to_assign() -> None:
    stage = ClassicStage()
    stage.stable_static("a", "b")

    answer = stage.join(instance_id="a", version=9).answer

    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert {each.group_instance_id for each in answer.members} == {"a", "b"}


def test_a_restarted_leader_that_knows_no_skipping_does_not_take_itself_for_the_leader() -> None:
    stage = ClassicStage()
    leader, _ = stage.stable_static("a", "b")

    answer = stage.join(instance_id="a", version=8).answer

    assert answer.leader == leader != answer.member_id
    assert answer.members == []
    assert stage.group().leader_id == answer.member_id


@pytest.mark.parametrize("instance_id", ["b", None])
def test_the_old_id_is_fenced(instance_id: str | None) -> None:
    stage = ClassicStage()
    _, old = stage.stable_static("a", "b")
    stage.join(instance_id="b")
    error = ErrorCode.UNKNOWN_MEMBER_ID if instance_id is None else ErrorCode.FENCED_INSTANCE_ID

    assert stage.heartbeat(old, 1, instance_id=instance_id) == error
    assert stage.sync(old, 1, instance_id=instance_id).answer.error_code == error
    assert stage.join(old, instance_id=instance_id).answer.error_code == error
    left = stage.leave((old, instance_id) if instance_id else old).answer
    assert left.members[0].error_code == error


def test_the_old_ids_session_takes_nobody_away() -> None:
    stage = ClassicStage()
    (_,) = stage.stable_static("a")
    stage.advance(SESSION_MS - 1)
    new = stage.join(instance_id="a").answer.member_id

    stage.advance(SESSION_MS - 1)

    assert list(stage.group().members) == [new]
    assert stage.state == "Stable"


def test_a_restart_with_other_metadata_but_the_same_protocol_does_not_rebalance() -> None:
    stage = ClassicStage()
    stage.stable_static("a", "b")

    answer = stage.join(instance_id="b", protocols=OTHER).answer

    assert answer.error_code == 0
    assert stage.state == "Stable"
    assert stage.group().members[answer.member_id].metadata("range") == b"other"


def test_a_restart_that_changes_the_vote_rebalances() -> None:
    stage = ClassicStage()
    both = (("range", b"r"), ("sticky", b"s"))
    stage.stable_static("a", "b", protocols=both)

    joined = stage.join(instance_id="b", protocols=(("sticky", b"s"),))

    assert joined.waits
    assert stage.state == "PreparingRebalance"


def test_a_restart_during_the_join_phase_fences_the_join_that_waits() -> None:
    stage = ClassicStage()
    first, second = stage.stable_static("a", "b")
    waiting = stage.join(first, instance_id="a")

    again = stage.join(instance_id="a")

    assert waiting.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert again.waits
    stage.join(second, instance_id="b")
    assert again.answer.generation_id == 2
    assert again.answer.leader == again.answer.member_id


def test_a_restart_before_the_assignment_starts_over_and_fences_the_sync_that_waits() -> None:
    stage = ClassicStage()
    joins = [stage.join(instance_id=each) for each in ("a", "b")]
    stage.advance(9_000)
    _, follower = (each.answer.member_id for each in joins)
    waiting = stage.sync(follower, 1, instance_id="b")

    again = stage.join(instance_id="b")

    assert waiting.answer.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert again.waits
    assert stage.state == "PreparingRebalance"


def test_a_restart_that_cannot_be_written_leaves_the_old_member_in_place() -> None:
    stage = ClassicStage()
    leader, old = stage.stable_static("a", "b")
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    answer = stage.join(instance_id="b").answer

    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert set(stage.group().members) == {leader, old}
    assert stage.heartbeat(old, 1, instance_id="b") == 0
    replayed = stage.replayed().table.get(GROUP)
    assert logged_state(replayed) == logged_state(stage.group())  # type: ignore[arg-type]  # it's a classic group


def test_static_members_that_are_late_stay_until_their_session_ends() -> None:
    stage = ClassicStage()
    first, second = stage.stable_static("a", "b", session_ms=90_000)
    joined = stage.join(first, instance_id="a", protocols=OTHER, session_ms=90_000)

    stage.advance(REBALANCE_MS)

    assert joined.answer.generation_id == 2
    assert set(stage.group().members) == {first, second}
    assert f"late: {second}" in [each.reason for each in stage.group().history][-1]


def test_a_join_phase_that_no_static_member_has_joined_waits_on() -> None:
    stage = ClassicStage()
    first, second = stage.stable_static("a", "b", session_ms=90_000)
    third, _ = stage.new(session_ms=90_000)
    stage.leave(third)

    stage.advance(REBALANCE_MS)

    assert stage.state == "PreparingRebalance"
    again = [stage.join(each, instance_id=name) for each, name in ((first, "a"), (second, "b"))]
    assert [each.answer.generation_id for each in again] == [2, 2]


def test_a_restart_is_counted_as_its_sync_when_others_still_have_to() -> None:
    stage = ClassicStage()
    joins = [stage.join(instance_id=each) for each in ("a", "b")]
    stage.advance(9_000)
    leader, _ = (each.answer.member_id for each in joins)
    stage.sync(leader, 1, instance_id="a")

    new = stage.join(instance_id="b").answer.member_id
    for _ in range(2 * REBALANCE_MS // 5_000):
        stage.heartbeat(leader, 1)
        stage.heartbeat(new, 1)
        stage.advance(5_000)

    assert stage.state == "Stable"
    assert set(stage.group().members) == {leader, new}


def consumer(*topics: str, owned: str | None = None) -> tuple[tuple[str, bytes], ...]:
    owns = [TopicPartition(topic=owned, partitions=[0])] if owned is not None else []
    return (("range", encode_subscription(ConsumerProtocolSubscription(topics=list(topics), owned_partitions=owns))),)


@pytest.mark.parametrize("restarted", ["leader", "follower"])
def test_a_restart_with_other_topics_rebalances_though_the_protocol_is_the_same(restarted: str) -> None:
    stage = ClassicStage()
    members = dict(
        zip(("leader", "follower"), stage.stable_static("leader", "follower", protocols=consumer("t")), strict=True)
    )
    stays = "leader" if restarted == "follower" else "follower"

    back = stage.join(instance_id=restarted, protocols=consumer("t", "u"))

    assert back.waits
    assert stage.heartbeat(members[stays], 1, instance_id=stays) == ErrorCode.REBALANCE_IN_PROGRESS
    stage.join(members[stays], instance_id=stays, protocols=consumer("t"))
    assert back.answer.generation_id == 2
    assert stage.group().subscribed_topics() == frozenset({"t", "u"})


def test_a_restart_with_the_same_topics_in_another_order_does_not_rebalance() -> None:
    stage = ClassicStage()
    stage.stable_static("a", "b", protocols=consumer("t", "u", owned="t"))

    assert stage.join(instance_id="b", protocols=consumer("u", "t")).answer.generation_id == 1
    assert stage.state == "Stable"


def test_a_full_group_takes_a_static_member_back_but_nobody_new() -> None:
    stage = ClassicStage(group_max_size="2")
    stage.stable_static("a", "b")

    assert stage.join(instance_id="b").answer.error_code == ErrorCode.NONE
    assert stage.join(instance_id="c").answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.group().member_count == 2
