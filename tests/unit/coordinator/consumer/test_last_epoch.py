"""A consumer group whose epoch is the last that its record has room for: it begins anew, and nothing of it is stuck."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from kavka.coordinator.group.consumer import change, records
from kavka.coordinator.group.consumer.change import LAST_EPOCH
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import ErrorCode
from tests.support.classic_consumer import ClassicConsumer
from tests.support.consumer_stage import GROUP, ConsumerStage, PlayedMember, facts
from tests.unit.coordinator.consumer.test_model import ConsumerGroupModel


@pytest.fixture
def stage() -> ConsumerStage:
    stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0"})
    stage.topics.add("t", 4)
    return stage


def age(stage: ConsumerStage, *members: PlayedMember) -> None:
    """The group has been through all epochs but the last."""
    written = [records.group_epoch(GROUP, LAST_EPOCH), records.target_epoch(GROUP, LAST_EPOCH)]
    for member in stage.logged.members.values():
        assert member.epoch == stage.logged.epoch
        since = {topic_id: dict.fromkeys(numbers, LAST_EPOCH) for topic_id, numbers in member.assigned.items()}
        aged = member._replace(epoch=LAST_EPOCH, previous_epoch=LAST_EPOCH - 1, assignment_epochs=since)
        written.append(records.current_assignment(GROUP, aged))
    stage.run(lambda _: Result(written))
    for played in members:
        played.epoch = LAST_EPOCH


def two_members(stage: ConsumerStage) -> tuple[PlayedMember, PlayedMember]:
    a, b = stage.joined("a", ["t"]), stage.joined("b", ["t"])
    stage.settle(a, b)
    age(stage, a, b)
    return a, b


def replays_as_it_is(stage: ConsumerStage) -> None:
    replayed: Any = stage.replayed().groups.get(GROUP)
    assert facts(stage.logged) == facts(replayed.logged)


def test_a_member_that_comes_in_the_last_epoch_begins_the_first_and_the_others_join_again(stage: ConsumerStage) -> None:
    a, b = two_members(stage)
    had = a.owns

    c = stage.joined("c", ["t"])

    assert (stage.logged.epoch, c.epoch, c.owns) == (1, 1, set())
    assert a.beat() is ErrorCode.FENCED_MEMBER_EPOCH
    assert a.owns == set()
    a.join()
    assert a.owns
    assert a.owns <= had
    stage.settle(a, b, c)
    assert sorted([*a.owns, *b.owns, *c.owns]) == [("t", number) for number in range(4)]
    replays_as_it_is(stage)


def test_who_changes_its_subscription_in_the_last_epoch_is_fenced_itself(stage: ConsumerStage) -> None:
    stage.topics.add("u", 1)
    a, b = two_members(stage)
    a.topics.append("u")

    assert a.beat(full=True) is ErrorCode.FENCED_MEMBER_EPOCH

    stage.settle(a, b)
    assert ("u", 0) in a.owns
    replays_as_it_is(stage)


@pytest.mark.parametrize("how", ["leaves", "is silent"])
def test_members_may_go_in_the_last_epoch_and_the_group_be_deleted(stage: ConsumerStage, how: str) -> None:
    a, b = two_members(stage)
    if how == "leaves":
        assert a.leave().answer.member_epoch == -1
        assert b.leave().answer.member_epoch == -1
    else:
        stage.advance(45_000)

    assert stage.refused == []
    assert stage.group().is_empty
    (deleted,) = stage.ask(lambda shard, reply: shard.delete_groups([GROUP], reply)).answer
    assert deleted.error_code == ErrorCode.NONE
    assert stage.shard.groups.get(GROUP) is None


def test_nothing_is_committed_by_an_epoch_of_before(stage: ConsumerStage) -> None:
    a, b = two_members(stage)
    b.leave()
    group = stage.group()

    with pytest.raises(Exception, match="STALE_MEMBER_EPOCH"):
        group.validate_offset_commit("a", None, LAST_EPOCH, transactional=False, api_version=9)
    a.beat()
    a.join()
    assert group.validate_offset_commit("a", None, a.epoch, transactional=False, api_version=9) is None


def test_a_static_member_that_is_away_gets_its_own_back(stage: ConsumerStage) -> None:
    a, b = stage.joined("a", ["t"], instance_id="i"), stage.joined("b", ["t"])
    stage.settle(a, b)
    age(stage, a, b)
    had = a.owns
    a.leave(-2)
    c = stage.joined("c", ["t"])
    assert stage.logged.epoch == 1
    assert stage.logged.members["a"].epoch == -2

    back = stage.joined("a2", ["t"], instance_id="i")
    stage.settle(b, c, back)

    assert back.owns
    assert back.owns <= had
    replays_as_it_is(stage)


def test_a_classic_member_of_the_group_joins_again(stage: ConsumerStage) -> None:
    classic = ClassicConsumer(stage)
    asked = classic.join()
    stage.advance(1)
    classic.joined(asked, assigns={"t": [0, 1, 2, 3]})
    a = stage.joined("a", ["t"])
    for _ in range(4):
        classic.follow(shall_own=2)
        a.beat()
    age(stage, a)
    classic.generation = LAST_EPOCH
    assert classic.beat() is ErrorCode.NONE

    b = stage.joined("b", ["t"])

    assert classic.beat() is ErrorCode.ILLEGAL_GENERATION
    classic.joined(classic.join())
    assert classic.generation <= stage.logged.epoch
    assert stage.logged.epoch < 5
    replays_as_it_is(stage)
    assert b.epoch == 1


class OldGroups(ConsumerGroupModel):
    """As ever, but that epochs end soon."""

    @invariant()
    def epochs_never_go_back(self) -> None:
        """They do; but none is beyond the group's."""
        super_group: Any = self.stage.shard.groups.get(GROUP)
        if super_group is not None and hasattr(super_group, "logged"):
            logged = super_group.logged
            assert logged.target_epoch <= logged.epoch <= change.LAST_EPOCH
            assert all(member.epoch <= logged.target_epoch for member in logged.members.values())


def test_whatever_happens_a_partition_has_one_owner_and_all_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "LAST_EPOCH", 4)
    run_state_machine_as_test(
        OldGroups,
        settings=settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
