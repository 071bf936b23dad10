"""Which batches belong to aborted transactions (KIP-98), so that a reader of committed records leaves them out.

A fetch's answer names them: a producer's id, and the offset of its first record that was aborted. From there on that
producer's transactional batches are left out, until its abort marker.
"""

from collections.abc import Sequence


class AbortedTransactions:
    """Follows the batches of one answer in the order of their offsets. One thread."""

    __slots__ = ("_active", "_coming")

    def __init__(self, aborted: Sequence[tuple[int, int]] = ()) -> None:
        """`aborted`: (producer id, first offset) of each."""
        self._coming = sorted(((offset, producer_id) for producer_id, offset in aborted), reverse=True)
        self._active: set[int] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing of what follows can be left out: batches need not be shown any more."""
        return not self._coming and not self._active

    def leaves_out(self, last_offset: int, producer_id: int, *, is_transactional: bool) -> bool:
        """Whether the batch is to be left out; it holds no marker."""
        while self._coming and self._coming[-1][0] <= last_offset:
            self._active.add(self._coming.pop()[1])
        return is_transactional and producer_id in self._active

    def abort_marker(self, last_offset: int, producer_id: int) -> None:
        """The producer's transaction ends here."""
        self.leaves_out(last_offset, producer_id, is_transactional=True)
        self._active.discard(producer_id)
