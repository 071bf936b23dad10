"""What consuming costs the client: records a second of its own processor time, Kavka's client beside the others.

    python -m benchmarks.client_consume --bootstrap localhost:9092

Each record's key, value, offset and timestamp are looked at; as columns, each array is there. The topics are filled
first, by librdkafka, unless they have the records of a run before. Each client reads in a process of its own, one after
the other, several times; the best run of each counts, as others on the machine can only make it worse.
"""

import asyncio
import os
import time
from collections.abc import Callable, Generator
from typing import Final

from benchmarks.client_load import TIMEOUT_S, Load, load_parser, loads_of, measured, show_rates

CLIENTS: Final = ("kavka", "kavka-columns", "aiokafka", "kafka-python", "confluent")
A_POLL: Final = 500
BATCH_BYTES: Final = 16_384
SMALL_BYTES: Final = 250
"""Of larger records fewer are read."""


def main() -> None:
    parser = load_parser(__doc__, "client-consume", 400_000, CLIENTS)
    parser.add_argument("--a-batch", type=int, default=0)
    given = parser.parse_args()
    if given.client:
        print(_cost(given.client, given.load))
        return
    for each in loads_of(given, SMALL_BYTES):
        topic = f"{each.topic}-{each.size_bytes}-{each.codec}-{given.a_batch}"
        load = each._replace(topic=topic, a_batch=given.a_batch)
        _fill(load)
        print(f"consume {load.size_bytes} B, {load.codec}" + f", batches of {load.a_batch}" * bool(load.a_batch))
        show_rates(
            {
                client: max(measured("benchmarks.client_consume", client, load)[0] for _ in range(given.runs))
                for client in given.clients
            }
        )


def _fill(load: Load) -> None:
    """Records of half as many bits as they have: numbers for keys, digits for values."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    settings = {"bootstrap.servers": load.bootstrap}
    reader = Consumer({**settings, "group.id": "client-consume"})
    try:
        _, end = reader.get_watermark_offsets(TopicPartition(load.topic, 0), timeout=10)
    except Exception:  # noqa: BLE001  # there is no such topic yet
        end = 0
    finally:
        reader.close()
    batches = {"batch.num.messages": load.a_batch} if load.a_batch else {"batch.size": BATCH_BYTES}
    producer = Producer({**settings, **batches, "linger.ms": 50, "compression.type": load.codec})
    digits = os.urandom(64 * 1024 + load.size_bytes).hex().encode()
    for number in range(max(end, 0), load.records):
        start = number * 37 % (64 * 1024)
        while True:
            try:
                producer.produce(load.topic, digits[start : start + load.size_bytes], b"%d" % number, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        if number % A_POLL == 0:
            producer.poll(0)
    if producer.flush(TIMEOUT_S):
        raise RuntimeError("not all records were written")


def _cost(client: str, load: Load) -> float:
    """Records a second of this process's time, from the second poll on until all were read."""
    if client == "aiokafka":
        return asyncio.run(_aiokafka(load))
    polls = _OPENERS[client](load)
    read = next(polls)
    began, first = time.process_time(), read
    while read < load.records:
        read += next(polls)
    rate = (read - first) / (time.process_time() - began)
    polls.close()
    return rate


def _kavka(load: Load) -> Generator[int, None, None]:
    from kavka.client import Consumer

    with Consumer(bootstrap_servers=load.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(load.topic, 0)])
        while True:
            count = 0
            for record in consumer.poll(10_000):
                _ = record.key, record.value, record.offset, record.timestamp_ms
                count += 1
            yield count


def _kavka_columns(load: Load) -> Generator[int, None, None]:
    from kavka.client import Consumer

    with Consumer(bootstrap_servers=load.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(load.topic, 0)])
        while True:
            yield sum(len(columns.offsets) for columns in consumer.poll_columns(10_000))


def _kafka_python(load: Load) -> Generator[int, None, None]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=load.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False, group_id=None
    )
    consumer.assign([TopicPartition(load.topic, 0)])
    try:
        while True:
            count = 0
            for records in consumer.poll(10_000).values():
                for record in records:
                    _ = record.key, record.value, record.offset, record.timestamp
                    count += 1
            yield count
    finally:
        consumer.close()


def _confluent(load: Load) -> Generator[int, None, None]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": load.bootstrap, "group.id": "client-consume", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(load.topic, 0, 0)])
    try:
        while True:
            count = 0
            for record in consumer.consume(A_POLL, 10):
                _ = record.key(), record.value(), record.offset(), record.timestamp()
                count += 1
            yield count
    finally:
        consumer.close()


async def _aiokafka(load: Load) -> float:
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=load.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    partition = aiokafka.TopicPartition(load.topic, 0)
    consumer.assign([partition])
    await consumer.seek_to_beginning(partition)
    read = first = 0
    began = 0.0
    while read < load.records:
        for records in (await consumer.getmany(timeout_ms=10_000, max_records=A_POLL)).values():
            for record in records:
                _ = record.key, record.value, record.offset, record.timestamp
                read += 1
        if not began and read:
            began, first = time.process_time(), read
    rate = (read - first) / (time.process_time() - began)
    await consumer.stop()
    return rate


_OPENERS: Final[dict[str, Callable[[Load], Generator[int, None, None]]]] = {
    "kavka": _kavka,
    "kavka-columns": _kavka_columns,
    "kafka-python": _kafka_python,
    "confluent": _confluent,
}

if __name__ == "__main__":
    main()
