"""Records written by hand are those that the general codec and the general builder write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.coordinator.runtime.batches import batch_of
from kavka.coordinator.runtime.record_encoding import encoded
from kavka.coordinator.runtime.result import CoordinatorRecord, Producer
from kavka.protocol.errors import EncodeError
from kavka.protocol.internal.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kavka.protocol.internal.record_codec import encode_key, encode_value
from kavka.protocol.records.batch import Codec, Record, build_batch

NOW_MS = 1_700_000_000_000
names = st.text(max_size=80)
int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
keys = st.builds(OffsetCommitKey, group=names, topic=names, partition=int32)
values = st.builds(
    OffsetCommitValue, offset=int64, leader_epoch=int32, metadata=st.text(max_size=200), commit_timestamp=int64
)
group_records = st.builds(
    lambda name: CoordinatorRecord(
        GroupMetadataKey(group=name),
        GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None, members=[]),
        3,
    ),
    names,
)
records = st.one_of(
    st.builds(CoordinatorRecord, keys, values, st.sampled_from([0, 1, 3, 4])),
    st.builds(CoordinatorRecord, keys, st.none()),
    group_records,
)


def by_the_codec(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    return encode_key(record.key), None if record.value is None else encode_value(record.value, record.value_version)


@given(record=records)
def test_a_record_by_hand_is_the_codecs(record: CoordinatorRecord) -> None:
    assert encoded(record) == by_the_codec(record)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("producer", [None, Producer(2**40, 7)])
@given(several=st.lists(records, min_size=1, max_size=70))
def test_a_batch_by_hand_is_the_builders(
    codec: Codec, producer: Producer | None, several: list[CoordinatorRecord]
) -> None:
    producer_id, producer_epoch = producer or (-1, -1)
    by_the_builder = build_batch(
        [Record(timestamp_ms=NOW_MS, key=key, value=value) for key, value in map(by_the_codec, several)],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=producer is not None,
    )

    assert batch_of(several, NOW_MS, codec=codec, producer=producer) == by_the_builder


@pytest.mark.parametrize(
    "record",
    [
        CoordinatorRecord(OffsetCommitKey(group="g" * 40_000, topic="t", partition=0), None),
        CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=2**31), None),
        CoordinatorRecord(
            OffsetCommitKey(group="g", topic="t", partition=0),
            OffsetCommitValue(offset=2**63, metadata="", commit_timestamp=0),
            3,
        ),
    ],
    ids=["name too long", "partition too large", "offset too large"],
)
def test_what_does_not_fit_is_an_encode_error(record: CoordinatorRecord) -> None:
    with pytest.raises(EncodeError):
        encoded(record)
