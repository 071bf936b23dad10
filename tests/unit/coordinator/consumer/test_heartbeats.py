"""What a heartbeat is answered: joining, staying, changing, leaving, and all that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kavka.coordinator.group.consumer.reconciliation import next_step
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kavka.protocol.messages.consumer_group_heartbeat import TopicPartitions
from tests.support.consumer_stage import GROUP, ConsumerStage

JOIN: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}


@pytest.fixture
def stage() -> ConsumerStage:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    return stage


@pytest.mark.parametrize(
    ("epoch", "fields", "message"),
    [
        (0, {**JOIN, "member_id": ""}, "MemberId can't be empty."),
        (0, {**JOIN, "member_id": " \t"}, "MemberId can't be empty."),
        (0, {**JOIN, "group_id": " "}, "GroupId can't be empty."),
        (0, {**JOIN, "instance_id": ""}, "InstanceId can't be empty."),
        (0, {**JOIN, "rack_id": ""}, "RackId can't be empty."),
        (0, {**JOIN, "rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        (0, {**JOIN, "topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            0,
            {**JOIN, "topic_partitions": [TopicPartitions(topic_id=bytes(16), partitions=[1])]},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            0,
            {**JOIN, "subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_kafkas_words(
    stage: ConsumerStage, epoch: int, fields: dict[str, Any], message: str
) -> None:
    asked = stage.heartbeat(**{"member_id": "a", "epoch": epoch, **fields})
    assert asked.error is ErrorCode.INVALID_REQUEST
    assert asked.errors[0].message == message
    assert stage.log == []


def test_an_assignor_that_is_not_served_is_refused_with_those_that_are(stage: ConsumerStage) -> None:
    asked = stage.heartbeat("a", 0, **JOIN, server_assignor="mine")
    assert asked.error is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert asked.errors[0].message == ("ServerAssignor mine is not supported. Supported assignors: uniform, range.")


def test_before_v1_a_member_is_given_its_id(stage: ConsumerStage) -> None:
    answer = stage.heartbeat("", 0, version=0, **JOIN).answer
    assert len(answer.member_id) == 22
    assert answer.member_id in stage.logged.members


def test_the_first_member_gets_everything_and_the_records_are_kafkas(stage: ConsumerStage) -> None:
    answer = stage.heartbeat("a", 0, **JOIN).answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5000)
    assert [each.partitions for each in answer.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert [type(record.key) for record in stage.records()] == [
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    ]


def test_a_heartbeat_without_news_writes_nothing_and_is_told_nothing(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"])
    written = len(stage.log)
    answer = stage.heartbeat("a", a.epoch).answer
    assert answer.assignment is None
    assert answer.member_epoch == a.epoch
    assert len(stage.log) == written


def test_a_full_request_is_told_everything_again(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"])
    answer = a.send(full=True).answer
    assert [each.partitions for each in answer.assignment.topic_partitions] == [[0, 1, 2, 3]]


def test_a_second_member_gets_its_half_once_the_first_has_given_it_up(stage: ConsumerStage) -> None:
    a, b = stage.joined("a", ["t"]), stage.joined("b", ["t"])
    assert (b.owns, b.epoch) == (set(), 2)
    b.beat()
    assert b.owns == set()
    a.beat(obeys=False)
    assert len(a.owns) == 4
    a.beat(obeys=False)
    b.beat()
    assert b.owns == set(), "a still owns all it had"
    a.obey()
    a.beat()
    b.beat()
    assert (len(a.owns), len(b.owns), a.owns & b.owns) == (2, 2, set())
    assert stage.group().state_name == "Stable"


@pytest.mark.parametrize(
    ("epoch", "owned", "accepted"),
    [(2, [], True), (1, [0], True), (1, [0, 1, 2, 3], False), (1, None, False), (3, [], False), (9, [], False)],
)
def test_only_its_epoch_is_accepted_or_the_one_before_with_nothing_too_much(
    stage: ConsumerStage, epoch: int, owned: list[int] | None, accepted: bool
) -> None:
    a, b = stage.joined("a", ["t"]), stage.joined("b", ["t"])
    for _ in range(3):
        a.beat()
        b.beat()
    assert a.epoch == 2
    keeps = sorted(number for _, number in a.owns)
    numbers = None if owned is None else (keeps[: len(owned)] if len(owned) < 3 else owned)
    topic_id = stage.topics.topic_id("t") or b""
    partitions = None if numbers is None else [TopicPartitions(topic_id=topic_id, partitions=numbers)]
    asked = stage.heartbeat("a", epoch, topic_partitions=partitions)
    if accepted:
        assert asked.answer.member_epoch == 2
    else:
        assert asked.error is ErrorCode.FENCED_MEMBER_EPOCH
        assert "must abandon all its partitions and rejoin" in (asked.errors[0].message or "")


def test_a_fenced_member_joins_anew_and_keeps_its_place(stage: ConsumerStage) -> None:
    stage.joined("a", ["t"])
    again = stage.heartbeat("a", 0, **{**JOIN, "rebalance_timeout_ms": 30_000}).answer
    assert again.member_epoch == 1
    assert [each.partitions for each in again.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert len(stage.logged.members) == 1


@pytest.mark.parametrize("epoch", [5, -1])
def test_members_and_groups_that_are_unknown(stage: ConsumerStage, epoch: int) -> None:
    assert stage.heartbeat("a", epoch).error is ErrorCode.GROUP_ID_NOT_FOUND
    stage.joined("a", ["t"])
    assert stage.heartbeat("b", epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat("b", epoch, instance_id="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_no_more_but_lets_its_members_stay() -> None:
    stage = ConsumerStage({"group.consumer.max.size": "1"})
    stage.topics.add("t", 1)
    a = stage.joined("a", ["t"])
    assert stage.heartbeat("b", 0, **JOIN).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not isinstance(a.beat(full=True), ErrorCode)


def test_leaving_hands_the_partitions_over(stage: ConsumerStage) -> None:
    a, b = stage.joined("a", ["t"]), stage.joined("b", ["t"])
    stage.settle(a, b)
    answer = a.leave().answer
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (-1, 0)
    assert stage.group().state_name == "Assigning"
    b.beat()
    assert len(b.owns) == 4
    b.leave()
    assert stage.group().state_name == "Empty"


def test_a_changed_subscription_moves_only_what_it_must(stage: ConsumerStage) -> None:
    stage.topics.add("u", 2)
    a = stage.joined("a", ["t"])
    a.topics = ["t", "u"]
    a.beat(full=True)
    assert len(a.owns) == 6
    a.topics = ["u"]
    a.beat(full=True)
    a.beat()
    assert a.owns == {("u", 0), ("u", 1)}


def test_topics_that_come_grow_and_go_are_noticed_by_the_next_heartbeat(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t", "later"])
    assert len(a.owns) == 4
    stage.topics.add("later", 2)
    a.beat()
    assert ("later", 1) in a.owns
    stage.topics.add("t", 5)
    a.beat()
    assert ("t", 4) in a.owns
    stage.topics.remove("t")
    a.beat()
    a.beat()
    assert a.owns == {("later", 0), ("later", 1)}
    stage.topics.add("other", 1)
    epoch = stage.logged.epoch
    a.beat()
    assert stage.logged.epoch == epoch, "not its topic"


def test_a_topic_made_anew_under_the_old_name_is_another_topic(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"])
    stage.topics.remove("t")
    stage.topics.add("t", 4)
    stage.settle(a)
    assert {topic_id: set(numbers) for topic_id, numbers in a.owned.items()} == {
        stage.topics.topic_id("t"): {0, 1, 2, 3}
    }


def test_most_members_votes_choose_the_assignor(stage: ConsumerStage) -> None:
    members = [
        stage.joined(name, ["t"], assignor=assignor)
        for name, assignor in zip("abc", ("range", None, "range"), strict=True)
    ]
    stage.settle(*members)
    described: list[Any] = stage.ask(lambda shard, reply: shard.consumer.describe([GROUP], reply)).answer
    assert described[0].assignor_name == "range"
    by_number = sorted((min(number for _, number in member.owns), member.member_id) for member in members)
    assert [name for _, name in by_number] == ["a", "b", "c"]


def test_a_static_member_leaves_for_a_while_and_gets_its_own_back_under_a_new_id(stage: ConsumerStage) -> None:
    a, b = stage.joined("a", ["t"], instance_id="i"), stage.joined("b", ["t"])
    stage.settle(a, b)
    had, epoch = a.owns, stage.logged.epoch
    assert a.leave(-2).answer.member_epoch == -2
    b.beat()
    assert stage.logged.epoch == epoch, "nobody else is troubled"
    back = stage.joined("a2", ["t"], instance_id="i")
    assert back.owns == had
    assert stage.logged.epoch == epoch
    assert set(stage.logged.members) == {"a2", "b"}
    assert stage.heartbeat("a", epoch, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_in_time_is_gone(stage: ConsumerStage) -> None:
    a, b = stage.joined("a", ["t"], instance_id="i"), stage.joined("b", ["t"])
    stage.settle(a, b)
    a.leave(-2)
    for _ in range(12):
        stage.advance(5000)
        b.beat()
    assert len(b.owns) == 4


def test_an_instance_id_in_use_is_not_given_to_another(stage: ConsumerStage) -> None:
    stage.joined("a", ["t"], instance_id="i")
    asked = stage.heartbeat("b", 0, **JOIN, instance_id="i")
    assert asked.error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert stage.heartbeat("b", 1, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat("b", -2, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_silent_member_is_fenced_when_its_session_ends_and_not_before(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"])
    for _ in range(10):
        stage.advance(44_000)
        a.beat()
    stage.advance(44_999)
    assert "a" in stage.logged.members
    stage.advance(1)
    assert stage.group().is_empty
    assert a.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.reason for each in stage.group().history][-1] == "member a is fenced: its session expired"


def test_a_member_that_does_not_give_up_its_partitions_is_fenced_by_its_rebalance_timeout(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"], rebalance_timeout_ms=10_000)
    b = stage.joined("b", ["t"])
    for _ in range(5):
        stage.advance(3_000)
        a.beat(obeys=False)
        b.beat()
    assert set(stage.logged.members) == {"b"}
    assert len(b.owns) == 4


def test_a_member_that_gives_up_in_time_has_no_such_deadline_any_more(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"], rebalance_timeout_ms=10_000)
    b = stage.joined("b", ["t"])
    stage.settle(a, b)
    for _ in range(10):
        stage.advance(9_000)
        a.beat()
        b.beat()
    assert set(stage.logged.members) == {"a", "b"}


def test_fencing_that_cannot_be_written_is_tried_again(stage: ConsumerStage) -> None:
    stage.joined("a", ["t"])
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    stage.advance(45_000)
    assert "a" in stage.logged.members
    stage.advance(500)
    assert stage.group().is_empty


def test_after_a_restart_everybody_has_a_full_session(stage: ConsumerStage) -> None:
    a = stage.joined("a", ["t"])
    stage.advance(44_000)
    stage.reload()
    stage.advance(44_000)
    assert not isinstance(a.beat(), ErrorCode)
    stage.reload()
    stage.advance(45_000)
    assert stage.group().is_empty


def test_a_failed_append_changes_nothing(stage: ConsumerStage) -> None:
    stage.joined("a", ["t"])
    before = dict(stage.logged.members), stage.logged.epoch
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)
    assert stage.heartbeat("b", 0, **JOIN).error is ErrorCode.NOT_COORDINATOR
    assert (stage.logged.members, stage.logged.epoch) == before
    assert set(stage.group().deadlines) == {"a"}


def test_answers_wait_until_what_they_say_is_committed(stage: ConsumerStage) -> None:
    stage.holds_replies = True
    asked = stage.heartbeat("a", 0, **JOIN)
    assert asked.waits
    stage.holds_replies = False
    stage.commit()
    assert asked.answer.member_epoch == 1


def test_a_deleted_group_leaves_neither_state_nor_timers(stage: ConsumerStage) -> None:
    stage.joined("a", ["t"]).leave()
    (result,) = stage.ask(lambda shard, reply: shard.delete_groups([GROUP], reply)).answer
    assert result.error_code == ErrorCode.NONE
    assert stage.shard.groups.get(GROUP) is None
    assert stage.replayed().groups.get(GROUP) is None
    assert "consumer" not in str(stage.timers.keys())


def test_a_topic_that_grows_while_a_decision_is_made_is_seen_by_the_next_heartbeat(
    stage: ConsumerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grows(*given: Any, **others: Any) -> Any:
        stage.topics.add("t", 6)
        return next_step(*given, **others)

    with monkeypatch.context() as patched:
        patched.setattr("kavka.coordinator.group.consumer.change.next_step", grows)
        a = stage.joined("a", ["t"])
    assert len(a.owns) == 4
    a.beat()
    assert len(a.owns) == 6


def test_a_static_member_whose_join_was_not_answered_may_ask_again(stage: ConsumerStage) -> None:
    lost = stage.heartbeat("a", 0, instance_id="i", **JOIN).answer
    again = stage.heartbeat("a", 0, instance_id="i", **JOIN).answer
    assert (again.member_epoch, again.assignment) == (lost.member_epoch, lost.assignment)
    assert stage.heartbeat("b", 0, instance_id="i", **JOIN).error is ErrorCode.UNRELEASED_INSTANCE_ID
    beat = stage.heartbeat("a", again.member_epoch, instance_id="i")
    assert beat.answer.error_code == ErrorCode.NONE


def test_a_groups_own_settings_count_from_the_next_heartbeat_on() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", partitions=1)
    member = stage.joined("a", ["t"])
    assert stage.heartbeat("a", member.epoch).answer.heartbeat_interval_ms == 5000

    stage.group_overrides[GROUP] = {
        "consumer.heartbeat.interval.ms": "7000",
        "consumer.session.timeout.ms": "50000",
    }

    assert stage.heartbeat("a", member.epoch).answer.heartbeat_interval_ms == 7000
    stage.advance(49_999)
    assert "a" in stage.logged.members
    stage.advance(2)
    assert "a" not in stage.logged.members


def test_a_full_group_takes_a_static_member_back_but_nobody_new() -> None:
    stage = ConsumerStage({"group.consumer.max.size": "1"})
    stage.topics.add("t", 2)
    stage.joined("a", ["t"], instance_id="i").leave(-2)
    assert stage.heartbeat("c", 0, instance_id="other", **JOIN).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    back = stage.joined("b", ["t"], instance_id="i")
    assert len(back.owns) == 2
    assert stage.heartbeat("c", 0, instance_id="i", **JOIN).error is ErrorCode.UNRELEASED_INSTANCE_ID
