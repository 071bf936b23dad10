"""What ends a membership, and what users bring: fencing, refusals, listeners and assignors that fail."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from kavka.client.api_errors import (
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidRegularExpressionError,
    InvalidRequestError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from kavka.client.cluster import Cluster
from kavka.client.consumer.group.assignors.assignor import Assignor, MemberAssignment, Subscriptions
from kavka.client.consumer.group.port import ConsumerGroupMetadata, SubscriptionPattern
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.config.errors import ConfigError
from kavka.protocol.messages.join_group import JoinGroupRequest
from tests.support.group_broker import GroupBroker
from tests.support.group_players import Player, play

BOTH: list[Any] = [
    pytest.param({"strategies": ["range"]}, id="classic"),
    pytest.param({"uses_consumer_protocol": True}, id="consumer"),
]
QUICK: dict[str, Any] = {"heartbeat_interval_ms": 300, "session_timeout_ms": 6_000}


def some(topic: str, *numbers: int) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}


def test_a_member_whose_instance_id_is_taken_over_loses_all_for_good() -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", group_instance_id="one", **QUICK)
    play(broker, [a], until=lambda: len(a.told) == 2)
    b = Player(broker, "b", group_instance_id="one", **QUICK)
    play(broker, [a, b], until=lambda: len(b.told) == 2 and not a.told)
    assert a.events[-1] == ("lost", some("t", 0, 1))
    before = len(a.errors)
    a.poll()
    a.poll()
    assert [type(error) for error in a.errors[before:]] == [FencedInstanceIdError] * 2


def test_a_second_member_of_one_instance_id_is_refused_by_the_new_protocol() -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", group_instance_id="one", uses_consumer_protocol=True)
    play(broker, [a], until=lambda: len(a.told) == 2)
    b = Player(broker, "b", group_instance_id="one", uses_consumer_protocol=True)
    play(broker, [a, b], until=lambda: bool(b.errors))
    assert isinstance(b.errors[0], UnreleasedInstanceIdError)
    assert len(a.told) == 2


@pytest.mark.parametrize("way", BOTH)
def test_a_full_group_refuses_and_lets_in_when_there_is_room(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 2}, {"group.max.size": "1", "group.consumer.max.size": "1"})
    a = Player(broker, "a", **way, **QUICK)
    play(broker, [a], until=lambda: len(a.told) == 2)
    b = Player(broker, "b", **way, **QUICK)
    play(broker, [a, b], until=lambda: len(b.errors) >= 2)
    assert {type(error) for error in b.errors} == {GroupMaxSizeReachedError}
    a.close()
    play(broker, [b], until=lambda: len(b.told) == 2)


def test_members_without_an_assignor_in_common_cannot_meet() -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", ["range"], **QUICK)
    play(broker, [a], until=lambda: len(a.told) == 2)
    b = Player(broker, "b", ["roundrobin"], **QUICK)
    play(broker, [a, b], until=lambda: bool(b.errors))
    assert isinstance(b.errors[0], InconsistentGroupProtocolError)


def test_an_assignor_that_the_broker_lacks_is_refused() -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", uses_consumer_protocol=True, remote_assignor="mine")
    play(broker, [a], until=lambda: bool(a.errors))
    assert isinstance(a.errors[0], UnsupportedAssignorError)


def test_the_brokers_assignor_can_be_chosen() -> None:
    broker = GroupBroker({"t": 4, "u": 1})
    players = [
        Player(broker, name, topics=["t", "u"], uses_consumer_protocol=True, remote_assignor="range") for name in "ab"
    ]
    play(broker, players, until=lambda: sorted(len(each.told) for each in players) == [2, 3])
    for player in players:
        numbers = sorted(each.partition for each in player.told if each.topic == "t")
        assert numbers in ([0, 1], [2, 3])


@pytest.mark.parametrize("way", BOTH)
def test_what_a_listener_raises_comes_out_of_poll_and_the_rebalance_goes_on(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", **way, **QUICK)

    def fails(player: Player, what: str, partitions: Collection[TopicPartition]) -> None:
        raise ValueError(f"told of {what}")

    a.on_told = fails
    play(broker, [a], until=lambda: set(a.assignments.at) == some("t", 0, 1))
    play(broker, [a], until=lambda: bool(a.errors))
    assert [str(error) for error in a.errors] == ["told of assigned"]


class Everything(Assignor):
    """All to whoever says in its user data that it wants most."""

    name = "everything"

    def __init__(self, wish: int = 0, fails: bool = False) -> None:
        self.wish = wish
        self.fails = fails
        self.heard: list[tuple[MemberAssignment, ConsumerGroupMetadata]] = []

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        return bytes([self.wish])

    def assign(self, cluster: Cluster, subscriptions: Subscriptions) -> dict[str, MemberAssignment]:
        if self.fails:
            raise ValueError("cannot")
        first = max(subscriptions, key=lambda member: subscriptions[member].user_data or b"")
        whole = tuple(TopicPartition("t", number) for number in cluster.topics["t"].partitions)
        return {member: MemberAssignment(whole if member == first else (), b"you") for member in subscriptions}

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        self.heard.append((assignment, metadata))


def test_a_users_assignor_gets_and_gives_user_data() -> None:
    broker = GroupBroker({"t": 3})
    modest, greedy = Everything(1), Everything(2)
    a = Player(broker, "a", [modest], **QUICK)
    b = Player(broker, "b", [greedy], **QUICK)
    play(broker, [a, b], until=lambda: len(b.told) == 3 and ("assigned", set()) in a.events)
    assert greedy.heard[-1][0].user_data == b"you"
    assert greedy.heard[-1][1] == b.group.group_metadata()


def test_an_assignor_that_fails_is_raised_by_the_leaders_poll_and_tried_again() -> None:
    broker = GroupBroker({"t": 3})
    assignor = Everything(fails=True)
    a = Player(broker, "a", [assignor], **QUICK)
    play(broker, [a], until=lambda: bool(a.errors))
    assert isinstance(a.errors[0], InvalidRequestError)
    assert isinstance(a.errors[0].__cause__, ValueError)
    assignor.fails = False
    play(broker, [a], until=lambda: len(a.told) == 3)


def test_a_rebalance_can_be_enforced() -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", **QUICK)
    play(broker, [a], until=lambda: len(a.told) == 2)
    generation = a.group.group_metadata().generation_id
    a.group.enforce_rebalance("for once")
    play(broker, [a], until=lambda: a.group.group_metadata().generation_id == generation + 1)
    joins = [request for request in a.network.sent if isinstance(request, JoinGroupRequest)]
    assert joins[-1].reason == "for once"


def test_the_broker_matches_a_pattern() -> None:
    broker = GroupBroker({"t1": 1, "u": 1})
    a = Player(broker, "a", subscribes=False, uses_consumer_protocol=True)
    a.group.subscribe_pattern(SubscriptionPattern("t.*"), a)
    play(broker, [a], until=lambda: a.told == some("t1", 0))
    a.group.subscribe(["u"], a)
    play(broker, [a], until=lambda: a.told == some("u", 0))


def test_a_pattern_that_is_none_is_refused() -> None:
    broker = GroupBroker({"t1": 1})
    a = Player(broker, "a", subscribes=False, uses_consumer_protocol=True)
    a.group.subscribe_pattern(SubscriptionPattern("(("), a)
    play(broker, [a], until=lambda: bool(a.errors))
    assert isinstance(a.errors[0], InvalidRegularExpressionError)
    classic = Player(broker, "b", subscribes=False)
    with pytest.raises(ConfigError):
        classic.group.subscribe_pattern(SubscriptionPattern("t"), classic)


def test_internal_topics_are_left_out_of_patterns() -> None:
    broker = GroupBroker({"t": 1, "__consumer_offsets": 1})
    a = Player(broker, "a", subscribes=False)
    a.group.subscribe_pattern(re.compile(".*"), a)
    play(broker, [a], until=lambda: bool(a.told))
    assert a.group.subscription == {"t"}


@pytest.mark.parametrize("way", BOTH)
def test_a_membership_is_measured_under_kafkas_names(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 2})
    a = Player(broker, "a", **way, **QUICK)
    metrics = a.metrics
    assert metrics["last-rebalance-seconds-ago"] == metrics["last-heartbeat-seconds-ago"] == -1
    play(broker, [a], until=lambda: broker.committed("t", 0) > 0 and metrics["heartbeat-total"] > 2)
    assert metrics["assigned-partitions"] == 2
    assert metrics["rebalance-total"] == 1
    assert metrics["rebalance-latency-max"] > 0
    assert metrics["rebalance-rate-per-hour"] > 0
    assert metrics["failed-rebalance-total"] == 0
    assert metrics["commit-total"] > 0
    assert metrics["commit-latency-avg"] >= 0
    assert metrics["partition-assigned-latency-max"] >= 0
    assert metrics["join-total"] == metrics["sync-total"] == (0 if "uses_consumer_protocol" in way else 1)
    broker.advance(2_500)
    assert metrics["last-heartbeat-seconds-ago"] >= 2


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("moment", ["assigned", "revoked"])
def test_a_listener_may_end_its_own_membership(way: dict[str, Any], moment: str) -> None:
    broker = GroupBroker({"t": 2, "u": 2})
    a = Player(broker, "a", topics=["t", "u"], **way, **QUICK)

    def leaves(player: Player, what: str, partitions: Collection[TopicPartition]) -> None:
        if what == moment:
            player.on_told = lambda *_: None
            player.group.unsubscribe()

    if moment == "assigned":
        a.on_told = leaves
        play(broker, [a], until=lambda: bool(a.events) and not broker.members())
    else:
        play(broker, [a], until=lambda: len(a.told) == 4)
        a.on_told = leaves
        a.group.subscribe(["u"], a)
        play(broker, [a], until=lambda: not broker.members())
    assert not a.assignments.at
    a.group.subscribe(["t"], a)
    play(broker, [a], until=lambda: a.told == some("t", 0, 1))
    assert not a.errors


@pytest.mark.parametrize("way", BOTH)
def test_a_group_follows_its_coordinator_and_nobody_loses_anything(way: dict[str, Any]) -> None:
    broker = GroupBroker({"t": 4})
    a, b = (Player(broker, name, **way, **QUICK) for name in "ab")
    play(broker, [a, b], until=lambda: len(a.told) == len(b.told) == 2)
    told = [*a.events], [*b.events]
    broker.coordinator = Node(2, "other", 9092)
    before = broker.committed("t", 0)
    play(broker, [a, b], until=lambda: broker.committed("t", 0) > before + 5)
    broker.advance(100)
    assert ([*a.events], [*b.events]) == told
    assert not a.errors + b.errors
