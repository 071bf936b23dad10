"""The records of internal topics, as a broker's log directory has them."""

from collections.abc import Iterator
from pathlib import Path

from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.internal.group_records import GROUP_RECORDS
from kavka.protocol.internal.record_codec import decode_key, decode_value
from kavka.protocol.records.batch import iter_batch_headers
from kavka.protocol.records.legacy import iter_records_of


def stored_records(log_dir: Path, topic: str) -> Iterator[CoordinatorRecord]:
    """Those of all partitions of a topic of groups, in each partition's order. Control batches are left out."""
    for path in sorted(log_dir.glob(f"{topic}-*/*.log")):
        data = path.read_bytes()
        for position, header in iter_batch_headers(data, allow_truncated_tail=True):
            if header.is_control:
                continue
            for record in iter_records_of(data, position, header):
                assert record.key is not None
                key, value_class = decode_key(GROUP_RECORDS, record.key)
                value = None if record.value is None else decode_value(value_class, record.value)
                yield CoordinatorRecord(key, None) if value is None else CoordinatorRecord(key, *value)
