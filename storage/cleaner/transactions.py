"""Which transactions a pass over a log is in: whose data is thrown away, and whose marker is still needed.

A marker can go when none of its transaction's data is left; data of aborted transactions goes at once. Fed with a log's
transactional and control batches in order (KIP-98; KAFKA-4947 and what followed).
"""

from collections.abc import Iterable

from kavka.storage.log_answers import AbortedTransaction


class CleanedTransactions:
    """One pass over a log's batches. One thread.

    `still_aborted` collects the aborted transactions of which data is left, until they are taken.
    """

    __slots__ = ("_aborted", "_committed", "_open", "_waiting", "still_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda transaction: -transaction.first_offset)
        """Those that begin later, the next one last."""
        self._open: dict[int, AbortedTransaction] = {}
        """By producer: aborted transactions that the pass is in."""
        self._aborted: set[int] = set()
        """Producers of `_open` of which data was seen."""
        self._committed: set[int] = set()
        """Producers with data of a transaction that isn't aborted."""
        self.still_aborted: list[AbortedTransaction] = []

    def on_data(self, producer_id: int, last_offset: int) -> bool:
        """A transactional batch; whether it is of an aborted transaction."""
        self._begin_up_to(last_offset)
        if producer_id in self._open:
            self._aborted.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_marker(self, producer_id: int, last_offset: int, aborted: bool | None) -> bool:
        """A control batch; whether nothing is left that needs it.

        `aborted` is None where the batch is empty (it was cleaned before).
        """
        self._begin_up_to(last_offset)
        if aborted is None:
            return True
        if not aborted:
            unneeded = producer_id not in self._committed
            self._committed.discard(producer_id)
            return unneeded
        transaction = self._open.pop(producer_id, None)
        if transaction is None or producer_id not in self._aborted:
            return True
        self._aborted.discard(producer_id)
        self.still_aborted.append(transaction)
        return False

    def take_still_aborted(self) -> list[AbortedTransaction]:
        """What was collected since the last time: entries of the `.txnindex` with the markers."""
        taken, self.still_aborted = self.still_aborted, []
        return taken

    def _begin_up_to(self, offset: int) -> None:
        waiting = self._waiting
        while waiting and waiting[-1].first_offset <= offset:
            transaction = waiting.pop()
            self._open.setdefault(transaction.producer_id, transaction)
