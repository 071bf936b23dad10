"""Coordinators whose answers would keep a member asking without end: it asks on, but takes its time."""

from __future__ import annotations

from typing import Any

import pytest

from kavka.client.api_errors import UnknownServerError
from kavka.client.consumer.group.poll_clock import PollClock
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest
from kavka.protocol.messages.sync_group import SyncGroupRequest
from tests.support.group_broker import Fate, GroupBroker
from tests.support.group_players import Player, play

CLASSIC: dict[str, Any] = {"strategies": ["range"]}
CONSUMER: dict[str, Any] = {"uses_consumer_protocol": True}
ROUNDS = 600
A_ROUND_MS = 5


def asked(player: Player, kind: type) -> int:
    return sum(isinstance(request, kind) for request in player.network.sent)


@pytest.mark.parametrize(
    ("way", "kind", "code"),
    [
        (CLASSIC, JoinGroupRequest, ErrorCode.MEMBER_ID_REQUIRED),
        (CLASSIC, JoinGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS),
        (CLASSIC, JoinGroupRequest, ErrorCode.UNKNOWN_MEMBER_ID),
        (CLASSIC, SyncGroupRequest, ErrorCode.REBALANCE_IN_PROGRESS),
        (CLASSIC, SyncGroupRequest, ErrorCode.ILLEGAL_GENERATION),
        (CONSUMER, ConsumerGroupHeartbeatRequest, ErrorCode.FENCED_MEMBER_EPOCH),
        (CONSUMER, ConsumerGroupHeartbeatRequest, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_an_error_without_end_is_met_by_a_back_off(way: dict[str, Any], kind: type, code: ErrorCode) -> None:
    broker = GroupBroker({"t": 2})
    member = Player(broker, "a", **way)
    member.network.fate = lambda request: Fate(code=code) if isinstance(request, kind) else Fate()
    for _ in range(ROUNDS):
        member.own()
        member.poll()
        broker.advance(A_ROUND_MS)
    assert 2 <= asked(member, kind) <= 25
    member.network.fate = lambda request: Fate()
    play(broker, [member], until=lambda: len(member.told) == 2)


def test_a_member_id_that_is_asked_for_again_and_again_is_no_reason_to_hurry() -> None:
    broker = GroupBroker({"t": 2})
    member = Player(broker, "a")

    def fate(request: Any) -> Fate:
        def names_another(answer: Any) -> None:
            answer.member_id = f"m{asked(member, JoinGroupRequest)}"

        is_join = isinstance(request, JoinGroupRequest)
        return Fate(code=ErrorCode.MEMBER_ID_REQUIRED, change=names_another) if is_join else Fate()

    member.network.fate = fate
    for _ in range(ROUNDS):
        member.own()
        member.poll()
        broker.advance(A_ROUND_MS)
    assert 3 <= asked(member, JoinGroupRequest) <= 25


def test_no_pause_between_heartbeats_is_no_pause_that_can_be_asked_for() -> None:
    broker = GroupBroker({"t": 2})
    member = Player(broker, "a", **CONSUMER)

    def at_once(answer: Any) -> None:
        answer.heartbeat_interval_ms = 0

    member.network.fate = lambda request: Fate(
        change=at_once if isinstance(request, ConsumerGroupHeartbeatRequest) else None
    )
    play(broker, [member], until=lambda: len(member.told) == 2)
    before = asked(member, ConsumerGroupHeartbeatRequest)
    for _ in range(1_000):
        member.own()
        broker.advance(1)
    assert asked(member, ConsumerGroupHeartbeatRequest) - before <= 100
    assert asked(member, HeartbeatRequest) == 0


@pytest.mark.parametrize("epoch", [0, -1, -(2**31)])
def test_an_epoch_that_no_member_has_makes_no_member(epoch: int) -> None:
    """-1 would say farewell with the next heartbeat."""
    broker = GroupBroker({"t": 2})
    member = Player(broker, "a", **CONSUMER)

    def lies(answer: Any) -> None:
        answer.member_epoch = epoch

    member.network.fate = lambda request: Fate(
        change=lies if isinstance(request, ConsumerGroupHeartbeatRequest) else None
    )
    for _ in range(ROUNDS):
        member.own()
        member.poll()
        broker.advance(A_ROUND_MS)
    assert 2 <= asked(member, ConsumerGroupHeartbeatRequest) <= 25
    assert not member.told
    member.network.fate = lambda request: Fate()
    play(broker, [member], until=lambda: len(member.told) == 2)
    assert broker.members()


@pytest.mark.parametrize(("field", "value"), [("generation_id", -1), ("member_id", "")])
def test_a_generation_or_an_id_that_no_member_has_makes_no_member(field: str, value: object) -> None:
    """It would send no heartbeats, or in nobody's name, and never hear that it is none."""
    broker = GroupBroker({"t": 2})
    member = Player(broker, "a", **CLASSIC)

    def lies(answer: Any) -> None:
        setattr(answer, field, value)

    member.network.fate = lambda request: Fate(
        change=lies if isinstance(request, JoinGroupRequest) and request.member_id else None
    )
    for _ in range(ROUNDS):
        member.own()
        member.poll()
        broker.advance(A_ROUND_MS)
    assert 2 <= asked(member, JoinGroupRequest) <= 50
    assert {type(error) for error in member.errors} == {UnknownServerError}
    assert not member.told
    member.network.fate = lambda request: Fate()
    play(broker, [member], until=lambda: len(member.told) == 2)


def test_a_member_is_not_silent_for_weeks_because_it_is_told_to_be() -> None:
    broker = GroupBroker({"t": 2})
    member = Player(broker, "a", **CONSUMER)

    def in_weeks(answer: Any) -> None:
        answer.heartbeat_interval_ms = 2**31 - 1

    member.network.fate = lambda request: Fate(
        change=in_weeks if isinstance(request, ConsumerGroupHeartbeatRequest) else None
    )
    play(broker, [member], until=lambda: len(member.told) == 2)
    before = asked(member, ConsumerGroupHeartbeatRequest)
    for _ in range(200):
        member.own()
        member.poll(commits=False)
        broker.advance(1_000)
    assert 2 <= asked(member, ConsumerGroupHeartbeatRequest) - before <= 25


def test_the_interval_between_polls_runs_while_something_is_done_and_not_while_a_poll_waits() -> None:
    clock = PollClock(1_000)
    clock.began(0)
    assert clock.left_ms(400) == 600
    clock.waits()
    assert clock.left_ms(5_000) == 1_000
    clock.began(5_000)
    assert clock.left_ms(6_100) == -100
    clock.ended(6_200)
    assert clock.left_ms(6_300) == 900
