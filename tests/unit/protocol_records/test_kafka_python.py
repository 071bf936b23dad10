"""kafka-python's record classes as another opinion, both ways (its lz4 of magic 0 needs a package that we don't)."""

import pytest
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from kavka.protocol.records.batch import Codec, Record, build_batch, iter_batch_headers, iter_records, verify_crc
from kavka.protocol.records.legacy import build_message_set

CASES = [
    (magic, codec)
    for magic in (0, 1, 2)
    for codec in Codec
    if (codec != Codec.ZSTD or magic == 2) and (magic, codec) != (0, Codec.LZ4)
]
RECORDS = [
    Record(offset, 1_700_000_000_000 + offset, [None, b"key"][offset % 2], [b"v" * 40, None, b""][offset % 3])
    for offset in range(30)
]


@pytest.mark.parametrize(("magic", "codec"), CASES)
def test_reads_what_kafka_python_wrote(magic: int, codec: Codec) -> None:
    builder = MemoryRecordsBuilder(magic=magic, compression_type=int(codec), batch_size=1 << 20)
    for record in RECORDS:
        builder.append(record.timestamp_ms if magic else None, record.key, record.value, [])
    builder.close()
    data = bytes(builder.buffer())

    read: list[Record] = []
    for position, header in iter_batch_headers(data):
        verify_crc(data, position, header)
        read += iter_records(data, position)

    # Its magic 1 wrappers stand at offset 0, not at their last one: a broker assigns offsets anyway.
    assert [record[1:] for record in read] == [record[1:] for record in expected(magic)]


@pytest.mark.parametrize(("magic", "codec"), CASES)
def test_kafka_python_reads_what_we_wrote(magic: int, codec: Codec) -> None:
    data = build_batch(RECORDS, codec=codec) if magic == 2 else build_message_set(RECORDS, magic, codec=codec)

    read = []
    batches = MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        read += [(record.offset, -1 if magic == 0 else record.timestamp, record.key, record.value) for record in batch]

    assert read == [record[:4] for record in expected(magic)]


def expected(magic: int) -> list[Record]:
    return RECORDS if magic else [record._replace(timestamp_ms=-1) for record in RECORDS]
