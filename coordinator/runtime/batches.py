"""Records of internal topics as batches."""

from collections.abc import Sequence

from kavka.coordinator.runtime.result import CoordinatorRecord, Producer
from kavka.protocol.internal.record_codec import encode_key, encode_value
from kavka.protocol.records.batch import Codec, ControlType, Record, build_batch, build_control_batch
from kavka.protocol.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def batch_of(
    records: Sequence[CoordinatorRecord], now_ms: int, *, codec: int = Codec.NONE, producer: Producer | None = None
) -> bytearray:
    """One batch of the records, transactional if they are a producer's. Raises EncodeError."""
    producer_id, producer_epoch = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH) if producer is None else producer
    return bytearray(
        build_batch(
            [
                Record(
                    timestamp_ms=now_ms,
                    key=encode_key(record.key),
                    value=None if record.value is None else encode_value(record.value, record.value_version),
                )
                for record in records
            ],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer is not None,
        )
    )


def end_marker(producer: Producer, coordinator_epoch: int, now_ms: int, *, committed: bool) -> bytearray:
    """The batch that ends a producer's transaction on the partition."""
    return bytearray(
        build_control_batch(
            ControlType.COMMIT if committed else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
    )
