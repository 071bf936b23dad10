"""Kavka's own tagged fields: who does not set them sends and receives Kafka's bytes."""

from __future__ import annotations

from typing import Any

import pytest

from kavka.protocol import codec, interpreter
from kavka.protocol.messages import consumer_group_describe as newer
from kavka.protocol.messages import describe_groups as classic
from kavka.protocol.messages.describe_groups import HISTORY_TAG, GroupTransition

TRANSITION = GroupTransition(
    timestamp_ms=5,
    old_state="Stable",
    new_state="Empty",
    reason="r",
    epoch=7,
    member_count=0,
    begins_rebalance=True,
)
NEWLY_DESCRIBED = "00000000 02 0000 00 02 67 06 456d707479 00000001 00000001 01 01 80000000"
TRANSITION_WIRE = (
    "0000000000000005" + "07 537461626c65" + "06 456d707479" + "02 72" + "00000007" + "00000000" + "01" + "00"
)
OWN_TAG = "01 904e"
"""One tagged field, and the varint of its tag."""


def asking(include_history: bool) -> Any:
    return classic.DescribeGroupsRequest(
        groups=["g"], include_authorized_operations=False, include_history=include_history
    )


def described(*history: GroupTransition) -> Any:
    group = classic.DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Empty",
        protocol_type="",
        protocol_data="",
        members=[],
        history=list(history),
    )
    return classic.DescribeGroupsResponse(groups=[group])


def newly_described(*history: GroupTransition) -> Any:
    group = newer.DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Empty",
        group_epoch=1,
        assignment_epoch=1,
        assignor_name="",
        members=[],
        history=list(history),
    )
    return newer.ConsumerGroupDescribeResponse(groups=[group])


@pytest.mark.parametrize(
    ("message", "version", "wire"),
    [
        (asking(False), 5, "02 02 67 00 00"),
        (asking(True), 5, f"02 02 67 00 {OWN_TAG} 01 01"),
        (asking(True), 4, "00000001 0001 67 00"),
        (described(), 5, "00000000 02 0000 02 67 06 456d707479 01 01 01 80000000 00 00"),
        (
            described(TRANSITION),
            5,
            f"00000000 02 0000 02 67 06 456d707479 01 01 01 80000000 {OWN_TAG} 22 02 {TRANSITION_WIRE} 00",
        ),
        (described(TRANSITION), 4, "00000000 00000001 0000 0001 67 0005 456d707479 0000 0000 00000000 80000000"),
        (newly_described(), 1, f"{NEWLY_DESCRIBED} 00 00"),
        (
            newly_described(TRANSITION),
            1,
            f"{NEWLY_DESCRIBED} {OWN_TAG} 22 02 {TRANSITION_WIRE} 00",
        ),
    ],
)
def test_the_bytes_are_kafkas_unless_there_is_a_history(message: Any, version: int, wire: str) -> None:
    expected = bytes.fromhex(wire)
    assert HISTORY_TAG == 10_000
    assert codec.encode(message, version) == interpreter.encode(message, version) == expected
    if version >= 5 or type(message) is newer.ConsumerGroupDescribeResponse:
        assert codec.decode(type(message), version, expected) == message
