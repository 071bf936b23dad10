"""What a leader knows of one follower, from its fetches."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

NEVER_MS: Final = -(1 << 62)
"""Before any time of a monotonic clock, which may have begun a moment ago."""


class FollowerProgress:
    """How far a follower has come (Kafka's Replica).

    `end_offset` and `log_start_offset` are -1 until it has fetched from this leader. All times are of the broker's
    monotonic clock. Threads: under the partition's lock; the offsets may be read by any thread.
    """

    __slots__ = (
        "_leader_end_offset",
        "_previous_fetch_ms",
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "log_start_offset",
    )

    def __init__(self) -> None:
        self.end_offset = -1
        self.log_start_offset = -1
        self.broker_epoch: int | None = None
        """That of the last fetch, -1 where its version has none; None before the first."""
        self.caught_up_ms = NEVER_MS
        """When it last had all that the leader had."""
        self._previous_fetch_ms = NEVER_MS
        self._leader_end_offset = -1

    def begin_epoch(self, now_ms: int, leader_end_offset: int, *, is_in_sync: bool, was_led: bool) -> None:
        """A leader epoch begins: who is in sync has the whole time that followers are given.

        Who is not must not hold the high watermark back before it has fetched. A leader that is elected again
        (`was_led`) still knows how far its followers are.
        """
        self.caught_up_ms = now_ms if is_in_sync else NEVER_MS
        if was_led:
            self._leader_end_offset = leader_end_offset
            self._previous_fetch_ms = self.caught_up_ms
        else:
            self.end_offset = self.log_start_offset = self._leader_end_offset = -1
            self._previous_fetch_ms = NEVER_MS
            self.broker_epoch = None

    def fetched(
        self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """It asks for what comes behind `fetch_offset`: it has all below. `leader_end_offset`: before the read.

        Who has by now what the leader had at the fetch before was caught up then: under a steady load nobody ever has
        all that there is now.
        """
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self._leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self._previous_fetch_ms)
        self.end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_offset = leader_end_offset
        self._previous_fetch_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Whether it has all, or had so at most `replica.lag.time.max.ms` ago."""
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms


def met(
    known: Mapping[int, FollowerProgress],
    replicas: Iterable[int],
    isr: Collection[int],
    leader_end_offset: int,
    now_ms: int,
    *,
    is_new: bool,
    was_led: bool,
) -> dict[int, FollowerProgress]:
    """The followers under an order to lead: those that are known go on, in a new epoch as `begin_epoch` says."""
    followers = {}
    for replica in replicas:
        follower = known.get(replica)
        is_known = follower is not None
        follower = follower or FollowerProgress()
        if is_new or not is_known:
            follower.begin_epoch(now_ms, leader_end_offset, is_in_sync=replica in isr, was_led=was_led and is_known)
        followers[replica] = follower
    return followers


def broker_epochs(followers: Mapping[int, FollowerProgress], replicas: Iterable[int]) -> tuple[int, ...]:
    """The broker epochs that the replicas' last fetches named, -1 for those that have not fetched."""
    seen = [followers[each].broker_epoch if each in followers else -1 for each in replicas]
    return tuple([-1 if epoch is None else epoch for epoch in seen])
