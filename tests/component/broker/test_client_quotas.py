"""Quotas at a running broker: who uses too much is told so at once, and heard again when its time is over."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.quotas import altering, describing
from kavka.broker.quotas.connections import address_of
from kavka.cluster.entity_configs import read_named_configs
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from kavka.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.produce import ProduceRequest
from tests.support.processes import wait_until
from tests.support.quota_client import QuotaClient
from tests.support.running_broker import HOST, RunningBroker
from tests.support.standing_clock import StandingClock
from tests.support.wire import batch_of, produce_request

VALUE = b"v" * 10_000
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def clock() -> StandingClock:
    """The broker's. It stands still where several requests have to come within a second, or what a pause ends."""
    return StandingClock()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, clock: StandingClock) -> Iterator[RunningBroker]:
    # Windows of two samples, so that what was used is forgotten soon.
    settings = {"quota.window.num": "2", "controller.quota.window.num": "2"}
    with RunningBroker(tmp_path_factory.mktemp("quotas"), settings, clock=clock.clock) as running:
        yield running


@pytest.fixture
def client(running: RunningBroker, request: pytest.FixtureRequest) -> Iterator[QuotaClient]:
    """One whose client id and topic are the test's."""
    name = request.node.name.replace("[", "-").replace("]", "")[:80]
    with QuotaClient(HOST, running.port, client_id=name) as client:
        client.create_topic(name)
        yield client
    # Its own connection may have to pause for hours.
    with QuotaClient(HOST, running.port, client_id=name) as other:
        rates: Any = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate", "request_percentage"))
        other.limit(**rates, controller_mutation_rate=None)


def produce(topic: str | None, values: int = 1, acks: int = 1) -> ProduceRequest:
    return produce_request(str(topic), batch_of([VALUE] * values, timestamp_ms=NOW_MS), acks=acks)


def fetch(topic: str | None, offset: int = 0) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=str(topic), partitions=[asked])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, forgotten_topics_data=[], session_epoch=-1)


@pytest.mark.parametrize("version", [4, 8, 9, 12])
def test_a_producer_is_answered_at_once_and_heard_when_its_time_is_over(
    client: QuotaClient, clock: StandingClock, version: int
) -> None:
    client.limit(producer_byte_rate=21_000)

    def sent(times: int) -> list[int]:
        return [client.ask(produce(client.client_id), version).throttle_time_ms for _ in range(times)]

    began_s = time.monotonic()
    with clock.standing():
        waits_ms = sent(3)
    waits_ms += sent(9)
    took_s = time.monotonic() - began_s

    assert waits_ms[:2] == [0, 0]
    assert waits_ms[2] > 0
    assert took_s > 3
    # The last one's pause is still to come.
    assert took_s >= sum(waits_ms[:-1]) / 1000
    assert client.offset(str(client.client_id), -1) == 12


def test_records_are_acknowledged_also_where_the_short_way_of_charged_requests_cannot_be_imported(
    client: QuotaClient, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where no descriptor is left to read it from.
    monkeypatch.setitem(sys.modules, "kavka.broker.requests.charged_produce", None)
    client.limit(producer_byte_rate=21_000)
    with clock.standing():
        answers = [client.ask(produce(client.client_id), 9) for _ in range(3)]
    assert [each.responses[0].partition_responses[0].error_code for each in answers] == [0, 0, 0]
    assert [each.throttle_time_ms > 0 for each in answers] == [False, False, True]


def test_what_was_sent_ahead_waits_with_the_connection(client: QuotaClient) -> None:
    topic = str(client.client_id)
    # So that the first one's pause is longer than anybody may have to wait for a processor.
    client.limit(producer_byte_rate=1)
    with QuotaClient(HOST, client.address[1], client_id="other") as other:
        for _ in range(12):
            client.send(produce(topic), 9)
        assert client.receive(0, 9).throttle_time_ms > 3_600_000
        assert other.offset(topic, -1) == 1


def test_what_was_sent_ahead_is_done_when_its_time_has_come(client: QuotaClient) -> None:
    topic = str(client.client_id)
    client.limit(producer_byte_rate=21_000)
    began_s = time.monotonic()
    for _ in range(12):
        client.send(produce(topic), 9)
    for _ in range(12):
        client.receive(0, 9)

    assert time.monotonic() - began_s > 3
    assert client.offset(topic, -1) == 12


def test_who_wants_no_answer_waits_as_well(client: QuotaClient) -> None:
    topic = str(client.client_id)
    client.limit(producer_byte_rate=50_000)
    began_s = time.monotonic()
    for _ in range(20):
        client.send(produce(topic, acks=0), 9)
    client.ask(MetadataRequest(topics=[]), 9)

    assert time.monotonic() - began_s > 2
    assert client.offset(topic, -1) == 20


def test_a_new_quota_counts_for_what_was_learnt_before_it(client: QuotaClient) -> None:
    for _ in range(5):
        assert client.ask(produce(client.client_id, 9), 9).throttle_time_ms == 0
    client.limit(producer_byte_rate=10)

    assert client.ask(produce(client.client_id), 9).throttle_time_ms > 0


def test_a_quota_that_is_lifted_counts_no_more(client: QuotaClient, clock: StandingClock) -> None:
    client.limit(producer_byte_rate=11_000)
    with clock.standing():
        assert client.ask(produce(client.client_id), 9).throttle_time_ms == 0
        assert client.ask(produce(client.client_id), 9).throttle_time_ms > 0
    client.limit(producer_byte_rate=None)

    assert [client.ask(produce(client.client_id, 9), 9).throttle_time_ms for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_consumer_gets_nothing_while_it_has_had_too_much_and_all_of_it_later(
    client: QuotaClient, version: int
) -> None:
    topic = str(client.client_id)
    for _ in range(5):
        client.ask(produce(topic), 9)
    client.limit(consumer_byte_rate=20_000)
    offset, empty, began_s = 0, 0, time.monotonic()
    while offset < 5:
        answer = client.ask(fetch(topic, offset), version)
        if answer.throttle_time_ms:
            assert answer.responses == []
            empty += 1
        else:
            # Not more at once than the window has room for.
            assert 9_000 < len(answer.responses[0].partitions[0].records) < 21_000
            offset += len(answer.responses[0].partitions[0].records) // len(VALUE)

    assert empty > 0
    assert time.monotonic() - began_s > 1.5


def test_a_throttled_fetch_leaves_its_session_as_it_was(client: QuotaClient, clock: StandingClock) -> None:
    topic = str(client.client_id)
    for _ in range(3):
        client.ask(produce(topic), 9)
    opening = fetch(topic)
    opening.session_epoch = 0
    opening.topics[0].partitions[0].partition_max_bytes = 100
    with clock.standing():
        opened = client.ask(opening, 11)
        client.limit(consumer_byte_rate=1)
        answers = []
        for epoch in (1, 2):
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_id=opened.session_id,
                session_epoch=epoch,
                topics=[],
                forgotten_topics_data=[],
            )
            if epoch == 2:
                with QuotaClient(HOST, client.address[1], client_id="other") as other:
                    answers.append(other.ask(request, 11))
            else:
                answers.append(client.ask(request, 11))
                client.close()

    assert (answers[0].throttle_time_ms > 0, answers[0].responses, answers[0].session_id) == (
        True,
        [],
        opened.session_id,
    )
    assert answers[1].error_code == ErrorCode.NONE
    assert answers[1].responses[0].partitions[0].records


def test_requests_that_take_too_much_time_have_to_pause_a_window_at_most(client: QuotaClient) -> None:
    client.limit(request_percentage=0.01)
    waits_ms = [client.ask(MetadataRequest(topics=None), 9).throttle_time_ms for _ in range(4)]

    assert max(waits_ms) == 1000
    assert all(wait_ms >= 0 for wait_ms in waits_ms)


@pytest.mark.parametrize("percentage", [-1e-320, 1e-320], ids=["below", "above"])
def test_no_quota_that_can_be_set_stops_the_broker(client: QuotaClient, percentage: float) -> None:
    client.limit(request_percentage=percentage)
    for version in (8, 9):
        assert client.ask(MetadataRequest(topics=[]), version).brokers
        if percentage > 0:
            break


class Held:
    """Stands for a call that waits; `asked` once somebody does, for as long as `release` is not set."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self.asked = threading.Event()
        self.release = threading.Event()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.asked.set()
        assert self.release.wait(60)
        return self._call(*arguments, **named)


def others_are_served(running: RunningBroker, held: Held, *, of_registry: bool) -> None:
    assert held.asked.wait(60)
    try:
        with QuotaClient(HOST, running.port, client_id="other") as other:
            assert other.offset("t", -1) == 0
            if not of_registry:
                assert other.ask(DescribeClientQuotasRequest(components=[], strict=False), 1).entries == []
    finally:
        held.release.set()


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path, {"num.io.threads": "1", "num.network.threads": "1"}) as running:
        with QuotaClient(HOST, running.port, client_id="c") as client:
            client.create_topic("t")
        yield running


def test_who_asks_for_quotas_keeps_nobody_waiting_while_the_registry_is_out_of_reach(
    narrow: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(read_named_configs)
    monkeypatch.setattr(describing, "read_named_configs", held)
    with QuotaClient(HOST, narrow.port, client_id="c") as client:
        client.limit(producer_byte_rate=1e9)
        client.send(DescribeClientQuotasRequest(components=[], strict=False), 1)
        others_are_served(narrow, held, of_registry=True)
        (found,) = client.receive(48, 1).entries
        assert [value.value for value in found.values] == [1e9]


def test_who_sets_a_quota_for_a_host_keeps_nobody_waiting_for_the_resolver(
    narrow: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(address_of)
    monkeypatch.setattr(altering, "address_of", held)
    with QuotaClient(HOST, narrow.port, client_id="c") as client:
        entries = [
            AlterClientQuotasRequestEntryData(
                entity=[EntityData(entity_type="ip", entity_name=name)],
                ops=[OpData(key="connection_creation_rate", value=1e6, remove=False)],
            )
            for name in ("localhost", "no such host")
        ]
        client.send(AlterClientQuotasRequest(entries=entries, validate_only=False), 1)
        others_are_served(narrow, held, of_registry=False)
        codes = [each.error_code for each in client.receive(49, 1).entries]
        assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


def test_partitions_that_are_too_many_are_refused_until_the_bucket_is_full_again(
    client: QuotaClient, clock: StandingClock
) -> None:
    name = str(client.client_id)
    client.limit(controller_mutation_rate=2)

    def create(topic: str, partitions: int, version: int = 7) -> Any:
        new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
        return client.ask(CreateTopicsRequest(topics=[new], timeout_ms=60_000), version)

    with clock.standing():
        # Four at once are no debt; a debt is, and nothing is made while there is one.
        assert create(f"{name}-a", 6).throttle_time_ms == 0
        began_s = time.monotonic()
        refused = create(f"{name}-b", 1)
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.throttle_time_ms == 1000
        clock.go(1000)
        assert create(f"{name}-b", 4).topics[0].error_code == ErrorCode.NONE
        assert time.monotonic() - began_s > 0.9
        # Before v6 all is made, and paid for.
        paid = create(f"{name}-c", 1, version=5)
        assert (paid.topics[0].error_code, paid.throttle_time_ms) == (ErrorCode.NONE, 2500)

        clock.go(2500)
        growth = CreatePartitionsTopic(name=f"{name}-c", count=2, assignments=None)
        grown = client.ask(CreatePartitionsRequest(topics=[growth], timeout_ms=60_000, validate_only=False), 3)
        deleted = client.ask(DeleteTopicsRequest(topic_names=[f"{name}-c"], timeout_ms=60_000), 5)
        codes = [grown.results[0].error_code, deleted.responses[0].error_code]
        assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]


def test_what_is_stored_counts_after_a_restart(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, {"quota.window.num": "2"}) as running:
        with QuotaClient(HOST, running.port, client_id="a b*") as client:
            client.create_topic("t")
            client.limit(producer_byte_rate=1_000)
        running.restart()
        with QuotaClient(HOST, running.port, client_id="a b*") as client:
            assert client.ask(produce("t"), 9).throttle_time_ms > 0


def test_a_connection_that_is_closed_while_it_pauses_is_forgotten(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running, QuotaClient(HOST, running.port, client_id="c") as client:
        client.create_topic("t")
        client.limit(producer_byte_rate=1)
        assert client.ask(produce("t", 9), 9).throttle_time_ms > 1_000_000
        quotas = running.broker.services.quotas
        assert quotas is not None
        assert quotas.produce.paused == 1
        running.broker._sockets.cut()
        wait_until(lambda: quotas.produce.paused == 0, 60, "it is not forgotten")
