"""Followers' sessions and their short way, in the hands of others than followers: nobody else is harmed by that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.network.connection import Connection
from kavka.broker.partitions.follower_fetch_session import FollowerFetchSession
from kavka.broker.requests.prepared_fetch import PreparedFetches
from kavka.broker.waiting.awaited_fetch import AwaitedFetch
from kavka.broker.waiting.delayed_follower_fetch import DelayedFollowerFetch
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from tests.support.broker_core import NOW_MS, BrokerCore, produce_frame
from tests.support.broker_handlers import topic_id_of
from tests.support.partition_logs import batch_of

TOPIC, ME, FOLLOWER, VERSION = "visits", 1, 2, 17
LONG_MS = 50_000


class Asker:
    """Fetches of partition 0 with one session, as whichever replica."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.session_id = self.epoch = self.asked = 0

    def frame(self, offset: int = 0, *, replica: int = FOLLOWER, wait_ms: int = 0, min_bytes: int = 1) -> bytes:
        self.asked += 1
        partition = FetchPartition(
            partition=0, current_leader_epoch=0, fetch_offset=offset, last_fetched_epoch=-1, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch,
            replica_state=ReplicaState(replica_id=replica, replica_epoch=7 if replica >= 0 else -1),
            topics=[FetchTopic(topic_id=topic_id_of(TOPIC), partitions=[partition])],
            forgotten_topics_data=[],
        )
        self.epoch += 1
        return encode_request_header(1, VERSION, self.asked, "f") + encode(request, VERSION)

    def fetch(self, offset: int = 0, **options: Any) -> FetchResponse:
        taken = self.core.ask(self.frame(offset, **options))
        _, place = decode_response_header(1, VERSION, taken[4:])
        answer = decode(FetchResponse, VERSION, memoryview(taken)[4 + place :])
        self.session_id = answer.session_id or self.session_id
        return answer

    def prepare(self) -> PreparedFetches:
        """Have the connection know the fetch; there is one record to read."""
        append(self.core)
        for _ in range(3):
            self.fetch(wait_ms=LONG_MS)
        prepared = self.core.connection.session.prepared[1]
        assert isinstance(prepared, PreparedFetches)
        return prepared


def append(core: BrokerCore) -> None:
    partition = core.replicas.partitions[TOPIC, 0]
    partition.append(memoryview(batch_of(b"value")), 1, 9, NOW_MS)
    partition.appended()


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    made = BrokerCore(tmp_path, inline=True)
    made.replicas.replication.lag_time_max_ms = 1 << 42
    made.create(TOPIC, 1, isr=(ME, FOLLOWER))
    made.create("other", 1)
    yield made
    made.close()


@pytest.mark.parametrize("replica", [-1, 3])
def test_nobody_else_goes_on_with_a_followers_session(core: BrokerCore, replica: int) -> None:
    append(core)
    asker = Asker(core)
    assert asker.fetch().error_code == ErrorCode.NONE
    for offset in (1, 1):
        assert asker.fetch(offset, replica=replica).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        asker.epoch -= 1

    assert 1 not in core.connection.session.prepared
    partition = core.replicas.partitions[TOPIC, 0]
    assert (partition.followers[FOLLOWER].end_offset, partition.high_watermark) == (0, 0)
    assert asker.fetch(1).error_code == ErrorCode.NONE, "the follower itself does"


def test_a_fetch_that_need_not_wait_never_does(core: BrokerCore) -> None:
    asker = Asker(core)
    for _ in range(6):
        assert asker.fetch(wait_ms=LONG_MS, min_bytes=0).error_code == ErrorCode.NONE


def test_a_session_that_has_ended_is_kept_by_nobody(core: BrokerCore) -> None:
    asker = Asker(core)
    prepared = asker.prepare()
    session = prepared._session
    assert session is not None
    other = Asker(core)
    other.session_id = asker.session_id
    other.fetch()

    assert not session.partitions
    assert not session.fresh_news.fresh
    assert asker.fetch(wait_ms=LONG_MS).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert prepared._session is None


def test_a_request_behind_a_fetch_runs_once_when_data_come_just_as_it_begins_to_wait(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = Asker(core)
    asker.prepare()
    keep_apart = Connection.keep_pending_apart

    def data_come(connection: Connection) -> None:
        append(core)
        core.stage.settle()
        keep_apart(connection)

    monkeypatch.setattr(Connection, "keep_pending_apart", data_come)
    before = len(core.socket.taken)
    behind = produce_frame(9, 77, {("other", 0): bytes(batch_of(b"value"))}, acks=1)
    core.ask(asker.frame(1, wait_ms=LONG_MS), behind)
    core.stage.settle()

    assert core.log("other").log_end_offset == 1
    taken, ids = bytes(core.socket.taken[before:]), []
    while taken:
        ids.append(int.from_bytes(taken[4:8], "big"))
        taken = taken[4 + int.from_bytes(taken[:4], "big") :]
    assert ids == [asker.asked, 77]


def test_a_fetch_whose_wait_ends_as_it_begins_is_not_kept_by_its_connection(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = FollowerFetchSession.wait

    def data_come(*arguments: Any) -> DelayedFollowerFetch:
        operation = wait(*arguments)
        append(core)
        return operation

    asker = Asker(core)
    assert asker.fetch().error_code == ErrorCode.NONE
    monkeypatch.setattr(FollowerFetchSession, "wait", data_come)
    for offset in range(3):
        answer = asker.fetch(offset, wait_ms=LONG_MS, min_bytes=2)
        assert answer.responses[0].partitions[0].records

    assert not core.connection.parked


@pytest.mark.parametrize("inline", [True, False])
def test_what_fails_costs_its_connection_and_no_thread(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, inline: bool
) -> None:
    asker = Asker(core)
    asker.prepare()

    def fails(fetch: AwaitedFetch) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(AwaitedFetch, "_look", fails)
    frames = [asker.frame(wait_ms=LONG_MS)]
    if not inline:
        frames.insert(0, encode_request_header(32, 4, 99, "c") + encode(DescribeConfigsRequest(resources=[]), 4))
    core.ask(*frames)
    core.stage.settle()

    assert core.connection.closed
    assert core.stage.deaths == []
    assert "could not be completed" in caplog.text


def test_an_append_that_commits_others_tells_them_by_the_short_way_too(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path, inline=True, topics={TOPIC: {"min.insync.replicas": "2"}})
    core.replicas.replication.lag_time_max_ms = 1 << 42
    core.create(TOPIC, 1, isr=(ME, FOLLOWER))

    def produce(number: int) -> bytes:
        return core.ask(produce_frame(9, number, {(TOPIC, 0): bytes(batch_of(b"value"))}, acks=-1))

    produce(0)
    core.replicate(TOPIC, FOLLOWER, 1)
    core.stage.settle()
    assert produce(1) == b""
    core.shrink_isr(TOPIC, (ME,))
    partition = core.replicas.partitions[TOPIC, 0]
    assert partition.awaiting is not None
    assert len(partition.awaiting.entries) == 1, "held back by min.insync.replicas"

    object.__setattr__(core.log(TOPIC).config, "min_insync_replicas", 1)
    partition.followers[FOLLOWER].caught_up_ms = -(1 << 62)
    core.replicas.replication.lag_time_max_ms = 1
    before = len(core.socket.taken)
    core.ask(produce_frame(9, 2, {(TOPIC, 0): bytes(batch_of(b"value"))}, acks=-1))

    assert not partition.awaiting.entries
    assert len(core.socket.taken) > before
    core.close()
