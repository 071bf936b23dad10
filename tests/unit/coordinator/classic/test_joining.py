"""JoinGroup: who comes in, what members are told, and when the others have to join again."""

import pytest

from kavka.coordinator.group.classic.joining import NEW_MEMBER_JOIN_TIMEOUT_MS
from kavka.protocol.errors import ErrorCode
from tests.support.classic_stage import GROUP, REBALANCE_MS, SESSION_MS, ClassicStage

BOTH = (("range", b"r"), ("sticky", b"s"))


def test_a_member_is_told_its_id_first_and_joins_with_it() -> None:
    stage = ClassicStage()

    answer = stage.join(client_id="app").answer

    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("app-")
    assert stage.state == "Empty"
    joined = stage.join(answer.member_id)
    stage.advance(3_000)
    assert joined.answer.error_code == 0
    assert joined.answer.generation_id == 1
    assert joined.answer.leader == joined.answer.member_id == answer.member_id
    assert joined.answer.protocol_type == "consumer"
    assert [(each.member_id, each.metadata) for each in joined.answer.members] == [(answer.member_id, b"r")]


def test_a_member_id_fits_into_a_string_of_the_protocol_however_long_the_client_id_is() -> None:
    stage = ClassicStage()

    (member_id,) = stage.stable(1, client_id="\u20ac" * 10_922)

    assert len(member_id.encode()) < 32_767
    assert stage.replayed().table.get(GROUP) is not None


def test_before_v4_a_member_joins_at_once_and_before_v1_its_session_is_its_rebalance_timeout() -> None:
    stage = ClassicStage()

    joined = stage.join(version=0, rebalance_ms=-1)
    stage.advance(3_000)

    member_id = joined.answer.member_id
    assert joined.answer.error_code == 0
    assert stage.group().members[member_id].rebalance_timeout_ms == SESSION_MS


def test_an_id_that_was_given_out_is_forgotten_with_its_session() -> None:
    stage = ClassicStage()
    member_id = stage.join().answer.member_id

    stage.advance(SESSION_MS)

    assert stage.join(member_id).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert not stage.group().pending


def test_the_first_rebalance_waits_again_while_members_come_but_no_longer_than_the_rebalance_timeout() -> None:
    stage = ClassicStage(group_initial_rebalance_delay_ms="3000")
    _, first = stage.new(rebalance_ms=8_000)
    for _ in range(2):
        stage.advance(2_999)
        stage.new(rebalance_ms=8_000)
    stage.advance(1_999)
    assert first.waits
    stage.new(rebalance_ms=8_000)

    stage.advance(3)

    assert not first.waits
    assert len(first.answer.members) == 4


def test_the_first_rebalance_ends_when_nobody_came_during_its_delay() -> None:
    stage = ClassicStage()
    _, first = stage.new()
    stage.advance(2_999)
    assert first.waits

    stage.advance(1)

    assert first.answer.error_code == 0


def test_without_a_delay_the_first_member_has_its_generation_at_once() -> None:
    stage = ClassicStage(group_initial_rebalance_delay_ms="0")

    _, first = stage.new()

    assert first.answer.generation_id == 1


def test_only_the_leader_is_told_of_the_members() -> None:
    stage = ClassicStage()
    joins = [stage.new() for _ in range(3)]
    stage.advance(6_000)

    leader = joins[0][0]

    assert [len(joined.answer.members) for _, joined in joins] == [3, 0, 0]
    assert {joined.answer.leader for _, joined in joins} == {leader}


def test_a_new_member_makes_the_others_join_again() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)

    newcomer, third = stage.new()

    assert stage.state == "PreparingRebalance"
    assert stage.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = [stage.join(each) for each in (follower, leader)]
    assert third.answer.generation_id == 2
    assert {each.answer.leader for each in again} == {leader}
    assert {each.member_id for each in again[1].answer.members} == {leader, follower, newcomer}


def test_an_id_given_out_holds_the_join_phase_up_until_it_is_used_or_lost() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)
    stage.join()
    again = [stage.join(each) for each in (leader, follower)]
    assert all(each.waits for each in again)

    stage.advance(SESSION_MS)

    assert [each.answer.generation_id for each in again] == [2, 2]


def test_a_follower_that_joins_unchanged_is_told_the_generation_it_is_in() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2)

    answer = stage.join(follower).answer

    assert (answer.error_code, answer.generation_id, answer.leader, answer.members) == (0, 1, leader, [])
    assert stage.state == "Stable"


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    stage = ClassicStage()
    leader, _ = stage.stable(2)

    assert stage.join(leader).waits
    assert stage.state == "PreparingRebalance"


def test_a_follower_with_other_metadata_starts_a_rebalance() -> None:
    stage = ClassicStage()
    _, follower = stage.stable(2)

    assert stage.join(follower, protocols=(("range", b"other"),)).waits
    assert stage.state == "PreparingRebalance"


def test_members_that_have_not_synced_are_told_the_generation_again() -> None:
    stage = ClassicStage()
    joins = [stage.new() for _ in range(2)]
    stage.advance(9_000)
    leader, follower = (member_id for member_id, _ in joins)

    assert [each.member_id for each in stage.join(leader).answer.members] == [leader, follower]
    assert stage.join(follower).answer.members == []
    assert stage.state == "CompletingRebalance"


def test_other_metadata_before_the_assignment_sends_the_waiting_ones_back() -> None:
    stage = ClassicStage()
    joins = [stage.new() for _ in range(2)]
    stage.advance(9_000)
    leader, follower = (member_id for member_id, _ in joins)
    waiting = stage.sync(follower, 1)

    stage.join(leader, protocols=(("range", b"other"),))

    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.state == "PreparingRebalance"


def test_the_protocol_with_most_votes_of_those_that_all_have_is_taken() -> None:
    stage = ClassicStage()
    offers = (
        (("mine", b""), ("sticky", b"s"), ("range", b"r")),
        (("sticky", b"s"), ("range", b"r")),
        (("range", b"r"), ("sticky", b"s")),
    )
    joins = [stage.new(protocols=offer) for offer in offers]
    stage.advance(12_000)

    assert {joined.answer.protocol_name for _, joined in joins} == {"sticky"}
    assert [each.metadata for each in joins[0][1].answer.members] == [b"s", b"s", b"s"]


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", BOTH), ("consumer", (("mine", b""),)), ("", BOTH), ("consumer", ())]
)
def test_a_member_with_nothing_in_common_is_refused(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    stage = ClassicStage()
    stage.stable(2)

    answer = stage.join(protocol_type=protocol_type, protocols=protocols).answer

    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", BOTH), ("consumer", ())])
def test_a_first_member_without_protocols_makes_no_group(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    stage = ClassicStage()

    answer = stage.join(protocol_type=protocol_type, protocols=protocols).answer

    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stage.shard.table.get(GROUP) is None


@pytest.mark.parametrize("protocol_type", ["connect", "sr"])
def test_groups_of_other_protocol_types_work_alike(protocol_type: str) -> None:
    stage = ClassicStage()
    member_id, joined = stage.new(protocol_type=protocol_type)
    stage.advance(3_000)

    assert joined.answer.protocol_type == protocol_type
    synced = stage.sync(member_id, 1, {member_id: b"a"}, protocol_type=protocol_type)
    assert (synced.answer.error_code, synced.answer.protocol_type) == (0, protocol_type)


def test_a_group_that_does_not_exist_has_no_members() -> None:
    stage = ClassicStage()

    assert stage.join("someone").answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.shard.table.get(GROUP) is None


def test_a_join_takes_the_place_of_an_earlier_one_that_still_waits() -> None:
    stage = ClassicStage()
    member_id, earlier = stage.new()

    later = stage.join(member_id)

    assert earlier.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    stage.advance(3_000)
    assert later.answer.error_code == 0


def test_a_full_group_turns_new_members_away() -> None:
    stage = ClassicStage(group_max_size="2")
    _, follower = stage.stable(2)

    assert stage.join().answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.join(follower).answer.error_code == 0


def test_a_full_join_phase_turns_the_last_ones_away() -> None:
    stage = ClassicStage(group_max_size="2")
    ids = [stage.join(version=4).answer.member_id for _ in range(3)]
    joins = [stage.join(each) for each in ids]

    assert joins[2].answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    stage.advance(6_000)
    assert [each.answer.error_code for each in joins[:2]] == [0, 0]
    assert len(stage.group().members) == 2


def test_members_that_are_late_are_left_out_of_the_next_generation() -> None:
    stage = ClassicStage()
    leader, follower = stage.stable(2, session_ms=120_000)
    _, third = stage.new(session_ms=120_000)
    stage.join(follower, session_ms=120_000)

    stage.advance(REBALANCE_MS)

    assert third.answer.generation_id == 2
    assert leader not in stage.group().members
    assert stage.group().leader_id == follower
    assert f"late: {leader}" in [each.reason for each in stage.group().history][-1]


def test_a_new_member_whose_join_waits_too_long_is_told_to_try_again() -> None:
    stage = ClassicStage()
    leader, _ = stage.stable(2, rebalance_ms=3_600_000)
    _, third = stage.new(rebalance_ms=3_600_000)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        stage.heartbeat(leader, 1)
        stage.advance(5_000)

    assert third.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(stage.group().members) == [leader]


def test_the_history_says_why_a_rebalance_began() -> None:
    stage = ClassicStage()
    stage.stable(2)
    stage.new(reason="need to rebalance\nforged line")

    began = [each for each in stage.group().history if each.new_state == "PreparingRebalance"][-1]

    assert began.old_state == "Stable"
    assert "need to rebalance" in began.reason
