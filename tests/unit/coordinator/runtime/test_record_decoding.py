"""Records are decoded by hand exactly as the general codec decodes them."""

import random

import pytest

from kavka.coordinator.runtime.record_decoding import MAX_NAMES, RecordDecoder
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.errors import DecodeError
from kavka.protocol.internal.group_records import GROUP_RECORDS, OffsetCommitKey, OffsetCommitValue
from kavka.protocol.internal.record_codec import decode_key, decode_value, encode_key, encode_value
from kavka.protocol.internal.transaction_records import TRANSACTION_RECORDS, TransactionLogKey, TransactionLogValue
from tests.support.message_values import STYLES, message_value


def decoded_generally(key: bytes, value: bytes | None) -> CoordinatorRecord:
    decoded_key, value_class = decode_key(GROUP_RECORDS, key)
    if value is None:
        return CoordinatorRecord(decoded_key, None)
    return CoordinatorRecord(decoded_key, *decode_value(value_class, value))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("version", range(5))
def test_offset_commits_of_every_version_are_the_same(version: int, style: str) -> None:
    decoder = RecordDecoder(GROUP_RECORDS)
    for seed in range(30):
        key = encode_key(message_value(OffsetCommitKey, 0, style, seed))
        value = encode_value(message_value(OffsetCommitValue, version, style, seed), version)
        assert decoder.decode(key, value) == decoded_generally(key, value)
        assert decoder.decode(key, None) == decoded_generally(key, None)
        assert decoder.decode(b"\0\0" + key[2:], value) == decoded_generally(key, value)


def test_every_damage_is_found_as_the_general_codec_finds_it() -> None:
    dice = random.Random(11)
    decoder = RecordDecoder(GROUP_RECORDS)
    key = encode_key(OffsetCommitKey(group="group", topic="žluťoučký", partition=3))
    value = encode_value(OffsetCommitValue(offset=1, leader_epoch=2, metadata="metá", commit_timestamp=3), 3)
    decoder.decode(key, value)
    for _ in range(20_000):
        pair = [bytearray(key), bytearray(value)]
        victim = pair[dice.randrange(2)]
        match dice.randrange(3):
            case 0:
                victim[dice.randrange(len(victim))] = dice.randrange(256)
            case 1:
                del victim[dice.randrange(len(victim)) :]
            case _:
                victim += dice.randbytes(dice.randrange(4))
        damaged = bytes(pair[0]), bytes(pair[1])
        try:
            expected = decoded_generally(*damaged)
        except DecodeError as error:
            with pytest.raises(type(error)):
                decoder.decode(*damaged)
        else:
            assert decoder.decode(*damaged) == expected


def test_names_are_shared_and_bounded() -> None:
    decoder = RecordDecoder(GROUP_RECORDS)
    keys = [encode_key(OffsetCommitKey(group="g", topic="t" * 40, partition=partition)) for partition in range(2)]
    first, second = (decoder.decode(key, None).key for key in keys)
    assert isinstance(first, OffsetCommitKey)
    assert isinstance(second, OffsetCommitKey)
    assert first.topic is second.topic

    for number in range(MAX_NAMES + 10):
        decoder.decode(encode_key(OffsetCommitKey(group=f"g{number}", topic="t", partition=0)), None)

    assert len(decoder._names) <= MAX_NAMES


def test_other_records_go_the_general_way() -> None:
    key = TransactionLogKey(transactional_id="x")
    value = message_value(TransactionLogValue, 1, "full")

    record = RecordDecoder(TRANSACTION_RECORDS).decode(encode_key(key), encode_value(value, 1))

    assert record == CoordinatorRecord(key, value, 1)
