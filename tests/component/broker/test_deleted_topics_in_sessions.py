"""Fetch sessions whose topics are deleted: clients are told, and forget them by their ids, whatever is gone by then."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.partitions import follower_fetch_session
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import topic_id_of

ME, FOLLOWER, CONSUMER, VERSION = 1, 2, -1, 17
GONE, KEPT = "gone", "kept"


class Client:
    """Fetches the first partition of both topics in a session, as `replica_id`."""

    def __init__(self, core: BrokerCore, replica_id: int) -> None:
        self.core = core
        self.session_id = self.epoch = self._asked = 0
        self._replica_id = replica_id

    def send(self, *topics: str, forget: tuple[str, ...] = (), max_wait_ms: int = 0) -> FetchResponse | None:
        """None while the broker waits for data."""
        self._asked += 1
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            replica_state=ReplicaState(replica_id=self._replica_id, replica_epoch=1),
            topics=[
                FetchTopic(
                    topic_id=topic_id_of(topic),
                    partitions=[
                        FetchPartition(partition=0, current_leader_epoch=0, fetch_offset=0, partition_max_bytes=1 << 20)
                    ],
                )
                for topic in topics
            ],
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id_of(topic), partitions=[0]) for topic in forget],
        )
        taken = self.core.ask(encode_request_header(1, VERSION, self._asked, "client") + encode(request, VERSION))
        if not taken:
            return None
        answer: FetchResponse = decode(FetchResponse, VERSION, memoryview(taken)[9:])
        assert answer.error_code == 0
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return answer

    @property
    def session_size(self) -> int:
        return self.core.services.fetch_sessions.partition_count


def errors(answer: FetchResponse | None) -> dict[bytes, int]:
    assert answer is not None
    return {each.topic_id: part.error_code for each in answer.responses for part in each.partitions if part.error_code}


@pytest.fixture(autouse=True)
def _undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_fetch_session, "REFRESH_MS", 1 << 40)


@pytest.fixture(params=[CONSUMER, FOLLOWER], ids=["consumer", "follower"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    core = BrokerCore(tmp_path)
    core.replicas.replication.lag_time_max_ms = 1 << 42
    for topic in (GONE, KEPT):
        core.create(topic, isr=(ME, FOLLOWER))
    client = Client(core, request.param)
    client.send(GONE, KEPT)
    for _ in range(2):
        assert errors(client.send()) == {}
    assert client.session_size == 2
    yield client
    core.close()


@pytest.mark.parametrize("in_metadata", [False, True], ids=["logs first", "metadata first"])
def test_a_deleted_topic_is_forgotten_by_its_id(client: Client, in_metadata: bool) -> None:
    client.core.delete_logs(GONE)
    if in_metadata:
        client.core.forget(GONE)
    assert set(errors(client.send())) == {topic_id_of(GONE)}

    client.send(forget=(GONE,))

    assert client.session_size == 1
    assert client.send(max_wait_ms=60_000) is None


def test_a_topic_of_the_session_that_is_deleted_is_an_unknown_partition(client: Client) -> None:
    client.core.delete_logs(GONE)
    client.core.forget(GONE)

    # As by Kafka: the session has its name, a fetch without session has not.
    assert errors(client.send()) == {topic_id_of(GONE): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert errors(client.send(GONE)) == {topic_id_of(GONE): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    client.session_id = client.epoch = 0
    assert errors(client.send(GONE, KEPT)) == {topic_id_of(GONE): ErrorCode.UNKNOWN_TOPIC_ID}
    client.send(forget=(GONE,))
    assert client.send(max_wait_ms=60_000) is None
