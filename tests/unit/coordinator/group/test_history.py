"""A group's history: what is remembered of it, how much, and through which changes."""

from __future__ import annotations

from kavka.coordinator.group.history import (
    REASON_CHARACTERS,
    REMEMBERED_CHARACTERS,
    REMEMBERED_TRANSITIONS,
    History,
    Transition,
)
from kavka.coordinator.group.shard import GroupShard
from tests.support.classic_consumer import ClassicConsumer
from tests.support.classic_stage import ClassicStage
from tests.support.consumer_stage import GROUP, ConsumerStage


def noted(history: History, *reasons: str) -> None:
    for number, reason in enumerate(reasons):
        history.note(Transition(number, "Stable", "PreparingRebalance", reason, number, 1, True))


def reasons_of(shard: GroupShard) -> list[str]:
    group = shard.groups.get(GROUP)
    assert group is not None
    return [each.reason for each in group.history]


def test_the_oldest_transitions_go_when_there_are_too_many() -> None:
    history = History()
    noted(history, *(str(number) for number in range(3 * REMEMBERED_TRANSITIONS)))
    assert [each.reason for each in history] == [
        str(number) for number in range(2 * REMEMBERED_TRANSITIONS, 3 * REMEMBERED_TRANSITIONS)
    ]


def test_reasons_are_cut_and_long_ones_push_out_more() -> None:
    history = History()
    noted(history, "first", *["x" * 10_000] * REMEMBERED_TRANSITIONS)
    assert {len(each.reason) for each in history} == {REASON_CHARACTERS}
    assert len(history) == REMEMBERED_CHARACTERS // REASON_CHARACTERS

    noted(history, *("short" for _ in range(REMEMBERED_TRANSITIONS)))
    assert [each.reason for each in history] == ["short"] * REMEMBERED_TRANSITIONS


def test_what_is_described_says_which_transition_began_a_rebalance() -> None:
    stage = ClassicStage(group_initial_rebalance_delay_ms="0")
    (first,) = stage.stable(1)
    stage.new(reason="scaling out")
    stage.leave(first, reason="done")

    described = stage.group().history.described()

    assert [(each.old_state, each.new_state, each.epoch, each.begins_rebalance) for each in described[:4]] == [
        ("Empty", "PreparingRebalance", 0, True),
        ("PreparingRebalance", "CompletingRebalance", 1, False),
        ("CompletingRebalance", "Stable", 1, False),
        ("Stable", "PreparingRebalance", 1, True),
    ]
    assert "scaling out" in described[3].reason
    assert described[3].member_count == 1 + described[2].member_count
    assert any("done" in each.reason for each in described[4:])


def test_a_consumer_group_says_which_topics_have_changed() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    member = stage.joined("a", ["t", "u"])
    stage.topics.add("t", 6)
    member.beat()
    stage.topics.add("u", 1)
    member.beat()

    last = [each for each in stage.group().history if each.begins_rebalance][-2:]

    assert [each.reason for each in last] == [
        "topics have changed: t has 6 partitions instead of 4",
        "topics have changed: u is new",
    ]
    assert [each.epoch for each in last] == [2, 3]


def test_a_static_member_that_is_back_is_told_from_a_new_one() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    stage.joined("a", ["t"], instance_id="i").leave(epoch=-2)
    stage.joined("b", ["t"], instance_id="i")
    assert reasons_of(stage.shard)[-1] == "instance i is back as member b"


def test_the_history_goes_on_when_a_group_changes_its_protocol() -> None:
    stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0"})
    stage.topics.add("t", 4)
    classic = ClassicConsumer(stage)
    asked = classic.join()
    stage.advance(1)
    classic.joined(asked, assigns={"t": [0, 1, 2, 3]})
    assert any(f"member {classic.member_id} is new" in each for each in reasons_of(stage.shard))

    new = stage.joined("new", ["t"])
    upgraded = reasons_of(stage.shard)
    assert f"member {classic.member_id} is new" in upgraded[0]
    assert upgraded[-1] == "member new joined a classic group by the consumer protocol"

    new.leave()
    downgraded = reasons_of(stage.shard)
    assert downgraded[: len(upgraded)] == upgraded
    assert any("only classic members remain" in each for each in downgraded[len(upgraded) :])


def test_an_empty_group_keeps_its_history_when_members_of_another_protocol_come() -> None:
    stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0"})
    stage.topics.add("t", 4)
    stage.joined("new", ["t"]).leave()
    classic = ClassicConsumer(stage)
    classic.join()
    taken_over = reasons_of(stage.shard)
    assert taken_over[:2] == ["member new joined", "member new left"]
    assert any("client reason" in each for each in taken_over[2:])
