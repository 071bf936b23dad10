"""What was fetched of one partition at once, and waits to be given out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kavka.client.consumer.decoding import CorruptBatchError, Rules, Survey, decoded
from kavka.client.consumer.errors import CorruptBatchReadError
from kavka.client.consumer.positions import PartitionState
from kavka.client.consumer.stretches import Stretch
from kavka.client.kafka_error import KafkaError
from kavka.client.topic_partition import TopicPartition


class Chunk:
    """An answer's records of a partition, decoded when the polling thread comes to them.

    Threads: made by the client's thread, and the polling thread's alone afterwards.
    """

    __slots__ = (
        "_aborted",
        "_data",
        "_more",
        "_survey",
        "error",
        "generation",
        "given",
        "is_failed",
        "is_gone",
        "offset",
        "state",
        "stretch",
        "taken",
        "uncounted_bytes",
    )

    def __init__(
        self,
        state: PartitionState,
        offset: int,
        data: memoryview,
        survey: Survey,
        aborted: Sequence[tuple[int, int]],
    ) -> None:
        """`offset`: what was asked for. Called with the subscription's lock."""
        self.state: Final = state
        self.generation: Final = state.generation
        self.offset: Final = offset
        self.error: KafkaError | None = None
        """To be raised in place of records."""
        self.is_failed = False
        """Whether it was made for its error."""
        self.is_gone = False
        """Whether the buffer has let go of it."""
        self.stretch: Stretch | None = None
        """What is given out now, `taken` records of it are gone."""
        self.taken = 0
        self.given = 0
        """Records of the whole chunk that were given out, and bytes that the metrics do not have yet."""
        self.uncounted_bytes = survey.size_bytes
        self._data: memoryview | None = data
        self._survey = survey
        self._aborted = aborted
        self._more: Iterator[Stretch] | None = None

    @classmethod
    def failed(cls, state: PartitionState, error: KafkaError) -> Chunk:
        """Something to raise when its turn comes."""
        chunk = cls(state, state.fetched.offset, memoryview(b""), Survey(0, -1, 0, -1), ())
        chunk.error = error
        chunk.is_failed = True
        return chunk

    @property
    def partition(self) -> TopicPartition:
        return self.state.partition

    @property
    def is_stale(self) -> bool:
        """Whether the partition is read elsewhere by now. Under the subscription's lock."""
        return self.state.generation != self.generation

    @property
    def size_bytes(self) -> int:
        """What it counts in the buffer."""
        return self._survey.size_bytes

    def count(self, records: int) -> int:
        """Records are given out: the bytes that they stand for, their share of the chunk's."""
        whole = self._survey
        self.given = given = self.given + records
        # Old formats say how many records a batch has only where they are unpacked: of these there are more.
        left = whole.size_bytes - whole.size_bytes * given // whole.records if given < whole.records else 0
        added = self.uncounted_bytes - left
        self.uncounted_bytes = left
        return added

    def advance(self, rules: Rules) -> Stretch | None:
        """The stretch after the present one; None at the end. Raises CorruptBatchReadError."""
        more = self._more
        if more is None:
            assert self._data is not None
            data = self._data[: self._survey.size_bytes]
            self._data = None
            self._more = more = decoded(self.partition, data, self.offset, self._aborted, rules, self._survey.records)
        self.taken = 0
        try:
            self.stretch = next(more, None)
        except CorruptBatchError as failure:
            self.stretch = None
            raise CorruptBatchReadError(str(failure), self.partition, failure.offset, failure.next_offset) from failure
        return self.stretch
