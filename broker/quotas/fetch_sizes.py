"""Whether a fetch may be answered: how large the answer would be is known before it is made.

What a throttled one would take is not even read.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from kavka.protocol.codec import encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from kavka.protocol.varint import varint_bytes

if TYPE_CHECKING:
    from kavka.broker.partitions.fetch_sessions import FetchSession, Key
    from kavka.broker.partitions.log_reading import Reading, ReadLimits
    from kavka.broker.quotas.charging import Charge

FLEXIBLE_SINCE: Final = 12
TOPIC_IDS_SINCE: Final = 13
SIZE_BYTES: Final = 4


def throttled_answer(
    charge: "Charge",
    limits: "ReadLimits",
    found: "Iterable[tuple[Key, Reading]]",
    session: "FetchSession | None",
    session_epoch: int,
) -> FetchResponse | None:
    """What a consumer is told that has fetched too much: nothing, and nothing of it counts. None: the usual answer."""
    if limits.is_follower:
        charge.exempt()
        return None
    shown = [
        (key[0], reading.answer, reading.size_bytes)
        for key, reading in found
        if session is None or reading.size_bytes or reading.answer.error_code
    ]
    if charge.fetched(fetch_size_bytes(limits.version, shown)):
        return None
    if session is None:
        return FetchResponse(error_code=0, session_id=0, responses=[])
    code = ErrorCode.NONE if session.epoch == session_epoch else ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return FetchResponse(error_code=code, session_id=session.id, responses=[])


def fetch_size_bytes(version: int, shown: Iterable[tuple[str, PartitionData, int]]) -> int:
    """As `FetchResponse.sizeOf`: topic, entry and bytes of records of each partition, neighbours of one topic together.

    What tells of other leaders is left out.
    """
    whole, of_topic, of_partition, of_aborted = _sizes(version)
    size = SIZE_BYTES + whole
    last = None
    for topic, entry, records_bytes in shown:
        if topic != last:
            last = topic
            size += of_topic
            if version < TOPIC_IDS_SINCE:
                size += len(topic.encode())
        size += of_partition + records_bytes + len(entry.aborted_transactions or ()) * of_aborted
        if version >= FLEXIBLE_SINCE:
            size += len(varint_bytes(records_bytes + 1)) - 1
    return size


@cache
def _sizes(version: int) -> tuple[int, int, int, int]:
    """Of an answer without topics, and what a topic, a partition and an aborted transaction add to it."""

    def partition(*aborted: AbortedTransaction) -> PartitionData:
        return PartitionData(
            partition_index=0, error_code=0, high_watermark=0, aborted_transactions=list(aborted), records=b""
        )

    def size(*topics: FetchableTopicResponse) -> int:
        return len(encode(FetchResponse(error_code=0, session_id=0, responses=list(topics)), version))

    empty = size()
    topic = size(FetchableTopicResponse(topic="", partitions=[]))
    with_partition = size(FetchableTopicResponse(topic="", partitions=[partition()]))
    aborted = AbortedTransaction(producer_id=0, first_offset=0)
    with_aborted = size(FetchableTopicResponse(topic="", partitions=[partition(aborted)]))
    return empty, topic - empty, with_partition - topic, with_aborted - with_partition
