"""What members of a group are told, and when, as members come, go, and fall silent. Both protocols."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kavka.client.consumer.group.assignors.range import RangeAssignor
from kavka.client.consumer.group.port import GroupMembershipOperation
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.support.group_broker import GroupBroker
from tests.support.group_players import Player, play

EVERY_WAY: list[Any] = [
    pytest.param({"strategies": ["range"]}, id="eager"),
    pytest.param({"strategies": ["cooperative-sticky"]}, id="cooperative"),
    pytest.param({"uses_consumer_protocol": True}, id="consumer"),
]
LIVELY: dict[str, Any] = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 500, "max_poll_interval_ms": 60_000}


def all_of(topic: str, count: int) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in range(count)}


def shared(players: list[Player], count: int, topic: str = "t") -> bool:
    """Whether each partition belongs to one player, evenly."""
    owned = [each for player in players for each in player.told]
    sizes = [len(player.told) for player in players]
    return sorted(owned) == sorted(all_of(topic, count)) and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("way", EVERY_WAY)
def test_one_member_gets_everything(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way)
    play(broker, [a], until=lambda: a.told == all_of("t", 4))
    assert a.events == [("assigned", all_of("t", 4))]
    assert not a.errors


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_second_member_gets_half_and_the_first_gives_it_up_before(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way, **LIVELY)
    play(broker, [a], until=lambda: len(a.told) == 4)
    b = Player(broker, "b", **way, **LIVELY)
    b.on_told = lambda player, what, partitions: _assert_free(a, partitions) if what == "assigned" else None
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    assert not a.errors + b.errors


def _assert_free(other: Player, partitions: Any) -> None:
    assert not other.told & set(partitions)


@pytest.mark.parametrize("way", EVERY_WAY[1:])
def test_who_keeps_something_goes_on_with_it(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way, **LIVELY)
    play(broker, [a], until=lambda: len(a.told) == 4)
    b = Player(broker, "b", **way, **LIVELY)
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    revoked = set().union(*(partitions for what, partitions in a.events if what == "revoked"))
    assert len(revoked) == 2
    assert not a.told & revoked


@pytest.mark.parametrize("way", EVERY_WAY)
def test_who_closes_leaves_to_the_others_and_commits(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way, **LIVELY, enable_auto_commit=True)
    b = Player(broker, "b", **way, **LIVELY, enable_auto_commit=True)
    play(broker, [a, b], until=lambda: shared([a, b], 4) and all(a.assignments.at.values()))
    left = dict(a.assignments.at)
    a.close()
    assert a.events[-1] == ("revoked", set(left))
    assert {partition: broker.committed(*partition) for partition in left} == left
    play(broker, [b], until=lambda: len(b.told) == 4, limit_ms=5_000)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_static_member_that_closes_keeps_its_place(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way, **LIVELY, group_instance_id="one")
    b = Player(broker, "b", **way, **LIVELY, group_instance_id="two")
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    mine, theirs = set(a.told), set(b.told)
    a.close()
    again = Player(broker, "a2", **way, **LIVELY, group_instance_id="one")
    play(broker, [again, b], until=lambda: bool(again.told), limit_ms=5_000)
    assert (again.told, b.told) == (mine, theirs)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_static_member_that_is_told_to_leave_does(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way, **LIVELY, group_instance_id="one")
    b = Player(broker, "b", **way, **LIVELY, group_instance_id="two")
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    a.close(GroupMembershipOperation.LEAVE_GROUP)
    play(broker, [b], until=lambda: len(b.told) == 4, limit_ms=5_000)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_who_does_not_poll_leaves_and_is_told_so_by_the_next_poll(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    settings = {**LIVELY, "max_poll_interval_ms": 3_000}
    a = Player(broker, "a", **way, **settings)
    b = Player(broker, "b", **way, **settings)
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    mine = set(a.told)
    for _ in range(400):
        a.own()
        b.own()
        b.poll()
        broker.advance(20)
    assert b.told == all_of("t", 4)
    assert a.told == mine
    a.poll()
    assert ("lost", mine) in a.events or not a.told
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    assert ("lost", mine) in a.events


@pytest.mark.parametrize("way", EVERY_WAY)
def test_who_is_stuck_in_a_listener_leaves_as_one_that_does_not_poll(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    settings = {**LIVELY, "max_poll_interval_ms": 3_000}
    a = Player(broker, "a", **way, **settings)
    play(broker, [a], until=lambda: len(a.told) == 4)
    b = Player(broker, "b", **way, **settings)
    left: list[bool] = []

    def is_stuck(player: Player, what: str, partitions: Any) -> None:
        if what != "revoked" or left:
            return
        mine = a.group._membership.identity.member_id
        assert mine in broker.members()
        for _ in range(200):
            a.own()
            broker.advance(20)
        left.append(mine not in broker.members())

    a.on_told = is_stuck
    play(broker, [a, b], until=lambda: bool(left))
    assert left == [True]
    play(broker, [a, b], until=lambda: shared([a, b], 4))


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_topic_that_is_subscribed_to_no_more_is_not_read_on(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 2, "u": 2})
    a = Player(broker, "a", **way, **LIVELY)
    play(broker, [a], until=lambda: len(a.told) == 2 and all(a.assignments.at.values()))
    places, mine = a.assignments, all_of("t", 2)
    before = dict(places.at)
    a.group.subscribe(["u"], a)
    assert not any(places.gives_out(partition) for partition in mine)
    a.poll()
    assert places.at == before
    a.group.subscribe(["t"], a)
    assert all(places.gives_out(partition) for partition in mine)
    a.group.subscribe(["u"], a)
    play(broker, [a], until=lambda: a.told == all_of("u", 2))
    play(broker, [a], until=lambda: all(places.gives_out(partition) for partition in a.told))


@pytest.mark.parametrize("way", EVERY_WAY)
def test_who_is_cut_off_loses_to_the_others_and_comes_back(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4}, {"group.consumer.session.timeout.ms": "45000"})
    a = Player(broker, "a", **way, **LIVELY)
    b = Player(broker, "b", **way, **LIVELY)
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    a.network.cut()
    play(broker, [a, b], until=lambda: len(b.told) == 4, limit_ms=120_000)
    a.network.is_cut = False
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    assert [what for what, _ in a.events].count("lost") == 1


@pytest.mark.parametrize("way", EVERY_WAY)
def test_new_partitions_are_shared_out(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", **way, **LIVELY)
    play(broker, [a], until=lambda: len(a.told) == 2)
    broker.stage.topics.add("t", 4)
    broker.stage.topics_changed()
    a.metadata.request_update()
    play(broker, [a], until=lambda: a.told == all_of("t", 4))


@pytest.mark.parametrize("way", EVERY_WAY)
def test_another_subscription_takes_the_place_of_the_first(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 2, "u": 3})
    a = Player(broker, "a", **way, **LIVELY)
    play(broker, [a], until=lambda: a.told == all_of("t", 2))
    a.group.subscribe(["u"], a)
    play(broker, [a], until=lambda: a.told == all_of("u", 3))
    a.group.unsubscribe()
    assert a.told == set()
    assert not a.assignments.at
    a.group.subscribe(["t"], a)
    play(broker, [a], until=lambda: a.told == all_of("t", 2))
    assert not a.errors


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_pattern_finds_topics_and_those_that_come(way: dict[str, Any]) -> None:
    import re

    broker = GroupBroker({"t1": 1, "u": 1})
    a = Player(broker, "a", subscribes=False, **way, **LIVELY)
    a.group.subscribe_pattern(re.compile("t.*"), a)
    play(broker, [a], until=lambda: a.told == all_of("t1", 1))
    broker.stage.topics.add("t2", 2)
    broker.stage.topics_changed()
    a.metadata.request_update()
    play(broker, [a], until=lambda: a.told == all_of("t1", 1) | all_of("t2", 2))


def test_metadata_that_lack_an_assigned_topic_for_a_moment_take_nothing_away() -> None:
    """A broker that has just begun answers so; what is assigned is the coordinator's to say."""
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", uses_consumer_protocol=True, **LIVELY)
    play(broker, [a], until=lambda: len(a.told) == 2)
    complete = broker.metadata

    def lacking() -> Any:
        answer = complete()
        for topic in answer.topics:
            topic.error_code, topic.topic_id, topic.partitions = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, bytes(16), []
        return answer

    broker.metadata = lacking  # type: ignore[method-assign]  # another answer for a while
    a.metadata.request_update()
    play(broker, [a], until=lambda: not a.metadata.cluster.topics["t"].partitions)
    a.group._membership.subscribe(frozenset({"t"}), None)
    sent = len(a.network.sent)
    play(broker, [a], until=lambda: len(a.network.sent) > sent + 3)
    owned = [request.topic_partitions for request in a.network.sent[sent:] if hasattr(request, "topic_partitions")]
    assert owned == [None] * len(owned), "the coordinator was told that something else is owned"
    broker.metadata = complete  # type: ignore[method-assign]  # back again
    a.metadata.request_update()
    play(broker, [a], until=lambda: bool(a.metadata.cluster.topics["t"].partitions))
    assert a.events == [("assigned", all_of("t", 2))]


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("what", ["assigned", "revoked"])
def test_a_listener_may_poll(way: dict[str, Any], what: str) -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **way, **LIVELY)
    b = Player(broker, "b", **way, **LIVELY)
    a.on_told = lambda player, told, partitions: player.poll() if told == what else None
    play(broker, [a], until=lambda: len(a.told) == 4)
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    assert not a.errors + b.errors


def test_nothing_is_asked_before_the_first_poll() -> None:
    broker = GroupBroker({"t": 1})
    a = Player(broker, "a")
    for _ in range(20):
        a.own()
        broker.advance(100)
    assert a.network.sent == []


def test_a_static_leader_that_comes_back_still_looks_after_the_topics() -> None:
    broker = GroupBroker({"t": 4})
    a = Player(broker, "a", **LIVELY, group_instance_id="one")
    play(broker, [a], until=lambda: len(a.told) == 4)
    b = Player(broker, "b", **LIVELY, group_instance_id="two")
    play(broker, [a, b], until=lambda: shared([a, b], 4))
    generation = a.group.group_metadata().generation_id
    a.close()
    again = Player(broker, "a2", **LIVELY, group_instance_id="one")
    play(broker, [again, b], until=lambda: bool(again.told))
    assert again.group.group_metadata().generation_id == generation
    broker.stage.topics.add("t", 6)
    again.metadata.request_update()
    play(broker, [again, b], until=lambda: shared([again, b], 6))


class _Fails(RangeAssignor):
    """An assignor that a user made, and that raises at first."""

    left = 0

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        if _Fails.left:
            _Fails.left -= 1
            raise ZeroDivisionError
        return super().subscription_user_data(topics)


def test_an_assignor_that_raises_is_heard_of_in_poll_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Fails, "left", 2)
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a", [_Fails])
    play(broker, [player], until=lambda: shared([player], 2))
    assert [type(error) for error in player.errors] == [ZeroDivisionError, ZeroDivisionError]


def test_partitions_are_read_though_ctrl_c_ended_the_listener() -> None:
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a")

    def interrupted(player: Player, what: str, _partitions: object) -> None:
        if what == "assigned":
            player.on_told = lambda player, what, each: None
            raise KeyboardInterrupt

    player.on_told = interrupted
    with pytest.raises(KeyboardInterrupt):
        play(broker, [player], until=lambda: False)
    play(broker, [player], until=lambda: player.assignments.released == all_of("t", 2))
    assert player.assignments.partitions == all_of("t", 2)


def test_a_heartbeat_of_a_former_generation_is_answered_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a coordinator that was given up says at last that it knows the member no more."""
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a")
    play(broker, [player], until=lambda: shared([player], 2))
    coordinator = player.group._coordinator
    send = coordinator.send
    answers: list[Callable[[Any], None]] = []

    def keeps_heartbeats(node: Node, request: Any, callback: Callable[[Any], None], **how: Any) -> None:
        if isinstance(request, HeartbeatRequest) and not answers:
            answers.append(callback)
        else:
            send(node, request, callback, **how)

    monkeypatch.setattr(coordinator, "send", keeps_heartbeats)
    play(broker, [player], until=lambda: bool(answers))
    generation = player.group.group_metadata().generation_id
    player.group.enforce_rebalance()
    play(broker, [player], until=lambda: player.group.group_metadata().generation_id > generation)
    answers[0](HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    events = len(player.events)
    end_ms = broker.now_ms + 10_000
    play(broker, [player], until=lambda: broker.now_ms > end_ms)
    assert player.events[events:] == []
