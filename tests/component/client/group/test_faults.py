"""Groups whose requests and answers are lost, late and doubled, in every order that a seed makes.

What is always true: no partition belongs to two members at once, as their listeners were told, unless the coordinator
had given one up; commits never go back. Once nothing goes wrong any more, each partition has one owner.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any

import pytest

from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.group_broker import Fate, GroupBroker
from tests.support.group_players import Player, play, shuffled_round

PARTITIONS = 5
SETTINGS: dict[str, Any] = {
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 400,
    "max_poll_interval_ms": 20_000,
    "retry_backoff_ms": 20,
}
PASSING = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
COOPERATIVE = "cooperative-sticky"
WAYS: list[Any] = [
    pytest.param([{"strategies": ["range"]}], id="eager"),
    pytest.param([{"strategies": ["cooperative-sticky"]}], id="cooperative"),
    pytest.param([{"uses_consumer_protocol": True}], id="consumer"),
    pytest.param([{"strategies": ["range"]}, {"uses_consumer_protocol": True}], id="both"),
    pytest.param(
        [{"strategies": ["cooperative-sticky"]}, {"strategies": ["range", "cooperative-sticky"]}], id="rolled"
    ),
]


class Referee:
    """Hears what every listener is told, and sees every commit."""

    def __init__(self, broker: GroupBroker) -> None:
        self.broker = broker
        self.players: list[Player] = []
        self.highest: dict[TopicPartition, int] = {}

    def told(self, player: Player, what: str, partitions: Collection[TopicPartition]) -> None:
        if what != "assigned":
            return
        if not self._is_member(player):
            # It was frozen, and reads now what it was answered long ago; soon it hears that it is out.
            return
        for other in self.players:
            both = other.told & set(partitions)
            if other is not player and both:
                assert not self._is_member(other), f"{both} of {other.name} go to {player.name}"

    def _is_member(self, player: Player) -> bool:
        """Whether the coordinator and the player itself take it for one."""
        identity = player.group._membership.identity
        return identity.generation >= 0 and identity.member_id in self.broker.members()

    def look(self) -> None:
        for number in range(PARTITIONS):
            partition = TopicPartition("t", number)
            committed = self.broker.committed(*partition)
            assert committed >= self.highest.get(partition, -1), f"{partition} went back to {committed}"
            self.highest[partition] = committed


def any_fate(dice: Random) -> Fate:
    throw = dice.random()
    if throw < 0.05:
        return Fate(loses_request=True)
    if throw < 0.10:
        return Fate(loses_answer=True)
    if throw < 0.15:
        return Fate(doubles=True)
    if throw < 0.25:
        return Fate(delay_ms=dice.choice([10, 300, 2_000]))
    if throw < 0.30:
        return Fate(code=dice.choice(PASSING))
    return Fate()


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_faults_of_any_kind_leave_each_partition_one_owner(ways: list[dict[str, Any]], seed: int) -> None:
    go_through_faults(ways, seed)


def go_through_faults(ways: list[dict[str, Any]], seed: int) -> None:
    dice = Random(seed)
    broker = GroupBroker({"t": PARTITIONS})
    referee = Referee(broker)
    made = 0
    for _ in range(250):
        if len(referee.players) < 4 and dice.random() < 0.03:
            player = Player(broker, f"p{made}", **ways[made % len(ways)], **SETTINGS)
            made += 1
            player.network.fate = lambda request: any_fate(dice)
            player.on_told = referee.told
            referee.players.append(player)
        elif referee.players and dice.random() < 0.01:
            referee.players.pop(dice.randrange(len(referee.players))).close()
        if referee.players and dice.random() < 0.02:
            player = dice.choice(referee.players)
            until_ms = broker.now_ms + dice.choice([3_000, 30_000])
            if dice.random() < 0.5:
                player.stuck_until_ms = until_ms
            else:
                player.frozen_until_ms = until_ms
        shuffled_round(broker, referee.players, dice)
        referee.look()
    for player in referee.players:
        player.network.fate = lambda request: Fate()
    if not referee.players:
        return

    def is_whole() -> bool:
        referee.look()
        owned = sorted(each for player in referee.players for each in player.told)
        return owned == [TopicPartition("t", number) for number in range(PARTITIONS)]

    play(broker, referee.players, until=is_whole, limit_ms=240_000)
    for player in referee.players:
        assert player.told == set(player.assignments.at)
        assert not player.errors, player.errors


def test_each_attempt_to_join_that_fails_is_counted() -> None:
    """As Java's consumer does, also where the coordinator is only not there yet; what gives an id is no failure."""
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a")
    fates = {
        JoinGroupRequest: [Fate(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), Fate(loses_answer=True)],
        SyncGroupRequest: [Fate(code=ErrorCode.NOT_COORDINATOR), Fate(loses_request=True)],
    }

    def fate(request: Any) -> Fate:
        left = fates.get(type(request))
        return left.pop() if left else Fate()

    player.network.fate = fate
    play(broker, [player], until=lambda: len(player.told) == 2)
    assert player.errors == []
    assert player.metrics["failed-rebalance-total"] == 4
    assert player.metrics["rebalance-total"] == 1


def test_who_is_fenced_as_it_joins_has_failed_and_who_has_to_wait_has_not() -> None:
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a", uses_consumer_protocol=True)
    fates = [
        Fate(code=ErrorCode.FENCED_MEMBER_EPOCH),
        Fate(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        Fate(loses_answer=True),
    ]
    player.network.fate = lambda request: (
        fates.pop() if fates and isinstance(request, ConsumerGroupHeartbeatRequest) else Fate()
    )
    play(broker, [player], until=lambda: len(player.told) == 2)
    assert player.errors == []
    assert player.metrics["failed-rebalance-total"] == 1
    assert player.metrics["rebalance-total"] == 1
