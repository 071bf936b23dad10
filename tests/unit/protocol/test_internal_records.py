"""Records of internal topics and the consumer protocol: round trips, and bytes that nobody should have written."""

import random
import struct
from collections.abc import Callable

import pytest

from kavka.protocol import interpreter
from kavka.protocol.codec import encode
from kavka.protocol.errors import DecodeError
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kavka.protocol.internal.group_records import GROUP_RECORDS, OffsetCommitKey, OffsetCommitValue
from kavka.protocol.internal.record_codec import (
    RecordTypes,
    UnknownRecordTypeError,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kavka.protocol.internal.share_records import SHARE_GROUP_RECORDS, SHARE_STATE_RECORDS
from kavka.protocol.internal.streams_records import STREAMS_GROUP_RECORDS
from kavka.protocol.internal.transaction_records import TRANSACTION_RECORDS, TransactionLogKey, TransactionLogValue
from kavka.protocol.schema import Record, schema_of
from tests.support.message_values import STYLES, message_value

KEYS = [
    (types, number)
    for types in (GROUP_RECORDS, TRANSACTION_RECORDS, SHARE_GROUP_RECORDS, SHARE_STATE_RECORDS, STREAMS_GROUP_RECORDS)
    for number, (key_class, _) in types.items()
    if schema_of(key_class).key == number
]
VALUES = [
    (value_class, version)
    for types, number in KEYS
    for value_class in [types[number][1]]
    for version in range(schema_of(value_class).first, schema_of(value_class).last + 1)
]


@pytest.mark.parametrize(("types", "number"), KEYS, ids=lambda value: str(value) if isinstance(value, int) else "")
def test_a_key_comes_back_with_the_class_of_its_value(types: RecordTypes, number: int) -> None:
    for style in STYLES:
        key = message_value(types[number][0], 0, style)
        wire = encode_key(key)
        assert wire[:2] == struct.pack(">h", number)
        assert decode_key(types, wire) == (key, types[number][1])


@pytest.mark.parametrize(("cls", "version"), VALUES, ids=lambda value: getattr(value, "__name__", value))
def test_a_value_comes_back_in_every_version(cls: type[Record], version: int) -> None:
    for style in STYLES:
        value = message_value(cls, version, style)
        wire = encode_value(value, version)
        assert wire[2:] == interpreter.encode(value, version)
        assert decode_value(cls, wire) == (value, version)


def test_offset_commits_are_written_as_kafka_writes_them() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=7)
    value = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)

    assert encode_key(key).hex() == "0001" + "000167" + "000174" + "00000007"
    assert encode_value(value, 3).hex() == "0003" + f"{5:016x}" + "00000002" + "00016d" + f"{9:016x}"
    value.expire_timestamp = 11
    assert encode_value(value, 1).hex() == "0001" + f"{5:016x}" + "00016d" + f"{9:016x}" + f"{11:016x}"


def test_a_key_of_the_old_type_0_reads_as_an_offset_commit() -> None:
    wire = bytearray(encode_key(OffsetCommitKey(group="g", topic="t", partition=7)))
    wire[:2] = b"\0\0"

    assert decode_key(GROUP_RECORDS, bytes(wire))[0] == OffsetCommitKey(group="g", topic="t", partition=7)


def test_a_transaction_of_the_first_version_has_no_tagged_fields() -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=2,
        transaction_timeout_ms=3,
        transaction_status=0,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=4,
        transaction_start_timestamp_ms=-1,
        previous_producer_id=8,
    )

    assert encode_key(TransactionLogKey(transactional_id="x")).hex() == "0000000178"
    assert encode_value(value, 0).hex() == (
        "0000" + f"{1:016x}" + "0002" + "00000003" + "00" + "ffffffff" + f"{4:016x}" + "f" * 16
    )
    assert decode_value(TransactionLogValue, encode_value(value, 1))[0].previous_producer_id == 8


def test_a_key_of_a_later_kafka_is_told_from_a_broken_one() -> None:
    with pytest.raises(UnknownRecordTypeError):
        decode_key(GROUP_RECORDS, struct.pack(">h", 99) + b"whatever")
    for broken in (b"", b"\0", b"\0\1\0", b"\0\1\x7f\xff"):
        with pytest.raises(DecodeError) as refused:
            decode_key(GROUP_RECORDS, broken)
        assert not isinstance(refused.value, UnknownRecordTypeError)


@pytest.mark.parametrize("version", [-1, 5, 32_767])
def test_a_value_of_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(DecodeError, match=f"version {version}"):
        decode_value(OffsetCommitValue, struct.pack(">h", version) + bytes(40))


@pytest.mark.parametrize(("cls", "version"), VALUES, ids=lambda value: getattr(value, "__name__", value))
def test_cut_and_random_values_end_in_a_decode_error(cls: type[Record], version: int) -> None:
    dice = random.Random(f"{cls.__name__} {version}")
    whole = encode_value(message_value(cls, version, "full"), version)
    for cut in range(len(whole)):
        with pytest.raises(DecodeError):
            decode_value(cls, whole[:cut])
    for _ in range(200):
        _decoded_or_refused(cls, struct.pack(">h", version) + dice.randbytes(dice.randrange(80)))


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_and_assignments_come_back(version: int) -> None:
    for style in STYLES:
        subscription = message_value(ConsumerProtocolSubscription, version, style)
        assert decode_subscription(encode_subscription(subscription, version)) == (subscription, version)
        assignment = message_value(ConsumerProtocolAssignment, version, style)
        assert decode_assignment(encode_assignment(assignment, version)) == (assignment, version)


def test_a_subscription_is_written_as_the_java_consumer_writes_it() -> None:
    subscription = ConsumerProtocolSubscription(
        topics=["t"],
        owned_partitions=[TopicPartition(topic="t", partitions=[0, 1])],
        generation_id=4,
        rack_id="r",
    )

    assert encode_subscription(subscription).hex() == (
        "0003" + "00000001000174" + "ffffffff" + "00000001000174" + "000000020000000000000001" + "00000004" + "000172"
    )
    assert encode_subscription(subscription, 0).hex() == "0000" + "00000001000174" + "ffffffff"


def test_a_later_version_of_the_consumer_protocol_is_read_as_the_last_known_one() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], user_data=b"u", rack_id="r")
    later = b"\0\x09" + encode(subscription, 3) + b"what version 9 added"

    assert decode_subscription(later) == (subscription, 3)


@pytest.mark.parametrize("decode_blob", [decode_subscription, decode_assignment])
def test_hostile_blobs_end_in_a_decode_error(decode_blob: Callable[[bytes], object]) -> None:
    hostile = [
        b"",
        b"\0",
        b"\xff\xff" + bytes(20),
        b"\0\3" + b"\x7f\xff\xff\xff",
        b"\0\3" + b"\x80\0\0\0",
        b"\0\3" + struct.pack(">ih", 1, -1),
        b"\0\3" + struct.pack(">i", 1_000_000) + bytes(8_000_000),
        b"\0\0" + struct.pack(">ih", 1, 2) + b"\xff\xfe" + struct.pack(">i", -1),
    ]
    for blob in hostile:
        with pytest.raises(DecodeError):
            decode_blob(blob)
    dice = random.Random(848)
    for _ in range(500):
        blob = struct.pack(">h", dice.randrange(5)) + dice.randbytes(dice.randrange(100))
        try:
            decode_blob(blob)
        except DecodeError:
            continue


def _decoded_or_refused(cls: type[Record], data: bytes) -> None:
    try:
        value, version = decode_value(cls, data)
    except DecodeError:
        return
    assert decode_value(cls, encode_value(value, version)) == (value, version)
