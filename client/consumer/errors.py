"""What a consumer raises besides the broker's own errors (`client.api_errors`)."""

from collections.abc import Mapping
from typing import Final

from kavka.client.kafka_error import KafkaError, RetriableError
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode


class ConcurrentUseError(KafkaError, RuntimeError):
    """A second thread used the consumer while the first had not returned: only `wakeup` and `metrics` are for any."""


class WakeupError(KafkaError):
    """`wakeup` ended a call that waited. The consumer can be used on."""


class InvalidOffsetError(KafkaError):
    """A position is of no use, and no policy says where to go on: `partitions` has it by partition. `seek` mends it."""

    def __init__(self, message: str, partitions: Mapping[TopicPartition, int]) -> None:
        super().__init__(message)
        self.partitions: Final = partitions


class NoOffsetForPartitionError(InvalidOffsetError):
    """Nothing is committed, and `auto.offset.reset` is none. The positions are -1."""


class FetchOutOfRangeError(InvalidOffsetError):
    """The log does not reach to the position, and `auto.offset.reset` is none."""

    code = int(ErrorCode.OFFSET_OUT_OF_RANGE)


class LogTruncationError(InvalidOffsetError):
    """The log was cut below the position by an unclean election (KIP-320), and `auto.offset.reset` is none.

    `divergent_offsets` says where each partition's log and what was read part, as far as the broker knows.
    """

    def __init__(
        self,
        message: str,
        partitions: Mapping[TopicPartition, int],
        divergent_offsets: Mapping[TopicPartition, int],
    ) -> None:
        super().__init__(message, partitions)
        self.divergent_offsets: Final = divergent_offsets


class CorruptBatchReadError(KafkaError):
    """A batch's bytes are not what was written; reading stays before it.

    `seek(partition, next_offset)` goes on behind it; `kavka.skip.corrupt.batches` does that by itself.
    """

    code = int(ErrorCode.CORRUPT_MESSAGE)

    def __init__(self, message: str, partition: TopicPartition, offset: int, next_offset: int) -> None:
        super().__init__(message)
        self.topic_partition: Final = partition
        self.offset: Final = offset
        self.next_offset: Final = next_offset


class RecordDeserializationError(KafkaError):
    """A deserializer raised, its exception is the cause; reading stays before the record, `seek` goes past it."""

    def __init__(self, partition: TopicPartition, offset: int, *, of_key: bool) -> None:
        part = "key" if of_key else "value"
        super().__init__(f"the {part} of the record at offset {offset} of {partition} cannot be deserialized")
        self.topic_partition: Final = partition
        self.offset: Final = offset
        self.of_key: Final = of_key


class FetchTooSmallError(RetriableError):
    """An old broker cuts batches to what was asked for, and the first has more: raise `max.partition.fetch.bytes`."""

    code = int(ErrorCode.MESSAGE_TOO_LARGE)
