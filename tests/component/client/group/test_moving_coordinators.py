"""Coordinators that say nothing any more, or have moved: members find the next one, and ask no more than they must."""

from typing import Any

import pytest

from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.group_broker import NODE, Fate, GroupBroker
from tests.support.group_players import Player, play

OTHER = Node(2, "other", 9092)
NEVER_MS = 1e9
QUICK: dict[str, Any] = {"heartbeat_interval_ms": 300, "session_timeout_ms": 6_000}


def sent(player: Player, kind: type) -> int:
    return sum(isinstance(request, kind) for request in player.network.sent)


def beats(player: Player) -> int:
    return sent(player, HeartbeatRequest) + sent(player, ConsumerGroupHeartbeatRequest)


def test_who_owes_a_heartbeat_for_a_session_is_given_up_for_its_successor() -> None:
    """A request may take much longer than that (30 s), and the successor hears nothing meanwhile."""
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a", **QUICK)
    play(broker, [player], until=lambda: len(player.told) == 2)
    silent = Fate(delay_ms=NEVER_MS)
    player.network.fate = lambda request: (
        silent if broker.coordinator is NODE and isinstance(request, HeartbeatRequest) else Fate()
    )
    before = sent(player, HeartbeatRequest)
    play(broker, [player], until=lambda: sent(player, HeartbeatRequest) > before)
    broker.coordinator = OTHER
    play(broker, [player], until=lambda: sent(player, HeartbeatRequest) > before + 1, limit_ms=8_000)
    play(broker, [player], until=lambda: len(player.told) == 2)


def test_sync_group_is_waited_for_no_longer_than_a_request_may_take() -> None:
    """JoinGroup waits for others' last polls, SyncGroup for the leader alone."""
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a", **QUICK)
    player.network.fate = lambda request: Fate(delay_ms=NEVER_MS if isinstance(request, SyncGroupRequest) else 0)
    play(broker, [player], until=lambda: sent(player, SyncGroupRequest) == 1)
    (out,) = (call for lane in player.network._lanes.values() for call in lane if call.key == ApiKey.SYNC_GROUP)
    assert out.deadline_ms - broker.now_ms <= player.settings.request_timeout_ms


@pytest.mark.parametrize("way", [{"strategies": ["range"]}, {"uses_consumer_protocol": True}])
def test_a_coordinator_that_is_found_where_it_is_not_is_asked_ever_later(way: dict[str, Any]) -> None:
    """Brokers that have not heard of the move yet name the former one."""
    broker = GroupBroker({"t": 2})
    player = Player(broker, "a", **way, **QUICK)
    play(broker, [player], until=lambda: len(player.told) == 2)
    player.network.fate = lambda request: (
        Fate(code=ErrorCode.NOT_COORDINATOR)
        if isinstance(request, HeartbeatRequest | ConsumerGroupHeartbeatRequest)
        else Fate()
    )
    before = beats(player)
    play(broker, [player], until=lambda: beats(player) > before)
    end_ms = broker.now_ms + 2_000
    play(broker, [player], until=lambda: broker.now_ms >= end_ms)
    assert 2 <= beats(player) - before <= 30
    player.network.fate = lambda request: Fate()
    before = beats(player)
    play(broker, [player], until=lambda: beats(player) > before + 2)
    assert len(player.told) == 2
    assert player.errors == []
