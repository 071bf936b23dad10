"""Records of a poll that are given out one by one: what was not given out yet does not count as read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import length_hint
from typing import Final

from kavka.client.consumer.positions import Position
from kavka.client.consumer.records import ConsumerRecord
from kavka.client.consumer.subscription import Subscription
from kavka.client.topic_partition import TopicPartition


class Iteration:
    """One poll's records. No work for each of them: C's iterator knows how many are left.

    Threads: the polling one's; `give_back` is for whichever thread frees the loop's generator, too.
    """

    def __init__(self, records: Sequence[ConsumerRecord], subscription: Subscription) -> None:
        self._records: Final = records
        self._subscription: Final = subscription
        with subscription.lock:
            self._behind: Final[dict[TopicPartition, Position]] = {
                state.partition: state.position for state in subscription.states()
            }
        self.rest: Final[Iterator[ConsumerRecord]] = iter(records)

    def left(self) -> dict[TopicPartition, ConsumerRecord]:
        """The first record of each partition that was not given out, unless it is read elsewhere since."""
        count = length_hint(self.rest)
        found: dict[TopicPartition, ConsumerRecord] = {}
        if not count:
            return found
        for record in self._records[len(self._records) - count :]:
            found.setdefault(record.topic_partition, record)
        with self._subscription.lock:
            # One that is looked up for a seek, or as the topic is another one, takes the place of what was left.
            now = {state.partition: state.position for state in self._subscription.states() if state.has_position}
        return {
            partition: record
            for partition, record in found.items()
            if partition in now and now[partition] is self._behind.get(partition)
        }

    def give_back(self) -> None:
        """The loop is over: what is left is to be read again."""
        with self._subscription.lock:
            for partition, record in self.left().items():
                self._subscription.go_back(partition, Position(record.offset, record.leader_epoch))
