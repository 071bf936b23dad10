"""Followers' sessions that are ended, or take one another's place, leave nobody behind who watches a partition."""

from functools import partial
from types import SimpleNamespace

import pytest

from kavka.broker.partitions import session_news
from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession
from kavka.broker.partitions.partition import Partition
from kavka.protocol.messages.fetch import FetchPartition
from tests.support.broker_handlers import topic_id_of
from tests.support.interleaving import Interleaving, TurnLock

TOPIC, ME, FOLLOWER = "visits", 1, 2


def _key(index: int) -> tuple[str, bytes, int]:
    return TOPIC, topic_id_of(TOPIC), index


def _partitions(count: int) -> list[Partition]:
    return [Partition(ME, TOPIC, index, topic_id_of(TOPIC)) for index in range(count)]


def _session(number: int, size: int) -> FollowerFetchSession:
    asked = [
        (_key(index), FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)) for index in range(size)
    ]
    return FollowerFetchSession(number, asked, from_follower=True, uses_topic_ids=True, now_ms=0, replica_id=FOLLOWER)


def _watchers(*partitions: Partition) -> list[int]:
    return [len(partition.sessions) for partition in partitions]


def test_a_session_that_was_ended_while_its_fetch_waited_watches_nothing_any_more() -> None:
    session, partitions = _session(1, 2), _partitions(2)
    session.watch(_key(0), partitions[0])
    assert _watchers(*partitions) == [1, 0]

    session.end()
    # As the fetch does when its time is up.
    for index in range(2):
        session.watch(_key(index), partitions[index])

    assert _watchers(*partitions) == [0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_two_sessions_of_a_follower_leave_nothing_behind_whoever_comes_first(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = Interleaving(seed, [session_news], chance=0.3)
    monkeypatch.setattr(session_news, "threading", SimpleNamespace(Lock=partial(TurnLock, turns)), raising=False)
    sessions = [_session(number, 1) for number in (1, 2)]
    # The same partition, as it is and as it is made anew.
    first, second = [*_partitions(1), *_partitions(1)]

    def watch(session: FollowerFetchSession, *partitions: Partition) -> None:
        for partition in partitions:
            session.watch(_key(0), partition)

    turns.run(partial(watch, sessions[0], second, first, second), partial(watch, sessions[1], first, second, first))
    for session in sessions:
        session.end()

    assert _watchers(first, second) == [0, 0]
