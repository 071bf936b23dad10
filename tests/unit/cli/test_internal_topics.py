"""Internal topics in words, in the JSON of Kafka's formatters, and bytes that are no record of theirs."""

import json
import random

import pytest

from kavka.cli.consume.formatters import INTERNAL_FORMATTERS, Wanted, formatter_of
from kavka.cli.consume.internal_topics import RECORDS_OF, InternalRecord, kafka_json
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from kavka.protocol.internal.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    CurrentTopicPartitions,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kavka.protocol.internal.record_codec import encode_key, encode_value
from kavka.protocol.internal.transaction_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from kavka.protocol.schema import schema_of
from tests.support.json_documents import line_document
from tests.support.message_values import STYLES, message_value
from tests.support.shown_records import Shown

OFFSETS = "__consumer_offsets"
STATE = "__transaction_state"
COMMIT_KEY = encode_key(OffsetCommitKey(group="billing", topic="visits", partition=0))
COMMIT = OffsetCommitValue(offset=42, leader_epoch=3, metadata="by hand", commit_timestamp=1_767_250_800_007)


def words(topic: str, key: bytes | None, value: bytes | None) -> str:
    return InternalRecord(topic, key, value).words()


def test_a_committed_offset_is_said_in_words() -> None:
    assert words(OFFSETS, COMMIT_KEY, encode_value(COMMIT, 3)) == (
        'OffsetCommit group=billing topic=visits partition=0: offset=42 leader_epoch=3 metadata="by hand" '
        "commit_timestamp=2026-01-01T07:00:00.007Z"
    )
    assert words(OFFSETS, COMMIT_KEY, None) == "OffsetCommit group=billing topic=visits partition=0: deleted"


def test_a_classic_groups_members_say_what_they_read() -> None:
    member = MemberMetadata(
        member_id="a-1",
        client_id="a",
        client_host="/127.0.0.1",
        session_timeout=45_000,
        subscription=encode_subscription(ConsumerProtocolSubscription(topics=["visits"])),
        assignment=encode_assignment(
            ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="visits", partitions=[0, 1])])
        ),
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="a-1", members=[member])
    shown = words(OFFSETS, encode_key(GroupMetadataKey(group="billing")), encode_value(value, 3))
    assert "subscription={topics=[visits]} assignment={visits=[0, 1]}" in shown
    member.subscription = member.assignment = b"connect\x1b"
    shown = words(OFFSETS, encode_key(GroupMetadataKey(group="billing")), encode_value(value, 3))
    assert r'subscription="connect\x1b" assignment="connect\x1b"' in shown


def test_states_are_words_and_not_numbers() -> None:
    transaction = TransactionLogValue(
        producer_id=7,
        producer_epoch=0,
        transaction_timeout_ms=60_000,
        transaction_status=2,
        transaction_partitions=[PartitionsSchema(topic="visits", partition_ids=[0, 1])],
        transaction_last_update_timestamp_ms=1_767_250_800_000,
        transaction_start_timestamp_ms=-1,
    )
    shown = words(STATE, encode_key(TransactionLogKey(transactional_id="billing")), encode_value(transaction, 0))
    assert shown.startswith("TransactionLog transactional_id=billing: producer_id=7 ")
    assert "transaction_status=PrepareCommit transaction_partitions=[{topic=visits partition_ids=[0, 1]}]" in shown
    assert "transaction_start_timestamp_ms=-" in shown

    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="billing", member_id="a")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=1,
        state=1,
        assigned_partitions=[CurrentTopicPartitions(topic_id=bytes(range(16)), partitions=[0])],
        partitions_pending_revocation=[],
    )
    shown = words(OFFSETS, encode_key(key), encode_value(value, 0))
    assert "state=UnrevokedPartitions assigned_partitions=[{topic_id=AAECAwQFBgcICQoLDA0ODw partitions=[0]}]" in shown


@pytest.mark.parametrize("topic", RECORDS_OF)
def test_every_record_there_is_becomes_one_line_of_words_and_json(topic: str) -> None:
    for number, (key_class, value_class) in RECORDS_OF[topic].items():
        for version in range(schema_of(value_class).first, schema_of(value_class).last + 1):
            for style in STYLES:
                key = bytearray(encode_key(message_value(key_class, 0, style)))
                key[:2] = number.to_bytes(2, "big")
                record = InternalRecord(
                    topic, bytes(key), encode_value(message_value(value_class, version, style), version)
                )
                assert record.note is None
                assert record.type == number
                assert record.words().isprintable()
                assert json.loads(kafka_json(record))["value"]["version"] == version


def test_the_json_is_that_of_kafkas_formatters() -> None:
    record = InternalRecord(OFFSETS, COMMIT_KEY, encode_value(COMMIT, 3))
    assert kafka_json(record) == (
        '{"key":{"type":1,"data":{"group":"billing","topic":"visits","partition":0}},"value":{"version":3,"data":'
        '{"offset":42,"leaderEpoch":3,"metadata":"by hand","commitTimestamp":1767250800007}}}'
    )
    assert kafka_json(InternalRecord(OFFSETS, COMMIT_KEY, None)).endswith('"value":null}')


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (None, b"a\x1b", r'key="" value="a\x1b" (not decoded: a record without a key)'),
        (b"\0\x63x", None, r'key="\x00cx" value=null (not decoded: key of unknown type 99)'),
        (
            COMMIT_KEY,
            b"\0\x63\x9b",
            r'topic=visits partition=0: "\x00c\x9b" (not decoded: OffsetCommitValue of version 99',
        ),
        (COMMIT_KEY[:-1], b"", "(not decoded: "),
    ],
)
def test_what_does_not_decode_is_escaped_with_a_note(key: bytes | None, value: bytes | None, shown: str) -> None:
    found = words(OFFSETS, key, value)
    assert shown in found
    assert found.isprintable()
    line = formatter_of(Wanted(as_json=True), bytes)(Shown(OFFSETS, key=key, value=value))
    assert line_document("consume", line.decode())["note"]


def test_random_bytes_never_end_in_an_error_or_in_garbage() -> None:
    dice = random.Random("internal topics")
    for _ in range(3_000):
        topic = dice.choice(list(RECORDS_OF))
        key = dice.choice([b"\0", b"\0\0"]) + dice.randbytes(dice.randrange(40))
        value = dice.choice([None, b"\0" + dice.randbytes(dice.randrange(60))])
        record = InternalRecord(topic, key, value)
        assert record.words().isprintable()
        assert json.loads(kafka_json(record)).keys() >= {"key", "value"}


def test_internal_topics_are_said_in_words_unless_somebody_wants_their_bytes() -> None:
    commit = Shown(OFFSETS, key=COMMIT_KEY, value=encode_value(COMMIT, 3))
    assert formatter_of(Wanted(), bytes)(commit).startswith(b"OffsetCommit group=billing")
    assert formatter_of(Wanted(formatter="default"), bytes)(commit) == encode_value(COMMIT, 3) + b"\n"
    assert formatter_of(Wanted("%s"), bytes)(commit) == encode_value(COMMIT, 3) + b"\n"
    line = formatter_of(Wanted(as_json=True), bytes)(commit).decode()
    assert line_document("consume", line)["value"]["data"]["offset"] == 42


def test_kafkas_formatters_leave_out_what_is_not_theirs() -> None:
    commit = Shown(OFFSETS, key=COMMIT_KEY, value=encode_value(COMMIT, 3))
    group = Shown(OFFSETS, key=encode_key(GroupMetadataKey(group="billing")), value=None)
    for name in INTERNAL_FORMATTERS:
        show = formatter_of(Wanted(formatter=name), bytes)
        assert show(Shown(OFFSETS, key=None)) == b""
        if "ffsets" in name:
            assert show(commit).startswith(b'{"key":{"type":1,')
            assert show(group) == b""
        elif "roup" in name and "share" not in name:
            assert show(commit) == b""
            assert show(group).startswith(b'{"key":{"type":2,')
