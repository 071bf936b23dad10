"""The broker's fetchers: one for each broker that is copied from and each of `num.replica.fetchers` (Kafka's
ReplicaFetcherManager)."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.replication.fetcher import Fetcher
from kavka.broker.replication.followed_partitions import Followed, Key
from kavka.coordinator.partitioning import java_hash

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.storage.partition_log import PartitionLog

log: Final = logging.getLogger(__name__)

SourceKey = tuple[int, int]
"""(the leader's broker id, the fetcher's number)"""


class Order(NamedTuple):
    """Follow this leader in this epoch."""

    partition: "Partition"
    log: "PartitionLog"
    leader_id: int
    leader_epoch: int


class FetcherManager:
    """Which fetcher follows which partition.

    `new_fetcher(source, number, on_failed)` makes one that has not begun. Threads: any; `_lock` guards all attributes
    but `_failed`, whose accesses are atomic; under it those of `FollowedPartitions` are taken, and a fetcher's step is
    waited for. Nothing here waits for a leader but `stop`.
    """

    def __init__(
        self, new_fetcher: Callable[[int, int, Callable[[Followed], None]], Fetcher], fetchers_per_source: int
    ) -> None:
        self._new_fetcher: Final = new_fetcher
        self._lock: Final = threading.Lock()
        self._per_source = max(fetchers_per_source, 1)
        self._fetchers: dict[SourceKey, Fetcher] = {}
        self._ending: list[Fetcher] = []
        self._failed: dict[Key, None] = {}
        self._is_stopped = False

    @property
    def failed(self) -> frozenset[Key]:
        """Partitions that cannot be followed before the controller's next order."""
        return frozenset(list(self._failed))

    @property
    def fetchers(self) -> list[Fetcher]:
        """As they are now."""
        with self._lock:
            return list(self._fetchers.values())

    @property
    def max_lag(self) -> int:
        """By how many records the partition that is behind most is behind."""
        return max((each.state.lag for fetcher in self.fetchers for each in fetcher.partitions.all()), default=0)

    def roles_changed(self, partitions: Iterable["Partition"]) -> None:
        """See `replica_manager.Followers`."""
        orders, others = [], []
        for partition in partitions:
            role, own = partition.role, partition.log
            if own is None or role.is_leader or role.leader_id < 0:
                others.append((partition.topic, partition.index))
            else:
                orders.append(Order(partition, own, role.leader_id, role.leader_epoch))
        self.follow(orders)
        self.unfollow(others)

    def follow(self, orders: Iterable[Order]) -> None:
        """Follow from now on; what was followed of another leader, or in another epoch, is not any more."""
        with self._lock:
            if self._is_stopped:
                return
            by_source: dict[SourceKey, list[Order]] = {}
            for order in orders:
                key = (order.partition.topic, order.partition.index)
                by_source.setdefault((order.leader_id, self._number_of(key)), []).append(order)
            moving = [(each.partition.topic, each.partition.index) for group in by_source.values() for each in group]
            wanted_at = {
                (each.partition.topic, each.partition.index): source
                for source, group in by_source.items()
                for each in group
            }
            for source, fetcher in self._fetchers.items():
                fetcher.partitions.unfollow([key for key in moving if wanted_at[key] != source])
            for source, group in by_source.items():
                partitions = self._fetcher(source).partitions
                with partitions.steps:
                    for order in group:
                        self._failed.pop((order.partition.topic, order.partition.index), None)
                        partitions.follow(order.partition, order.log, order.leader_epoch)
            self._end_idle()

    def unfollow(self, keys: Iterable[Key]) -> None:
        """Follow these no more: this broker leads them, hosts them no longer, or has lost their disk."""
        with self._lock:
            keys = list(keys)
            for fetcher in self._fetchers.values():
                fetcher.partitions.unfollow(keys)
            for key in keys:
                self._failed.pop(key, None)
            self._end_idle()

    def resize(self, fetchers_per_source: int) -> None:
        """`num.replica.fetchers` may be another one now: partitions move to the fetchers that are theirs.

        To be called every now and then: it is also the next try to begin for whom there was no thread.
        """
        with self._lock:
            if self._is_stopped:
                return
            for fetcher in self._fetchers.values():
                _begin(fetcher)
            if self._per_source == max(fetchers_per_source, 1):
                return
            self._per_source = max(fetchers_per_source, 1)
            for (leader_id, number), fetcher in list(self._fetchers.items()):
                keys = [each.key for each in fetcher.partitions.all() if self._number_of(each.key) != number]
                for followed in fetcher.partitions.unfollow(keys):
                    other = self._fetcher((leader_id, self._number_of(followed.key))).partitions
                    with other.steps:
                        other.follow(followed.partition, followed.log, followed.state.leader_epoch)
            self._end_idle()

    def stop(self) -> None:
        """End all fetchers, and wait for them."""
        with self._lock:
            self._is_stopped = True
            ending = [*self._fetchers.values(), *self._ending]
            self._fetchers.clear()
            self._ending.clear()
        for fetcher in ending:
            fetcher.begin_stop()
        for fetcher in ending:
            fetcher.join()

    def _number_of(self, key: Key) -> int:
        return fetcher_number(key, self._per_source)

    def _fetcher(self, source: SourceKey) -> Fetcher:
        fetcher = self._fetchers.get(source)
        if fetcher is None:
            fetcher = self._fetchers[source] = self._new_fetcher(*source, self._gave_up)
        _begin(fetcher)
        return fetcher

    def _end_idle(self) -> None:
        """A fetcher without partitions keeps a thread and a connection."""
        idle = [source for source, fetcher in self._fetchers.items() if not len(fetcher.partitions)]
        for source in idle:
            fetcher = self._fetchers.pop(source)
            fetcher.begin_stop()
            self._ending.append(fetcher)
        self._ending = [fetcher for fetcher in self._ending if fetcher.is_alive]

    def _gave_up(self, followed: Followed) -> None:
        """Called by fetchers, within a step: no lock may be waited for that is held by who waits for the step."""
        self._failed[followed.key] = None


def _begin(fetcher: Fetcher) -> None:
    if not fetcher.has_begun:
        try:
            fetcher.start()
        except RuntimeError as failure:
            # As where a limit of threads is reached. It has its partitions, and `resize` comes again.
            log.warning("no thread for a fetcher, which is tried again fetcher=%s error=%r", fetcher.name, str(failure))


def fetcher_number(key: Key, fetchers_per_source: int) -> int:
    """Which of a source's fetchers a partition belongs to: Kafka's choice, so that loads look the same."""
    topic, index = key
    mixed = (31 * java_hash(topic) + index) & 0xFFFFFFFF
    signed = mixed - (1 << 32) if mixed >= 1 << 31 else mixed
    return (0 if signed == -(1 << 31) else abs(signed)) % fetchers_per_source
