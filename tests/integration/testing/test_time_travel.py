"""A broker's clock goes ahead at once: what would take it hours has happened."""

from collections.abc import Iterator

import pytest

from kavka.client import Consumer, Producer
from kavka.client.api_errors import GroupIdNotFoundError
from kavka.testing import Broker, Row


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker
        broker.check()


def test_records_fall_to_retention(broker: Broker) -> None:
    broker.create_topic("kept", configs={"retention.ms": "-1"})
    broker.create_topic("shed", configs={"retention.ms": "3600000"})
    for topic in ("kept", "shed"):
        broker.produce(topic, ["old"])
    broker.travel(minutes=30)
    broker.produce("shed", ["a little younger"])
    assert len(broker.records("shed")) == 2
    broker.travel(hours=2)
    broker.wait_until(lambda: not broker.records("shed"), message="retention did nothing")
    broker.produce("shed", ["new"])
    broker.assert_records("shed", ["new"])
    broker.assert_records("kept", ["old"])


def test_records_of_1970_stay_until_the_first_look_and_then_until_the_next_one() -> None:
    # Measured beside Apache Kafka 4.3, which has 30 s and 5 min by default: gone 31 s after the start, and 300 s later.
    with Broker({"log.initial.task.delay.ms": "36000000", "log.retention.check.interval.ms": "720000000"}) as broker:
        broker.create_topic("old")
        for looked_at in (10, 200):
            broker.produce("old", [Row("1970", timestamp_ms=5)])
            broker.travel(hours=looked_at - 1)
            broker.assert_records("old", ["1970"])
            broker.travel(hours=1)
            broker.wait_until(lambda: not broker.records("old"), message="it was not looked at")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_hears_of_nothing_loses_its_session(broker: Broker, protocol: str) -> None:
    topic, group = f"sessions-{protocol}", f"billing-{protocol}"
    broker.create_topic(topic)
    broker.produce(topic, ["x"])
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "auto.offset.reset": "earliest",
        "group.id": group,
        "group.protocol": protocol,
        "client.id": protocol,
    }
    if protocol == "classic":
        # So that none of its heartbeats comes between the jump and the look at the group.
        settings |= {"session.timeout.ms": "1800000", "heartbeat.interval.ms": "600000"}

    def members() -> list[str]:
        try:
            (described,) = broker.admin.describe_consumer_groups([group]).values()
        except GroupIdNotFoundError:
            return []  # it is empty, and has committed nothing: the broker has forgotten it
        return [member.member_id for member in described.members]

    with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in consumer.poll(timeout_ms=60_000)] == [b"x"]
        (joined,) = members()
        broker.travel(hours=1)
        broker.wait_until(lambda: joined not in members(), message="its session goes on")


def test_a_transaction_that_is_left_open_is_aborted(broker: Broker) -> None:
    broker.create_topic("ledger")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "books"}
    with Producer(settings, transaction_timeout_ms=900_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("ledger", b"left open").result(60)
        broker.produce("ledger", ["behind it"])
        assert broker.records("ledger").values == [b"left open", b"behind it"]
        broker.travel(hours=1)

        def is_decided() -> bool:
            (state,) = {each.state.name for each in broker.admin.list_transactions()}
            return state == "COMPLETE_ABORT"

        broker.wait_until(is_decided, message="the transaction is open still")
        broker.assert_records("ledger", ["behind it"], committed=True)
