"""What clients meet when their requests are hit, and that nothing else is touched."""

import time

import pytest

from kavka.broker.faults.control import FaultControl
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.processes import wait_until
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import LATEST, ClosedError, RawClient, batch_of, fetch_request, produce_request

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
DELAY_MS = 300
WRONG_ACKS = 5


def batch(value: bytes = b"x") -> bytes:
    return batch_of([value], timestamp_ms=1)


def test_the_next_requests_fail_with_the_error_and_do_nothing(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("failing")

    fault = faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2, topic="failing")

    assert [client.produce("failing", b"x").error_code for _ in range(3)] == [NOT_LEADER, NOT_LEADER, 0]
    assert client.offset("failing", LATEST) == 1, "what failed was not done"
    assert (fault.hits, fault.left) == (2, 0)


def test_requests_of_other_clients_topics_and_apis_pass(faults: FaultControl, running: RunningBroker) -> None:
    with RawClient(HOST, running.port, client_id="other") as other, RawClient(HOST, running.port) as client:
        client.create_topic("mine", 2)
        client.create_topic("yours")
        fault = faults.fail("Produce", error=6, times=None, topic="mine", partition=0, client_id="wire")

        assert other.produce("mine", b"x").error_code == 0
        assert client.produce("yours", b"x").error_code == 0
        assert client.offset("mine", LATEST) == 1
        one = client.ask(produce_request("mine", batch(), partition=1), 9).responses[0].partition_responses[0]
        assert one.error_code == 0
        assert fault.hits == 0
        assert client.produce("mine", b"x").error_code == NOT_LEADER


def test_the_partitions_of_a_request_that_are_not_hit_are_served(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("parted", 2)
    client.create_topic("beside")
    faults.fail("Produce", error=NOT_LEADER, topic="parted", partition=1)
    rows = [PartitionProduceData(index=index, records=batch()) for index in (0, 1)]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(name="parted", partition_data=rows),
            TopicProduceData(name="beside", partition_data=[PartitionProduceData(index=0, records=batch())]),
        ],
    )

    answer = client.ask(request, 9)

    found = {(t.name, p.index): p.error_code for t in answer.responses for p in t.partition_responses}
    assert found == {("parted", 0): 0, ("parted", 1): NOT_LEADER, ("beside", 0): 0}
    assert client.offset("parted", LATEST) == client.offset("beside", LATEST) == 1


def test_a_fetch_in_a_session_fails_by_partition_and_the_session_ends(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("fetched", 2)
    client.produce("fetched", b"x")
    asked = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in (0, 1)]
    topics = [FetchTopic(topic="fetched", partitions=asked)]
    opened = client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=topics), 11)
    assert opened.session_id > 0
    faults.fail("Fetch", error=NOT_LEADER, topic="fetched", partition=1)
    going_on = FetchRequest(
        max_wait_ms=0, min_bytes=0, session_id=opened.session_id, session_epoch=1, topics=[], forgotten_topics_data=[]
    )

    failed = client.ask(going_on, 11)

    (topic,) = failed.responses
    assert {each.partition_index: each.error_code for each in topic.partitions} == {0: 0, 1: NOT_LEADER}
    assert (failed.error_code, failed.session_id) == (0, 0), "which tells the client to open another one"
    again = client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=topics), 11)
    assert again.session_id > 0
    assert {each.error_code for each in again.responses[0].partitions} == {0}


def test_an_error_of_the_session_is_the_whole_fetchs(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("session")
    faults.fail("Fetch", error="FETCH_SESSION_ID_NOT_FOUND")

    answer = client.ask(fetch_request("session", 0), 11)

    assert (answer.error_code, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


@pytest.mark.parametrize("version", [1, 8, 12])
def test_metadata_fail_by_topic_with_the_brokers_as_they_are(
    faults: FaultControl, client: RawClient, version: int
) -> None:
    for name in (f"shown-{version}", f"hidden-{version}"):
        client.create_topic(name)
    faults.fail("Metadata", error="LEADER_NOT_AVAILABLE", topic=f"hidden-{version}")

    answer = client.ask(MetadataRequest(topics=None), version)

    codes = {each.name: (each.error_code, len(each.partitions)) for each in answer.topics}
    assert codes[f"hidden-{version}"] == (ErrorCode.LEADER_NOT_AVAILABLE, 0)
    assert codes[f"shown-{version}"] == (0, 1)
    assert [each.node_id for each in answer.brokers] == [5]


def test_a_delayed_request_is_done_later_and_in_its_order(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("delayed")
    faults.delay("Produce", delay_ms=DELAY_MS, topic="delayed")
    started_s = time.monotonic()
    late, next_one = produce_request("delayed", batch(b"1")), fetch_request("delayed", 0)
    client.send(late, 9)
    client.send(next_one, 11)

    assert client.answer(late, 9).responses[0].partition_responses[0].base_offset == 0
    assert time.monotonic() - started_s >= DELAY_MS / 1000
    assert client.answer(next_one, 11).responses[0].partitions[0].high_watermark == 1, "it ran behind it"


def test_clearing_a_delay_lets_go_what_it_held(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("cleared")
    fault = faults.delay("Produce", delay_ms=3_600_000, topic="cleared")
    late = produce_request("cleared", batch())
    client.send(late, 9)
    wait_until(lambda: fault.hits == 1, 60, "not hit")

    fault.clear()

    assert client.answer(late, 9).responses[0].partition_responses[0].error_code == 0
    assert faults.faults == ()


def test_a_dropped_answer_leaves_the_work_done_and_the_connection_still(
    faults: FaultControl, running: RunningBroker, client: RawClient
) -> None:
    client.create_topic("dropped")
    fault = faults.drop("Produce", topic="dropped")
    with RawClient(HOST, running.port) as silent:
        silent.send(produce_request("dropped", batch(), acks=-1), 9)
        wait_until(lambda: client.offset("dropped", LATEST) == 1, 60, "it was not done")
        assert fault.hits == 1
        assert_silent(silent)
    wait_for_connections(running, 1)
    assert client.produce("dropped", b"x").error_code == 0


def test_clearing_a_dropped_answer_closes_its_connection(faults: FaultControl, running: RunningBroker) -> None:
    with RawClient(HOST, running.port) as client:
        client.create_topic("dropped-2")
        fault = faults.drop("Fetch", topic="dropped-2")
        client.send(fetch_request("dropped-2", 0), 11)
        wait_until(lambda: fault.hits == 1, 60, "not hit")

        fault.clear()

        assert client.closed_by_peer()


@pytest.mark.parametrize(("after_work", "acks"), [(False, 1), (True, 1), (True, -1), (True, 0), (False, 0)])
def test_a_connection_is_cut_before_or_after_the_work(
    faults: FaultControl, running: RunningBroker, client: RawClient, after_work: bool, acks: int
) -> None:
    topic = f"cut-{after_work}-{acks}"
    client.create_topic(topic)
    fault = faults.cut("Produce", after_work=after_work, topic=topic)
    with RawClient(HOST, running.port) as victim:
        victim.send(produce_request(topic, batch(), acks=acks), 9)

        assert victim.closed_by_peer()
    assert fault.hits == 1
    assert client.offset(topic, LATEST) == int(after_work)


def test_a_cut_after_the_work_cuts_what_is_refused_too(
    faults: FaultControl, running: RunningBroker, client: RawClient
) -> None:
    client.create_topic("cut-refused")
    faults.cut("Produce", after_work=True)
    with RawClient(HOST, running.port) as victim, pytest.raises(ClosedError):
        victim.ask(produce_request("cut-refused", batch(), acks=WRONG_ACKS), 9)


def test_what_is_refused_late_is_answered_as_at_once(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("refused-late")
    refused = produce_request("refused-late", batch(), acks=WRONG_ACKS)
    faults.delay("Produce", delay_ms=1)

    answers = [client.ask(refused, 9) for _ in range(2)]

    codes = [each.responses[0].partition_responses[0].error_code for each in answers]
    assert codes == [ErrorCode.INVALID_REQUIRED_ACKS] * 2


def test_what_was_answered_before_a_cut_arrives(faults: FaultControl, running: RunningBroker) -> None:
    with RawClient(HOST, running.port) as client:
        client.create_topic("before-cut")
        faults.cut("ListOffsets")
        first = produce_request("before-cut", batch())
        client.send(first, 9)
        assert client.answer(first, 9).responses[0].partition_responses[0].error_code == 0
        with pytest.raises(ClosedError):
            client.offset("before-cut", LATEST)


def test_a_throttled_client_is_told_at_once(faults: FaultControl, running: RunningBroker, client: RawClient) -> None:
    client.create_topic("told")
    faults.throttle("Produce", throttle_time_ms=3_600_000, topic="told")
    with RawClient(HOST, running.port) as throttled:
        assert throttled.ask(produce_request("told", batch()), 9).throttle_time_ms == 3_600_000
        throttled.send(fetch_request("told", 0), 11)
        assert_silent(throttled)


def test_a_throttled_client_is_told_and_not_read_for_the_time(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("throttled")
    faults.throttle("Produce", throttle_time_ms=DELAY_MS, topic="throttled")
    started_s = time.monotonic()

    answer = client.ask(produce_request("throttled", batch()), 9)
    client.offset("throttled", LATEST)

    assert answer.throttle_time_ms == DELAY_MS
    assert time.monotonic() - started_s >= DELAY_MS / 1000
    assert client.ask(produce_request("throttled", batch()), 9).throttle_time_ms == 0


def test_a_producer_that_awaits_no_answer_is_not_read_for_the_time_either(
    faults: FaultControl, client: RawClient
) -> None:
    client.create_topic("throttled-unanswered")
    faults.throttle("Produce", throttle_time_ms=DELAY_MS, topic="throttled-unanswered")
    started_s = time.monotonic()

    client.send(produce_request("throttled-unanswered", batch(), acks=0), 9)

    assert client.offset("throttled-unanswered", LATEST) == 1
    assert time.monotonic() - started_s >= DELAY_MS / 1000


def test_metadata_that_are_kept_encoded_can_be_throttled(faults: FaultControl, client: RawClient) -> None:
    faults.throttle("Metadata", throttle_time_ms=7)

    assert client.ask(MetadataRequest(topics=None), 9).throttle_time_ms == 7
    assert client.ask(MetadataRequest(topics=None), 9).throttle_time_ms == 0


def test_a_frozen_broker_answers_when_it_thaws(faults: FaultControl, running: RunningBroker, client: RawClient) -> None:
    client.create_topic("frozen")
    purgatory = running.broker.services.purgatory
    waiting = fetch_request("frozen", 0, max_wait_ms=3_600_000)
    parked = purgatory.size
    client.send(waiting, 11)
    wait_until(lambda: purgatory.size > parked, 60, "it does not wait")
    with RawClient(HOST, running.port) as other:
        with faults.freeze() as fault:
            asked = MetadataRequest(topics=[MetadataRequestTopic(name="frozen")])
            other.send(asked, 9)
            wait_until(lambda: fault.hits >= 1, 60, "not hit")
            # What waits would be answered now.
            partition = running.broker.services.replicas.partitions["frozen", 0]
            partition.append(memoryview(bytearray(batch())), 1, 9, 1)
            partition.appended()
            for each in (client, other):
                assert_silent(each)
        assert other.answer(asked, 9).topics[0].error_code == 0
    assert client.answer(waiting, 11).responses[0].partitions[0].high_watermark == 1


def test_a_full_disk_refuses_what_is_written_until_it_is_cleared(
    faults: FaultControl, running: RunningBroker, client: RawClient
) -> None:
    client.create_topic("full")
    assert client.produce("full", b"x").error_code == 0
    running.errors.expect("No space left")

    with faults.fill_disk() as fault:
        assert client.produce("full", b"y").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert b"x" in client.fetch("full"), "what is there can be read"
        assert fault.hits >= 1

    wait_until(lambda: client.produce("full", b"z").error_code == 0, 60, "it did not recover")


def test_a_disk_that_was_filled_twice_is_full_until_both_are_cleared(
    faults: FaultControl, running: RunningBroker, client: RawClient
) -> None:
    client.create_topic("full-twice")
    running.errors.expect("No space left")
    with faults.fill_disk():
        faults.fill_disk().clear()

        assert client.produce("full-twice", b"y").error_code == ErrorCode.KAFKA_STORAGE_ERROR

    wait_until(lambda: client.produce("full-twice", b"z").error_code == 0, 60, "it did not recover")


def test_a_failed_fetch_that_ends_its_session_leaves_none(
    faults: FaultControl, running: RunningBroker, client: RawClient
) -> None:
    client.create_topic("session-ended")
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topics = [FetchTopic(topic="session-ended", partitions=partitions)]
    opening = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, session_id=0, session_epoch=0, topics=topics)
    sessions = running.broker.services.fetch_sessions
    opened = client.ask(opening, 11).session_id
    faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER")

    closing = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, session_id=opened, session_epoch=-1, topics=[])
    client.ask(closing, 11)

    assert opened != 0
    assert sessions.session_of(closing) is None


def test_the_oldest_fault_that_hits_is_the_one_that_does(faults: FaultControl, client: RawClient) -> None:
    client.create_topic("order")
    first = faults.fail("Produce", error="NOT_ENOUGH_REPLICAS", topic="order")
    second = faults.fail("Produce", error="CORRUPT_MESSAGE", topic="order")

    codes = [client.produce("order", b"x").error_code for _ in range(3)]

    assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CORRUPT_MESSAGE, 0]
    assert (first.hits, second.hits) == (1, 1)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("no API", {"api": "Prodcue", "error": "NOT_COORDINATOR"}),
        ("no error", {"api": "Produce", "error": "NOT_A_LEADER"}),
        ("NONE is no error", {"api": "Produce", "error": 0}),
        ("a partition is one of a topic", {"api": "Produce", "error": 6, "partition": 1}),
        ("SaslAuthenticate is answered before", {"api": "SaslAuthenticate", "error": 58}),
        ("SaslHandshake is answered before", {"api": 17, "error": "UNSUPPORTED_SASL_MECHANISM"}),
        ("times", {"api": "Produce", "error": 6, "times": 0}),
        ("a message", {"api": "CreateTopics", "error": 7, "message": "\ud800"}),
        ("a message", {"api": "CreateTopics", "error": 7, "message": "é" * 20_000}),
    ],
)
def test_what_cannot_be_meant_is_refused(faults: FaultControl, words: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=words):
        faults.fail(**arguments)  # type: ignore[arg-type]  # that is what is tested
    assert faults.faults == ()


def assert_silent(client: RawClient) -> None:
    """Nothing comes for a while."""
    client.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)
    client.socket.settimeout(60)


def wait_for_connections(running: RunningBroker, count: int) -> None:
    sockets = running.broker._sockets
    wait_until(lambda: sockets.connection_count == count, 60, lambda: f"{sockets.connection_count} connections")
