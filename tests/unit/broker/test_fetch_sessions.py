"""KIP-227: who gets a session, what it remembers, what an incremental answer shows, and whom it makes room for."""

from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from kavka.broker.partitions import fetch_sessions
from kavka.broker.partitions.fetch_sessions import (
    EVICTION_AGE_MS,
    Asked,
    Changes,
    FetchedPartition,
    FetchSession,
    FetchSessions,
    Key,
    epoch_after,
)
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import EpochEndOffset, FetchPartition, FetchRequest, PartitionData
from kavka.protocol.schema import ZERO_UUID
from tests.support.interleaving import Interleaving, TurnLock

NO_CHANGES = Changes()
LAST_EPOCH = 2**31 - 1


class Clock:
    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


class Sessions:
    """A cache for two sessions, with a clock."""

    def __init__(self, size: int = 2, max_partitions: int = 1000) -> None:
        self.clock = Clock()
        self.cache = FetchSessions(size, self.clock, max_partitions)

    def open(self, size: int = 1, *, follower: bool = False) -> FetchSession | None:
        partitions = [(key(number), asked(number)) for number in range(size)]
        return self.cache.open(partitions, from_follower=follower, uses_topic_ids=False)

    def resume(
        self, session_id: int, epoch: int, changes: Changes = NO_CHANGES, *, topic_ids: bool = False
    ) -> FetchSession | None:
        return self.ask(session_id, epoch, changes, topic_ids=topic_ids)[0]

    def ask(
        self, session_id: int, epoch: int, changes: Changes, *, topic_ids: bool = False
    ) -> tuple[FetchSession | None, Asked]:
        request = FetchRequest(
            session_id=session_id,
            session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1,
            isolation_level=0,
            topics=[],
            forgotten_topics_data=[],
        )
        return self.cache.resume(request, topic_ids, changes)


def key(index: int, topic: str = "visits", topic_id: bytes = ZERO_UUID) -> Key:
    return topic, topic_id, index


def asked(index: int, offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1)


def answer(**fields: Any) -> PartitionData:
    values = {"error_code": 0, "high_watermark": 5, "log_start_offset": 0, **fields}
    return PartitionData(partition_index=0, aborted_transactions=None, records=b"", **values)


def opened(sessions: Sessions, size: int = 1, *, follower: bool = False) -> FetchSession:
    session = sessions.open(size, follower=follower)
    assert session is not None
    return session


def test_a_session_goes_on_epoch_by_epoch() -> None:
    sessions = Sessions()
    session = opened(sessions)

    for epoch in range(1, 5):
        assert sessions.resume(session.id, epoch) is session


def test_the_epoch_after_the_last_is_one() -> None:
    sessions = Sessions()
    session = opened(sessions)
    session.epoch = LAST_EPOCH

    assert sessions.resume(session.id, LAST_EPOCH) is session
    assert sessions.resume(session.id, 1) is session


@pytest.mark.parametrize(
    ("epoch", "topic_ids", "error"),
    [
        (2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (2, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_request_that_does_not_fit_its_session_is_refused_and_changes_nothing(
    epoch: int, topic_ids: bool, error: ErrorCode
) -> None:
    sessions = Sessions()
    session = opened(sessions)

    with pytest.raises(BrokerError) as refused:
        sessions.resume(session.id, epoch, topic_ids=topic_ids)

    assert refused.value.code is error
    assert sessions.resume(session.id, 1) is session


def test_an_unknown_session_is_refused() -> None:
    with pytest.raises(BrokerError) as refused:
        Sessions().resume(77, 1)

    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_session_it_names(epoch: int) -> None:
    sessions = Sessions()
    session = opened(sessions)

    assert sessions.resume(session.id, epoch) is None

    assert sessions.cache.size == 0


def test_updates_add_replace_and_forget() -> None:
    sessions = Sessions()
    session = opened(sessions, 3)

    sessions.resume(session.id, 1, Changes([(key(1), asked(1, 50)), (key(9), asked(9))], [key(0), key(77)]))

    assert list(session.partitions) == [key(1), key(2), key(9)]
    assert session.partitions[key(1)].asked.fetch_offset == 50


def test_a_partition_that_was_served_comes_last() -> None:
    session = opened(Sessions(), 3)

    session.news([(key(0), answer(), 1), (key(1), answer(), 0), (key(7), answer(), 1)], session.epoch)

    assert list(session.partitions) == [key(1), key(2), key(0)]


def test_an_answer_in_an_epoch_that_is_over_is_refused() -> None:
    sessions = Sessions()
    session = opened(sessions)
    for epoch in range(1, 3):
        sessions.resume(session.id, epoch)

    with pytest.raises(BrokerError) as refused:
        session.news([(key(0), answer(), 1)], epoch_after(1))

    assert refused.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert session.news([(key(0), answer(), 1)], epoch_after(2)) == [(key(0), answer())]


def test_a_topic_that_was_unknown_gets_its_name_when_it_is_known() -> None:
    sessions = Sessions()
    topic_id = b"\7" * 16
    session = sessions.cache.open([(key(4, "", topic_id), asked(4))], from_follower=False, uses_topic_ids=True)
    assert session is not None

    unknown, known = (
        sessions.ask(session.id, epoch, Changes(names=names), topic_ids=True)[1]
        for epoch, names in [(1, {}), (2, {topic_id: "late"})]
    )

    assert [each for each, _ in unknown] == [key(4, "", topic_id)]
    assert [each for each, _ in known] == [key(4, "late", topic_id)]


def test_a_topic_keeps_the_name_that_it_had_and_is_forgotten_by_its_id() -> None:
    sessions = Sessions()
    ids = [bytes([number]) * 16 for number in (1, 2)]
    session = sessions.cache.open(
        [(key(0, topic, topic_id), asked(0)) for topic, topic_id in zip(("gone", "kept"), ids, strict=True)],
        from_follower=False,
        uses_topic_ids=True,
    )
    assert session is not None

    again = Changes([(key(0, "", ids[0]), asked(0, 7))], names={})
    assert sessions.ask(session.id, 1, again, topic_ids=True)[1] == [
        (key(0, "gone", ids[0]), asked(0, 7)),
        (key(0, "kept", ids[1]), asked(0)),
    ]
    left = sessions.ask(session.id, 2, Changes(forgotten=[key(0, "", ids[0])], names={}), topic_ids=True)[1]
    assert [each for each, _ in left] == [key(0, "kept", ids[1])]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({}, False),
        ({"high_watermark": 6}, True),
        ({"log_start_offset": 1}, True),
        ({"error_code": 6}, True),
        ({"diverging_epoch": EpochEndOffset(epoch=0, end_offset=1)}, True),
    ],
)
def test_an_incremental_answer_shows_what_changed(change: dict[str, Any], shown: bool) -> None:
    partition = FetchedPartition(key(0), asked(0))
    assert partition.must_show(answer(), False)

    assert partition.must_show(answer(**change), False) is shown


def test_records_are_always_shown_and_an_error_is_shown_to_be_over() -> None:
    partition = FetchedPartition(key(0), asked(0))
    partition.must_show(answer(), False)
    assert partition.must_show(answer(), True)
    partition.must_show(answer(error_code=6), False)

    assert partition.must_show(answer(), False)
    assert not partition.must_show(answer(), False)


def test_a_full_cache_makes_room_for_the_larger_when_the_smaller_is_old() -> None:
    sessions = Sessions()
    small, large = opened(sessions, 2), opened(sessions, 5)
    assert sessions.open(9) is None
    sessions.clock.ms = EVICTION_AGE_MS + 1
    for session in (small, large):
        sessions.resume(session.id, 1)

    assert sessions.open(2) is None
    assert sessions.open(3) is not None

    with pytest.raises(BrokerError):
        sessions.resume(small.id, 2)
    assert sessions.resume(large.id, 2) is large


def test_a_session_that_nobody_used_for_long_goes_first() -> None:
    sessions = Sessions()
    idle, used = opened(sessions, 100), opened(sessions, 1)
    sessions.clock.ms = EVICTION_AGE_MS + 1
    sessions.resume(used.id, 1)

    assert sessions.open(1) is not None

    with pytest.raises(BrokerError):
        sessions.resume(idle.id, 1)


def test_sessions_hold_so_many_partitions_together() -> None:
    sessions = Sessions(5, max_partitions=10)
    first = opened(sessions, 4)

    assert sessions.open(7) is None
    second = opened(sessions, 6)
    assert sessions.open(1) is None

    assert sessions.resume(first.id, 1) is first
    assert sessions.resume(second.id, 1) is second


def test_partitions_find_the_room_of_sessions_that_nobody_used_for_long() -> None:
    sessions = Sessions(5, max_partitions=10)
    stale = opened(sessions, 6)
    sessions.clock.ms = EVICTION_AGE_MS
    used = opened(sessions, 4)
    sessions.clock.ms += 1

    assert sessions.open(7) is None
    opened(sessions, 6)

    assert sessions.cache.partition_count == 10
    assert sessions.resume(used.id, 1) is used
    with pytest.raises(BrokerError) as caught:
        sessions.resume(stale.id, 1)
    assert caught.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_grows_beyond_the_room_there_is_ends() -> None:
    sessions = Sessions(5, max_partitions=10)
    growing, other = opened(sessions, 4), opened(sessions, 4)
    assert sessions.resume(growing.id, 1, Changes([(key(7), asked(7)), (key(8), asked(8))])) is growing

    with pytest.raises(BrokerError) as caught:
        sessions.resume(growing.id, 2, Changes([(key(9), asked(9))]))

    assert caught.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.cache.partition_count == 4
    assert sessions.resume(other.id, 1, Changes([(key(0), asked(0, offset=1))])) is other


def test_followers_get_the_room_of_consumers_but_not_of_one_another() -> None:
    sessions = Sessions(9, max_partitions=10)
    consumers = [opened(sessions, 4), opened(sessions, 6)]

    follower = opened(sessions, 5, follower=True)

    with pytest.raises(BrokerError):
        sessions.resume(consumers[0].id, 1)
    assert sessions.cache.partition_count <= 10
    grown = Changes([(key(number), asked(number)) for number in range(5, 10)])
    assert sessions.resume(follower.id, 1, grown) is follower
    assert sessions.open(1, follower=True) is None
    assert sessions.open(1) is None
    assert sessions.resume(follower.id, 2) is follower


def test_followers_displace_consumers_but_never_the_other_way_round() -> None:
    sessions = Sessions()
    consumer, follower = opened(sessions, 50), opened(sessions, 1, follower=True)

    assert sessions.open(1, follower=True) is not None
    with pytest.raises(BrokerError):
        sessions.resume(consumer.id, 1)
    assert sessions.open(100) is None
    sessions.clock.ms = EVICTION_AGE_MS + 1
    sessions.resume(follower.id, 1)
    third = next(iter(sessions.cache._sessions.values()))
    third.last_used_ms = sessions.clock.ms
    assert sessions.open(100) is None


def test_a_cache_without_slots_gives_none() -> None:
    assert Sessions(0).open() is None


def test_sizes_are_told() -> None:
    sessions = Sessions()
    opened(sessions, 2)
    session = opened(sessions, 3)
    assert (sessions.cache.size, sessions.cache.partition_count) == (2, 5)

    for _ in range(2):
        sessions.resume(session.id, -1)

    assert (sessions.cache.size, sessions.cache.partition_count) == (1, 2)


def test_a_session_without_partitions_is_over() -> None:
    sessions = Sessions()
    session = opened(sessions)

    assert sessions.ask(session.id, 1, Changes(forgotten=[key(0)])) == (None, [])

    assert sessions.cache.size == 0
    with pytest.raises(BrokerError) as late:
        session.go_on(2, False, Changes([(key(0), asked(0))]))
    assert late.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not session.partitions


@pytest.mark.parametrize("seed", range(60))
def test_a_request_that_is_overtaken_by_the_next_one_does_not_undo_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has lost a connection may ask on by another one, before the first request was looked at."""
    turns = Interleaving(seed, [fetch_sessions], chance=0.3)
    monkeypatch.setattr(fetch_sessions, "Lock", partial(TurnLock, turns))
    sessions = Sessions()
    session = opened(sessions, 2)
    asks: dict[int, Asked] = {}

    def ask(epoch: int, changes: Changes) -> None:
        # The later one comes as often as it takes until the earlier one has begun.
        while epoch not in asks:
            with suppress(BrokerError):
                asks[epoch] = sessions.ask(session.id, epoch, changes)[1]
            turns.pass_on()

    turns.run(
        partial(ask, 1, Changes([(key(0), asked(0, 10)), (key(2), asked(2, 10))])),
        partial(ask, 2, Changes([(key(0), asked(0, 20)), (key(1), asked(1, 20))], [key(2)])),
    )

    assert [(each[2], partition.fetch_offset) for each, partition in asks[1]] == [(0, 10), (1, 0), (2, 10)]
    assert [(each[2], partition.fetch_offset) for each, partition in asks[2]] == [(0, 20), (1, 20)]
    assert [(each, known.asked) for each, known in session.partitions.items()] == asks[2]
    assert session.epoch == 3
