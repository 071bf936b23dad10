"""Offsets that go with their topic."""

import pytest

from kavka.coordinator.group.offsets.deletion import DELETIONS
from kavka.coordinator.group.offsets.topic_deletion import LOOKED_AT_A_TURN, RETRY_MS
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from tests.support.offset_stage import TOPIC, OffsetStage

ONE = Producer(7, 0)


@pytest.mark.parametrize("again", [False, True])
def test_offsets_go_with_their_topic(again: bool) -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1, ("others", 0): 1})
    stage.put_offsets({(TOPIC, 3): 1}, "more")
    stage.txn_commit({(TOPIC, 5): 1}, ONE)

    stage.topics.remove(TOPIC)
    if again:
        stage.topics.add(TOPIC, partitions=10)
    stage.topics_changed()
    stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {("others", 0): 1}
    assert stage.offsets("more") == {}
    assert stage.counts[DELETIONS] == 3


@pytest.mark.parametrize("is_replayed", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_offsets_go_with_a_topic_that_is_deleted_while_they_are_loaded(*, again: bool, is_replayed: bool) -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 42, ("others", 0): 1})

    def change_topics() -> None:
        stage.topics.remove(TOPIC)
        if again:
            stage.topics.add(TOPIC, partitions=10)

    if is_replayed:
        stage.reload(meanwhile=change_topics)
    else:
        stage.reload(before=change_topics)
    stage.put_offsets({("others", 1): 7, **({(TOPIC, 1): 7} if again else {})})
    stage.advance(0)

    kept = {("others", 0): 1, ("others", 1): 7, **({(TOPIC, 1): 7} if again else {})}
    assert stage.offsets() == kept
    stage.topics.add("unrelated")
    stage.topics_changed()
    stage.advance(RETRY_MS)
    assert stage.offsets() == kept
    assert stage.counts[DELETIONS] == 1


def test_a_deletion_that_cannot_be_appended_is_tried_again() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})
    stage.topics.remove(TOPIC)
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    stage.topics_changed()
    assert (stage.offsets(), stage.counts[DELETIONS]) == ({(TOPIC, 0): 1}, 0)
    stage.topics.add("more")
    stage.topics_changed()

    assert (stage.offsets(), stage.counts[DELETIONS]) == ({}, 1)


@pytest.mark.parametrize("changes_again", [False, True])
@pytest.mark.parametrize("is_transactional", [False, True])
def test_offsets_of_a_deleted_topic_go_in_turns_but_for_those_of_its_successor(
    *, is_transactional: bool, changes_again: bool
) -> None:
    stage = OffsetStage()
    last = 3 * LOOKED_AT_A_TURN
    stage.put_offsets({(TOPIC, partition): 1 for partition in range(last + 1)})
    stage.put_offsets({("others", 0): 1})
    before = len(stage.log)

    stage.topics.remove(TOPIC)
    stage.topics.add(TOPIC, partitions=9_999)
    stage.topics_changed()
    assert 0 < len(stage.log) - before <= LOOKED_AT_A_TURN
    if is_transactional:
        stage.txn_commit({(TOPIC, last): 5}, ONE)
    else:
        stage.put_offsets({(TOPIC, last): 5})
    if changes_again:
        stage.topics.add("more")
        stage.topics_changed()
    stage.advance(1)
    if is_transactional:
        stage.end_transaction(ONE, committed=True)

    assert stage.offsets() == {(TOPIC, last): 5, ("others", 0): 1}
    assert stage.counts[DELETIONS] == last


def test_offsets_of_many_groups_go_in_turns() -> None:
    stage = OffsetStage()
    groups = [f"g{number}" for number in range(2 * LOOKED_AT_A_TURN)]
    for group in groups:
        stage.put_offsets({(TOPIC, 0): 1}, group)
    before = len(stage.log)

    stage.topics.remove(TOPIC)
    stage.topics_changed()
    assert 0 < len(stage.log) - before <= LOOKED_AT_A_TURN
    stage.advance(1)

    assert len(stage.log) - before == len(groups)


def test_a_topic_that_goes_while_anothers_offsets_go_has_its_turns_next() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, partition): 1 for partition in range(2 * LOOKED_AT_A_TURN)})
    stage.put_offsets({("others", 0): 1}, "another")
    for topic in (TOPIC, "others"):
        stage.topics.remove(topic)
        stage.topics_changed()

    stage.advance(1)

    assert (stage.offsets(), stage.offsets("another")) == ({}, {})


def test_a_turn_that_cannot_be_appended_is_tried_again_without_a_change_of_topics() -> None:
    stage = OffsetStage()
    count = 2 * LOOKED_AT_A_TURN
    stage.put_offsets({(TOPIC, partition): 1 for partition in range(count)})
    stage.topics.remove(TOPIC)
    stage.topics_changed()
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    stage.advance(RETRY_MS - 1)
    assert 0 < len(stage.offsets()) < count
    stage.advance(2)

    assert stage.offsets() == {}
    assert stage.counts[DELETIONS] == count


def test_offsets_of_topics_that_are_not_known_yet_stay() -> None:
    stage = OffsetStage(topics=())
    stage.put_offsets({(TOPIC, 0): 1})
    stage.reload()

    stage.topics.add("others")
    stage.topics_changed()
    assert stage.offsets() == {(TOPIC, 0): 1}
    stage.topics.add(TOPIC)
    stage.topics_changed()
    assert stage.offsets() == {(TOPIC, 0): 1}
    stage.topics.remove(TOPIC)
    stage.topics_changed()

    assert stage.offsets() == {}
