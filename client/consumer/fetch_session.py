"""Fetch sessions (KIP-227): a broker remembers what a consumer reads, so that requests say what has changed alone.

no session --full request, epoch 0--> answered with an id --> incremental requests, epoch 1, 2, ...
any error of the session, or a lost answer: no session
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from kavka.protocol.schema import ZERO_UUID, Uuid

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
"""Sessionless, or the end of the session that is named with it."""
_LAST_EPOCH: Final = 2**31 - 1

SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Wanted(NamedTuple):
    """What is asked for of a partition. What is as it was goes without saying in a session."""

    topic_id: Uuid
    offset: int
    max_bytes: int
    leader_epoch: int
    """As the metadata have it; -1: unknown."""
    last_epoch: int
    """Of the last record that was read; -1: unknown."""


class SessionRequest(NamedTuple):
    """A request's part that has to do with its session."""

    session_id: int
    epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]
    uses_ids: bool
    """Whether each topic has an id: without, newer versions than 12 cannot be used."""


class FetchSession:
    """One broker's. Threads: the client's thread alone."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = INITIAL_EPOCH
        self._uses_ids = False
        self._there: dict[TopicPartition, Wanted] = {}
        """What the broker knows once the request that is out has arrived."""

    @property
    def names(self) -> dict[Uuid, str]:
        """The topics of the session by their ids: answers have these alone."""
        return {wanted.topic_id: partition.topic for partition, wanted in self._there.items()}

    def request(self, wanted: Mapping[TopicPartition, Wanted]) -> SessionRequest:
        """What to send so that the broker answers for these; called once for each request that is sent."""
        uses_ids = all(each.topic_id != ZERO_UUID for each in wanted.values())
        if self._epoch != INITIAL_EPOCH and uses_ids != self._uses_ids:
            # A session has ids or names: begin a new one, the broker forgets the former in time.
            self._id, self._epoch = 0, INITIAL_EPOCH
        self._uses_ids = uses_ids
        if self._epoch == INITIAL_EPOCH:
            self._there = dict(wanted)
            return SessionRequest(self._id, INITIAL_EPOCH, _topics(wanted), [], uses_ids)
        there = self._there
        # A topic that was made anew under its name has to go, and come again.
        gone = {
            partition: former
            for partition, former in there.items()
            if partition not in wanted or wanted[partition].topic_id != former.topic_id
        }
        changed = {partition: each for partition, each in wanted.items() if there.get(partition) != each}
        self._there = dict(wanted)
        return SessionRequest(self._id, self._epoch, _topics(changed), _forgotten(gone), uses_ids)

    def answered(self, error_code: int, session_id: int) -> None:
        """The answer to the last request."""
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND or session_id == 0:
            self._id, self._epoch = 0, INITIAL_EPOCH
        elif error_code:
            # The broker closes the session that is named with the first epoch.
            self._epoch = INITIAL_EPOCH
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch >= _LAST_EPOCH else self._epoch + 1

    def lost(self) -> None:
        """There was no answer: what the broker knows is not known."""
        self._epoch = INITIAL_EPOCH

    def closing(self) -> SessionRequest | None:
        """What ends the session at the broker; None when there is none."""
        if self._id == 0:
            return None
        return SessionRequest(self._id, FINAL_EPOCH, [], [], self._uses_ids)


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    found: dict[str, FetchTopic] = {}
    for (name, number), each in wanted.items():
        topic = found.get(name)
        if topic is None:
            topic = found[name] = FetchTopic(topic=name, topic_id=each.topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=number,
                current_leader_epoch=each.leader_epoch,
                fetch_offset=each.offset,
                last_fetched_epoch=each.last_epoch,
                partition_max_bytes=each.max_bytes,
            )
        )
    return list(found.values())


def _forgotten(gone: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    found: dict[str, ForgottenTopic] = {}
    for (name, number), each in gone.items():
        if name not in found:
            found[name] = ForgottenTopic(topic=name, topic_id=each.topic_id, partitions=[])
        found[name].partitions.append(number)
    return list(found.values())
