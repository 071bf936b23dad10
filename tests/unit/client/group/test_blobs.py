"""Bytes between members: as Java writes them, and hostile ones."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from kavka.client.consumer.group.assignors.assignor import MemberAssignment
from kavka.client.consumer.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from kavka.client.consumer.group.assignors.range import RangeAssignor
from kavka.client.consumer.group.assignors.user_data import (
    decode_generation,
    decode_owned,
    encode_generation,
    encode_owned,
)
from kavka.client.consumer.group.blobs import (
    assignment_blob,
    assignment_from,
    subscription_blobs,
    subscription_from,
)
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import DecodeError

partitions = st.lists(st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1)), unique=True)


def test_a_subscription_is_written_as_javas_newest_for_each_assignor() -> None:
    owned = [TopicPartition("t", 1), TopicPartition("t", 0)]
    blobs = subscription_blobs([RangeAssignor(), CooperativeStickyAssignor()], {"u", "t"}, owned, 4, "r")
    assert [name for name, _ in blobs] == ["range", "cooperative-sticky"]
    plain = "0003 00000002 0001 74 0001 75 ffffffff 00000001 0001 74 00000002 00000000 00000001 00000004 0001 72"
    assert blobs[0][1] == bytes.fromhex(plain)
    read = subscription_from(blobs[1][1], "i")
    assert read.topics == ("t", "u")
    assert read.user_data == encode_generation(-1)
    assert sorted(read.owned) == sorted(owned)
    assert (read.generation, read.rack, read.instance_id) == (4, "r", "i")


def test_a_subscription_of_an_old_client_has_neither_owned_partitions_nor_generation() -> None:
    read = subscription_from(bytes.fromhex("0000 00000001 0001 74 ffffffff"), None)
    assert read.topics == ("t",)
    assert (read.owned, read.generation, read.rack, read.user_data) == ((), -1, None, None)


@given(partitions)
def test_an_assignment_comes_back_as_it_was(given_out: list[TopicPartition]) -> None:
    read = assignment_from(assignment_blob(MemberAssignment(tuple(given_out), b"data")))
    assert read is not None
    assert sorted(read.partitions) == sorted(given_out)
    assert read.user_data == b"data"


def test_no_bytes_are_no_partitions_and_bad_ones_are_no_assignment() -> None:
    assert assignment_from(b"") == MemberAssignment(())
    assert assignment_from(b"\x00\x00\x7f\xff\xff\xff") is None


@given(st.binary(max_size=60))
def test_hostile_subscriptions_and_user_data_end_in_a_value_or_a_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        subscription_from(data, None)
    assignment_from(data)
    decode_owned(data)
    decode_generation(data)


@given(partitions, st.integers(-1, 2**31 - 1))
def test_sticky_user_data_come_back_as_they_were(owned: list[TopicPartition], generation: int) -> None:
    read, read_generation = decode_owned(encode_owned(owned, generation))
    assert sorted(read) == sorted(owned)
    assert read_generation == generation


def test_user_data_before_generations_are_read() -> None:
    assert decode_owned(encode_owned([TopicPartition("t", 3)], 9)[:-4]) == ([TopicPartition("t", 3)], None)


def test_lengths_that_lie_cost_nothing() -> None:
    assert decode_owned(bytes.fromhex("7fffffff 0001 74 7fffffff")) == ((), None)
