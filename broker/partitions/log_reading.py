"""Reading what a fetch asks for: partition by partition, within its limits (KIP-74), into the answer's entries."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.network.file_part import FilePart
from kavka.broker.partitions.partition import Partition
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    PartitionData,
)

if TYPE_CHECKING:
    from kavka.broker.partitions.role import PartitionRole
    from kavka.broker.replication.throttle import ReplicationThrottle
    from kavka.storage.log_slice import LogSlice
    from kavka.storage.partition_log import PartitionLog

SENDFILE_FROM_BYTES: Final = 64 * 1024
"""Slices from this size on go by sendfile: below, reading and sending costs less than the extra system call."""
MAGIC_2_SINCE: Final = 4
"""The first version of Fetch that carries batches as they are stored."""
READ_COMMITTED: Final = 1
CONSUMER: Final = -1


class ReadLimits:
    """What one fetch may read.

    `honours_first_batch` is KIP-74's promise to return the first batch of the first non-empty partition whole; before
    v3 the limit of each partition was hard.
    """

    __slots__ = (
        "honours_first_batch",
        "is_follower",
        "max_bytes",
        "prefers",
        "reads_followers",
        "replica_id",
        "throttle",
        "version",
        "wants_committed",
    )

    throttle: "ReplicationThrottle | None"
    """Of what followers that are not in sync may get (KIP-73)."""
    prefers: Callable[[Partition, int], int] | None
    """Whom a consumer had better ask from that offset on, -1 for nobody else (KIP-392)."""
    is_follower: bool
    """Whether a broker replicates (and not a debugging client with one of the other negative ids)."""
    reads_followers: bool
    """Whether the consumer may read what this broker does not lead."""

    def __init__(self, max_bytes: int, *, version: int, replica_id: int, isolation_level: int) -> None:
        self.throttle = None
        self.prefers = None
        self.reads_followers = False
        self.max_bytes = max_bytes
        self.version = version
        self.honours_first_batch = version >= 3
        self.replica_id = replica_id
        self.is_follower = replica_id >= 0
        self.wants_committed = isolation_level == READ_COMMITTED

    @property
    def needs_conversion(self) -> bool:
        """Whether what is read has to be looked into record by record, which can take seconds."""
        return self.version < MAGIC_2_SINCE

    @property
    def is_consumer(self) -> bool:
        """Whether a consumer asks (and not a follower): it sees only what is below the high watermark."""
        return self.replica_id == CONSUMER


class Reading:
    """One partition's part of a fetch: what was asked, and after `read` the answer and how many bytes it has."""

    __slots__ = ("answer", "asked", "leader_end_offset", "leader_epoch", "partition", "piece", "size_bytes")

    def __init__(self, partition: Partition | None, asked: FetchPartition, refusal: ErrorCode | None = None) -> None:
        self.partition = partition
        self.asked = asked
        self.piece: LogSlice | None = None
        self.size_bytes = 0
        self.leader_epoch = -1
        """The one in which a follower's fetch was found to be right, and read; -1: it is not, or no follower's."""
        self.leader_end_offset = -1
        """Where the log ended before a follower's read."""
        if partition is None or refusal is not None:
            self.refuse(ErrorCode.NONE if refusal is None else refusal)
        if refusal is not None:
            # Empty where nothing was read, null where reading failed: as Kafka has it.
            self.answer.aborted_transactions = []

    answer: PartitionData
    """Where there is a partition to read, from the first `read` on."""

    @property
    def failed(self) -> bool:
        """Whether the answer is an error, or tells of a diverging epoch or another replica: answered at once."""
        answer = self.answer
        return answer.error_code != 0 or answer.diverging_epoch.end_offset >= 0 or answer.preferred_read_replica >= 0

    @property
    def has_all(self) -> bool:
        """Whether a follower has all that there was when it was read."""
        return not self.failed and not self.size_bytes and self.leader_end_offset == self.asked.fetch_offset

    def read(self, limits: ReadLimits, max_bytes: int, *, nothing_yet: bool, is_trial: bool = False) -> None:
        """Look up the slice to answer with, `max_bytes` at most unless KIP-74 grants the first batch.

        A trial is not answered with: the aborted transactions, of which there may be thousands, are left out.
        """
        partition = self.partition
        if partition is None:
            return
        asked = self.asked
        self.piece = None
        self.size_bytes = 0
        self.leader_epoch = -1
        try:
            self._read(partition, asked, limits, max_bytes, nothing_yet, is_trial)
            if self.leader_epoch >= 0:
                self._check_still_led(partition)
        except BrokerError as failure:
            self.answer = refused(asked.partition, failure.code)
        except FileNotFoundError:
            # Deleted between the two looks: there is another answer by the time that the client asks again.
            self.answer = refused(asked.partition, ErrorCode.KAFKA_STORAGE_ERROR)
        if self.leader_epoch >= 0 and self.failed:
            self.leader_epoch = -1

    def _read(
        self,
        partition: Partition,
        asked: FetchPartition,
        limits: ReadLimits,
        max_bytes: int,
        nothing_yet: bool,
        is_trial: bool,
    ) -> None:
        role = None
        if limits.replica_id >= 0:
            log, role = partition.check_follower(limits.replica_id, asked.current_leader_epoch)
            self.leader_epoch = role.leader_epoch
        else:
            log = _copied_log(partition) if limits.reads_followers else partition.leader_log()
            partition.check_leader_epoch(asked.current_leader_epoch)
        high_watermark = log.high_watermark
        last_stable_offset = log.last_stable_offset
        if limits.replica_id == CONSUMER:
            end_offset = last_stable_offset if limits.wants_committed else high_watermark
        else:
            self.leader_end_offset = end_offset = log.log_end_offset
        answer = PartitionData(
            partition_index=asked.partition,
            error_code=0,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if limits.wants_committed else None,
            records=b"",
        )
        self.answer = answer
        has_all = role is not None and end_offset == asked.fetch_offset and has_same_end(log, asked)
        if has_all or (asked.last_fetched_epoch >= 0 and _diverges(log, asked, answer)):
            return
        if limits.prefers is not None and _prefers_another(partition, asked, limits.prefers, answer):
            return
        limit = min(max_bytes, max(asked.partition_max_bytes, 0))
        min_one = nothing_yet and limits.honours_first_batch
        piece = log.read(asked.fetch_offset, limit, min_one=min_one, end_offset=end_offset)
        if role is not None and limits.throttle is not None and _is_held_back(log, role, limits):
            return
        if (
            limits.honours_first_batch
            and not nothing_yet
            and piece.size_bytes == limit > 0
            and not piece.begins_with_whole_batch()
        ):
            # A piece of a batch is of no use to anybody, and Kafka sends none either.
            return
        self.piece = piece
        self.size_bytes = piece.size_bytes
        if limits.wants_committed and piece.size_bytes and not is_trial:
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in log.aborted_transactions(asked.fetch_offset, log.upper_bound_offset(piece))
            ]
            if not log.holds(piece):
                # Compacted away between the two looks, with the aborted transactions that the slice still shows.
                self.read(limits, max_bytes, nothing_yet=nothing_yet)

    def _check_still_led(self, partition: Partition) -> None:
        """High watermark, epochs and bytes are the leader's that was asked, not of one that is followed since."""
        role = partition.role
        if not role.is_leader or role.leader_epoch != self.leader_epoch:
            self.piece = None
            self.size_bytes = 0
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def note_progress(self, replica_id: int, broker_epoch: int) -> bool:
        """Count what the follower has that asks, if its fetch was found to be right; see `follower_fetched`.

        True: who waits at the partition has to be told, by `committed`.
        """
        partition, asked = self.partition, self.asked
        if partition is None or self.leader_epoch < 0:
            return False
        try:
            return partition.follower_fetched(
                replica_id,
                asked.fetch_offset,
                leader_epoch=self.leader_epoch,
                leader_end_offset=self.leader_end_offset,
                log_start_offset=asked.log_start_offset,
                broker_epoch=broker_epoch,
            )
        except BrokerError as failure:
            self.refuse(failure.code)
            return False

    def refuse(self, code: ErrorCode) -> None:
        """Read nothing, or answer with nothing of what was read; the answer is the error."""
        self.partition = None
        self.piece = None
        self.size_bytes = 0
        self.answer = refused(self.asked.partition, code)

    def available(self, limits: ReadLimits) -> bool:
        """Whether there is anything at all to read now, an error included. Cheap: looks at offsets only."""
        partition = self.partition
        if partition is None:
            return True
        if limits.replica_id != CONSUMER:
            return is_available(partition, self.asked, limits)
        log = partition.log
        role = partition.role
        if log is None or not (role.is_leader or limits.reads_followers):
            return True
        if self.asked.current_leader_epoch not in (-1, role.leader_epoch):
            return True
        offset = self.asked.fetch_offset
        log_end_offset = log.log_end_offset
        end_offset = log.last_stable_offset if limits.wants_committed else log.high_watermark
        # Between that end and the log's there is nothing to read yet, and nothing wrong.
        return offset < end_offset or offset > log_end_offset

    def weigh(self, limits: ReadLimits, enough: int) -> int:
        """How many bytes a fetch that waits would find here; `enough` of them where it is not to wait any longer.

        That is for an error, and for what lies before the segment with the readable end: a read goes to its segment's
        end at most, so that no append adds to it. What the other partitions take of the limits is left aside, as in
        Kafka. Others may be asking the same, or answering already: what is found is not kept.
        """
        partition = self.partition
        trial = Reading(partition, self.asked)
        trial.read(limits, limits.max_bytes, nothing_yet=True, is_trial=True)
        log = None if partition is None else partition.log
        if log is None or trial.failed:
            return enough
        piece = trial.piece
        if piece is None or not piece.size_bytes:
            return 0
        end_offset = log.log_end_offset
        if limits.is_consumer:
            end_offset = trial.answer.last_stable_offset if limits.wants_committed else trial.answer.high_watermark
        if piece.segment_base_offset < log.segment_base_offset(end_offset):
            return enough
        return min(piece.size_bytes, max(self.asked.partition_max_bytes, 0))

    def attach(self, *, by_descriptor: bool = True) -> int:
        """Put the bytes into the answer, or a pinned piece of the file for sendfile; how many bytes it has.

        An answer whose bytes can't be read becomes KAFKA_STORAGE_ERROR.
        """
        piece = self.piece
        if piece is None or not piece.size_bytes:
            return 0
        by_descriptor = by_descriptor and piece.size_bytes >= SENDFILE_FROM_BYTES
        try:
            self.answer.records = FilePart(piece) if by_descriptor else piece.read_bytes()
        except FileNotFoundError:
            # Deleted since: the client asks again and learns of it.
            self.size_bytes = 0
            self.answer.records = b""
        except BrokerError as failure:
            self.size_bytes = 0
            self.answer = refused(self.asked.partition, failure.code)
        return self.size_bytes


def is_available(partition: Partition, asked: FetchPartition, limits: ReadLimits) -> bool:
    """Whether there is anything to read for who is no consumer, an error included. Cheap: looks at offsets only."""
    log, role = partition.log, partition.role
    if log is None or not role.is_leader or asked.current_leader_epoch not in (-1, role.leader_epoch):
        return True
    return log.log_end_offset != asked.fetch_offset and not _is_held_back(log, role, limits)


def refused(index: int, code: ErrorCode) -> PartitionData:
    """An entry without data."""
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
    )


def read_all(readings: list[Reading], limits: ReadLimits) -> int:
    """Read in order until the fetch's limit is reached; how many bytes were found."""
    left = limits.max_bytes
    found = 0
    for reading in readings:
        reading.read(limits, left, nothing_yet=found == 0)
        found += reading.size_bytes
        left = max(0, left - reading.size_bytes)
    return found


def _copied_log(partition: Partition) -> "PartitionLog":
    """The log, if this broker leads or follows. Raises as `leader_log`."""
    log = partition.log
    return log if log is not None and partition.role.leader_id >= 0 else partition.leader_log()


def _prefers_another(
    partition: Partition, asked: FetchPartition, prefers: Callable[[Partition, int], int], answer: PartitionData
) -> bool:
    """Whether the leader sends the consumer to a follower."""
    if partition.role.is_leader:
        answer.preferred_read_replica = prefers(partition, asked.fetch_offset)
    return answer.preferred_read_replica >= 0


def _is_held_back(log: "PartitionLog", role: "PartitionRole", limits: ReadLimits) -> bool:
    """Whether a follower gets nothing now, though there is something: the rate of throttled replicas is reached."""
    throttle = limits.throttle
    return throttle is not None and throttle.holds_back(log, is_in_sync=limits.replica_id in role.isr)


def has_same_end(log: "PartitionLog", asked: FetchPartition) -> bool:
    """Whether a follower that has as many records has the same ones: its last is of the epoch that ours is of."""
    return asked.last_fetched_epoch in (-1, log.epochs.latest_epoch)


def _diverges(log: "PartitionLog", asked: FetchPartition, answer: PartitionData) -> bool:
    """Whether the client's last epoch ends earlier here than where it wants to go on (KIP-595, KIP-320)."""
    epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or asked.fetch_offset < log.log_start_offset:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= asked.last_fetched_epoch and end_offset >= asked.fetch_offset:
        return False
    answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return True
