"""Answers that lie to a producer: lengths, sizes, ids, and contents that make no sense. Its thread goes on."""

import contextlib
from collections.abc import Iterator
from itertools import chain, count, repeat
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.api_errors import ClientDiedError, KafkaError
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.api import ApiKey, spec
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.support.answering_broker import AnsweringBroker
from tests.support.lying_answers import LIES, Lie
from tests.support.message_values import message_value
from tests.support.scripted_broker import Asked, framed

TIMEOUT_S = 120.0
APIS = [
    ApiKey.METADATA,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.FIND_COORDINATOR,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
]
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 2,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 2,
    "linger_ms": 0,
}


def the_whole_way(producer: Producer) -> None:
    """Every request that a transaction of the first version needs."""
    producer.init_transactions(TIMEOUT_S * 1000)
    producer.begin_transaction()
    future = producer.send(TOPIC, b"kavka")
    producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): 1}, "group", TIMEOUT_S * 1000)
    producer.commit_transaction(TIMEOUT_S * 1000)
    assert future.result(0).offset >= 0


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_a_lying_length_costs_its_connection_and_nothing_else(api: ApiKey) -> None:
    lies: Iterator[Lie] = chain(LIES, repeat(lambda frame: frame))

    def mangle(asked: Asked, frame: bytes) -> bytes | None:
        return next(lies)(frame) if asked.header.api_key == api else frame

    serving = ProducersBroker()
    with AnsweringBroker(serving.answers, mangle) as broker:
        serving.node = broker.node
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id="t", **QUICK) as producer:
            the_whole_way(producer)
            assert producer.metrics["connection-close-total"] >= len(LIES)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_an_answer_that_makes_no_sense_ends_no_thread(api: ApiKey, seed: int) -> None:
    numbers = count(seed * 1000)

    def mangle(asked: Asked, frame: bytes) -> bytes:
        if asked.header.api_key != api:
            return frame
        value = message_value(spec(api).response_class, asked.header.api_version, "full", next(numbers))
        return framed(asked, value)

    serving = ProducersBroker()
    limits: dict[str, Any] = {"request_timeout_ms": 200, "delivery_timeout_ms": 400, "max_block_ms": 400}
    heard: list[Any] = []
    with AnsweringBroker(serving.answers, mangle) as broker:
        serving.node = broker.node
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id="t", **QUICK, **limits) as producer:
            with contextlib.suppress(KafkaError):
                producer.init_transactions()
                producer.begin_transaction()
                future = producer.send(TOPIC, b"kavka", on_delivery=lambda metadata, error: heard.append(error))
                with contextlib.suppress(KafkaError):
                    future.result(TIMEOUT_S)
                assert len(heard) == 1
                producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): 1}, "group")
                producer.commit_transaction()
            assert not isinstance(producer._thread.failure, ClientDiedError)
            producer.close(400)
        assert not isinstance(producer._thread.failure, ClientDiedError)
