"""Commits of members and of consumers without a group: in order, tried again, refused."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any

import pytest

from kavka.client.api_errors import (
    GroupAuthorizationError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownTopicIdError,
)
from kavka.client.consumer.group.errors import CommitFailedError, RetriableCommitFailedError
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.topic_partition import TopicPartition
from kavka.coordinator.group.group import Client
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.offset_commit import OffsetCommitRequest
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.group_broker import Fate, GroupBroker
from tests.support.group_players import Player, play

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


@pytest.fixture
def broker() -> GroupBroker:
    return GroupBroker({"t": 2})


@pytest.fixture
def member(broker: GroupBroker) -> Player:
    member = Player(broker, "a")
    play(broker, [member], until=lambda: member.told == {T0, T1})
    return member


def at(offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {T0: OffsetAndMetadata(offset)}


def finish(player: Player, future: Future[Any], limit_ms: float = 60_000) -> Future[Any]:
    assert player.wait(future, player.now_ms() + limit_ms)
    return future


def commits_only(fates: Collection[Fate]) -> Callable[[Any], Fate]:
    """These, one after the other, for commits."""
    left = list(fates)
    return lambda request: left.pop(0) if left and isinstance(request, OffsetCommitRequest) else Fate()


def test_a_commit_keeps_epoch_and_metadata(broker: GroupBroker, member: Player) -> None:
    finish(member, member.group.commit({T0: OffsetAndMetadata(7, 3, "seven")}, member.now_ms() + 1_000)).result()
    found = finish(member, member.group.offsets_of([T0, T1], member.now_ms() + 1_000)).result()
    assert found == {T0: OffsetAndMetadata(7, 3, "seven")}


@pytest.mark.parametrize(
    "fate",
    [
        Fate(loses_request=True),
        Fate(loses_answer=True),
        Fate(doubles=True),
        Fate(code=ErrorCode.NOT_COORDINATOR),
        Fate(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        Fate(code=ErrorCode.REQUEST_TIMED_OUT),
        Fate(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_passes_is_tried_again_until_the_deadline(broker: GroupBroker, member: Player, fate: Fate) -> None:
    member.network.fate = commits_only([fate, fate])
    finish(member, member.group.commit(at(5), member.now_ms() + 10_000)).result()
    assert broker.committed("t", 0) == 5


def test_a_commit_that_stays_unanswered_times_out(broker: GroupBroker, member: Player) -> None:
    member.network.cut()
    future = finish(member, member.group.commit(at(5), member.now_ms() + 2_000))
    assert isinstance(future.exception(), KafkaTimeoutError)
    assert broker.committed("t", 0) == -1


def test_asynchronous_ones_are_tried_once_and_called_back_in_order(broker: GroupBroker, member: Player) -> None:
    member.network.fate = commits_only([Fate(), Fate(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), Fate()])
    heard: list[tuple[int, type[Exception] | None]] = []
    for offset in (1, 2, 3):
        member.group.commit_async(
            at(offset), lambda offsets, error: heard.append((offsets[T0].offset, type(error) if error else None))
        )
    future = finish(member, member.group.commit(at(4), member.now_ms() + 1_000))
    member.group.run_callbacks()
    future.result()
    assert heard == [(1, None), (2, RetriableCommitFailedError), (3, None)]
    assert broker.committed("t", 0) == 4


def test_an_older_commit_does_not_come_after_a_newer_one(broker: GroupBroker, member: Player) -> None:
    member.network.fate = commits_only([Fate(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)])
    older = member.group.commit(at(1), member.now_ms() + 10_000)
    member.group.commit_async(at(2))
    finish(member, older).result()
    finish(member, member.group.commit({T1: OffsetAndMetadata(0)}, member.now_ms() + 1_000)).result()
    assert broker.committed("t", 0) == 2


def test_a_commit_that_times_out_behind_an_unanswered_one_keeps_nobody_busy(
    broker: GroupBroker, member: Player
) -> None:
    member.network.fate = commits_only([Fate(delay_ms=25_000)])
    member.group.commit_async(at(1))
    late = finish(member, member.group.commit(at(2), member.now_ms() + 1_000))
    assert isinstance(late.exception(), KafkaTimeoutError)
    assert member.group.work(member.now_ms()) > 0, "the client's thread would not sleep before the first is answered"
    newer = member.group.commit(at(3), member.now_ms() + 60_000)
    finish(member, newer).result()
    sent = [request for request in member.network.sent if isinstance(request, OffsetCommitRequest)]
    assert [request.topics[0].partitions[0].committed_offset for request in sent] == [1, 3]


def test_a_commit_that_has_failed_is_not_sent_behind_an_unanswered_one(broker: GroupBroker, member: Player) -> None:
    member.network.fate = commits_only([Fate(delay_ms=5_000)])
    member.group.commit_async(at(1))
    refuses = member.group._membership.commit_identity
    member.own()
    member.group._membership.commit_identity = RebalanceInProgressError  # type: ignore[method-assign]  # as while the group rebalances
    heard: list[Exception | None] = []
    member.group.commit_async(at(2), lambda offsets, error: heard.append(error))
    member.own()
    member.group._membership.commit_identity = refuses  # type: ignore[method-assign]  # back again
    finish(member, member.group.commit({T1: OffsetAndMetadata(0)}, member.now_ms() + 60_000)).result()
    member.group.run_callbacks()
    assert [type(error) for error in heard] == [RebalanceInProgressError]
    assert broker.committed("t", 0) == 1


def test_a_callback_that_raises_is_raised_by_poll_after_the_others(broker: GroupBroker, member: Player) -> None:
    heard = []

    def fails(_offsets: Any, _error: Exception | None) -> None:
        raise ValueError("of the callback")

    member.group.commit_async(at(1), fails)
    member.group.commit_async(at(2), lambda offsets, error: heard.append(error))
    finish(member, member.group.commit(at(3), member.now_ms() + 1_000))
    with pytest.raises(ValueError, match="of the callback"):
        member.group.poll_began(member.now_ms())
    assert heard == [None]


def test_who_is_no_member_any_more_cannot_commit(broker: GroupBroker, member: Player) -> None:
    member.network.cut()
    broker.advance(60_000)
    member.network.is_cut = False
    future = finish(member, member.group.commit(at(5), member.now_ms() + 5_000))
    assert isinstance(future.exception(), CommitFailedError)
    play(broker, [member], until=lambda: ("lost", {T0, T1}) in member.events)


def test_while_the_group_rebalances_a_commit_is_refused_as_such(broker: GroupBroker, member: Player) -> None:
    other = Player(broker, "b")
    play(broker, [other], until=lambda: len(broker.members()) == 2)
    for _ in range(400):
        member.own()
        broker.advance(20)
    finish(member, member.group.commit(at(5), member.now_ms() + 1_000)).result()
    member.poll(commits=False)
    member.own()
    member.own()
    future = finish(member, member.group.commit(at(6), member.now_ms() + 1_000))
    assert isinstance(future.exception(), RebalanceInProgressError)


def test_a_commit_by_hand_beside_a_live_group_is_refused(broker: GroupBroker, member: Player) -> None:
    alone = Player(broker, "alone", subscribes=False)
    future = finish(alone, alone.group.commit(at(9), alone.now_ms() + 5_000))
    with pytest.raises(CommitFailedError, match="the group has members"):
        future.result()
    member.close()
    finish(alone, alone.group.commit(at(9), alone.now_ms() + 5_000)).result()
    assert broker.committed("t", 0) == 9


def test_automatic_commits_go_by_the_interval_and_before_a_rebalance(broker: GroupBroker) -> None:
    a = Player(broker, "a", enable_auto_commit=True, auto_commit_interval_ms=5_000, heartbeat_interval_ms=300)
    play(broker, [a], until=lambda: bool(a.assignments.at.get(T0)))
    began_ms = broker.now_ms
    play(broker, [a], until=lambda: broker.committed("t", 0) > 0, limit_ms=6_000)
    assert broker.now_ms - began_ms > 4_000
    b = Player(broker, "b", enable_auto_commit=True, auto_commit_interval_ms=1_000_000, heartbeat_interval_ms=300)
    told: list[tuple[int, int | None]] = []
    a.on_told = lambda player, what, partitions: told.extend(
        (broker.committed(*each), a.assignments.at[each]) for each in partitions if what == "revoked"
    )
    play(broker, [a, b], until=lambda: bool(b.told))
    assert len(told) == 2
    assert all(committed == read for committed, read in told)


@pytest.mark.parametrize("is_committed", [True, False])
def test_offsets_of_an_open_transaction_are_waited_for(broker: GroupBroker, member: Player, is_committed: bool) -> None:
    producer = Producer(7, 0)
    topic = TxnOffsetCommitRequestTopic(
        name="t",
        partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=9, committed_metadata=None)],
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=7, producer_epoch=0, topics=[topic], member_id=""
    )
    finish(member, member.group.commit(at(5), member.now_ms() + 1_000)).result()
    client = Client("c", "/127.0.0.1", 3)
    answer = broker.stage.ask(lambda shard, reply: shard.txn_commit(request, client, reply)).answer
    assert answer.topics[0].partitions[0].error_code == 0
    future = member.group.offsets_of([T0], member.now_ms() + 10_000)
    assert not member.wait(future, member.now_ms() + 2_000)
    broker.stage.end_transaction(producer, committed=is_committed)
    assert finish(member, future).result()[T0].offset == (9 if is_committed else 5)


@pytest.mark.parametrize(
    "offsets",
    [
        *({T0: place} for place in (5.0, "five", (5, "epoch"), -1, 2**63, (5, 2**31), (5, -2), (5, None, b"x"), None)),
        {"t": 5},
        {("t", "0"): 5},
    ],
)
def test_what_is_no_offset_is_refused_where_it_is_given(member: Player, offsets: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        member.group.commit(offsets, member.now_ms() + 1_000)
    with pytest.raises((TypeError, ValueError)):
        member.group.commit_async(offsets)
    finish(member, member.group.commit(at(3), member.now_ms() + 1_000)).result()


def test_a_plain_number_is_an_offset(broker: GroupBroker, member: Player) -> None:
    plain: Any = {("t", 0): 5}
    finish(member, member.group.commit(plain, member.now_ms() + 1_000)).result()
    assert broker.committed("t", 0) == 5


def test_commits_name_topics_by_their_ids(broker: GroupBroker, member: Player) -> None:
    finish(member, member.group.commit(at(5), member.now_ms() + 1_000)).result()
    (topic,) = next(request for request in member.network.sent if isinstance(request, OffsetCommitRequest)).topics
    assert topic.topic_id == broker.stage.topics.topic_id("t")
    assert broker.committed("t", 0) == 5


def test_a_topic_that_was_made_anew_gets_no_offset_of_the_former_one(broker: GroupBroker, member: Player) -> None:
    broker.stage.topics.remove("t")
    broker.stage.topics.add("t", 2)
    broker.stage.topics_changed()
    before = broker.committed("t", 0)
    future = finish(member, member.group.commit(at(1_000), member.now_ms() + 30_000))
    assert isinstance(future.exception(), UnknownTopicIdError)
    assert broker.committed("t", 0) == before


def test_who_may_not_use_the_group_hears_it_from_all_that_was_asked(broker: GroupBroker, member: Player) -> None:
    def fate(request: Any) -> Fate:
        is_search = isinstance(request, FindCoordinatorRequest)
        return Fate(code=ErrorCode.GROUP_AUTHORIZATION_FAILED) if is_search else Fate()

    member.network.fate = fate
    member.group._coordinator.lost()
    asked: list[Future[Any]] = [member.group.commit(at(offset), member.now_ms() + 20_000) for offset in (1, 2)]
    asked += [member.group.offsets_of([each], member.now_ms() + 20_000) for each in (T0, T1)]
    began_ms = member.now_ms()
    for future in asked:
        assert isinstance(finish(member, future).exception(), GroupAuthorizationError)
    assert member.now_ms() - began_ms < 1_000
    member.poll(commits=False)
    assert isinstance(member.errors[-1], GroupAuthorizationError)
    sent = len(member.network.sent)
    for _ in range(1_000):
        member.own()
        broker.advance(1)
    assert len(member.network.sent) - sent <= 12, "it is looked for again, but not without end"
    member.network.fate = lambda request: Fate()
    broker.advance(1_000)
    member.own()
    finish(member, member.group.commit(at(3), member.now_ms() + 20_000)).result()


def test_who_asks_behind_another_one_for_what_is_stored_is_told_in_time_that_nobody_knows(member: Player) -> None:
    member.network.cut()
    member.group.offsets_of([T0], member.now_ms() + 60_000)
    deadline_ms = member.now_ms() + 1_000
    future = finish(member, member.group.offsets_of([T1], deadline_ms))
    assert isinstance(future.exception(), KafkaTimeoutError)
    assert member.now_ms() - deadline_ms < 100


@pytest.mark.parametrize("partitions", [["t"], ["tt"], [("t", 0, 0)], [("t", "0")]])
def test_offsets_of_what_is_no_partition_are_not_asked_for(member: Player, partitions: Any) -> None:
    with pytest.raises(TypeError):
        member.group.offsets_of(partitions, member.now_ms() + 1_000)
