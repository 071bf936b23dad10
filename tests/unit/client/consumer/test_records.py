"""Records as their users have them: tuples with names, that can be copied, sent elsewhere, and be changed."""

import copy
import pickle

import pytest

from kavka.client.consumer.records import ConsumerRecord, DeserializedRecord
from kavka.protocol.records.header import TimestampType
from kavka.protocol.records.reading import NO_HEADERS

PLAIN = ConsumerRecord(("visits", 3, 42, 1_700, b"key", None, NO_HEADERS, TimestampType.CREATE, 7))
DESERIALIZED = DeserializedRecord((*PLAIN[:4], "key", {"a": 1}, *PLAIN[6:], 3, 9))


def test_fields_have_names() -> None:
    assert (PLAIN.topic, PLAIN.partition, PLAIN.offset, PLAIN.timestamp_ms) == ("visits", 3, 42, 1_700)
    assert (PLAIN.key, PLAIN.value, PLAIN.headers, PLAIN.leader_epoch) == (b"key", None, (), 7)
    assert (PLAIN.serialized_key_size, PLAIN.serialized_value_size) == (3, -1)
    assert (DESERIALIZED.value, DESERIALIZED.serialized_value_size) == ({"a": 1}, 9)
    with pytest.raises(AttributeError):
        PLAIN.topic = "other"
    match PLAIN:
        case ConsumerRecord(topic, _, offset):
            assert (topic, offset) == ("visits", 42)


@pytest.mark.parametrize("record", [PLAIN, DESERIALIZED], ids=["plain", "deserialized"])
def test_records_can_be_copied_and_changed(record: ConsumerRecord) -> None:
    for other in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert (type(other), other) == (type(record), record)
    changed = record._replace(value=b"other")
    assert (type(changed), changed.value, changed.offset) == (type(record), b"other", 42)
    assert changed.serialized_key_size == record.serialized_key_size
    with pytest.raises(TypeError, match="has no"):
        record._replace(colour="red")
