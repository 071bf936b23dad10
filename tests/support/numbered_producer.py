"""A producer process: `python -m tests.support.numbered_producer LIBRARY BOOTSTRAP TOPIC NAME RATE`, until SIGTERM.

It sends `NAME:PARTITION:NUMBER`, numbered from 0 in each partition, with the partition as key, `RATE` messages a second
in all, and retries for ever. For every acknowledged message it prints a line `PARTITION NUMBER OFFSET`; for every
failed one, and for those that are still under way at the end, `ERROR reason`. At SIGTERM it flushes, prints `END` and
how many it sent, and ends.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from tests.support.termination import Termination

PARTITIONS = 6
GIVE_UP_MS = 600_000
FLUSH_S = 150.0
TICK_S = 0.01

Report = Callable[[int, int, int], None]


def main(library: str, bootstrap: str, topic: str, name: str, rate: int) -> None:
    termination = Termination()
    send, poll, flush = {"confluent": _confluent, "kafka-python": _kafka_python}[library](bootstrap, topic)
    numbers = [0] * PARTITIONS
    sent = 0
    started_at = time.monotonic()
    while not termination.wait(TICK_S):
        due = int((time.monotonic() - started_at) * rate)
        while sent < due and not termination.wait():
            partition = sent % PARTITIONS
            send(partition, numbers[partition], f"{name}:{partition}:{numbers[partition]}".encode())
            numbers[partition] += 1
            sent += 1
        poll()
        sys.stdout.flush()
    undelivered = flush()
    if undelivered:
        print(f"ERROR {undelivered} messages undelivered {FLUSH_S} s after the last was sent")
    print(f"END {sent}", flush=True)


def _confluent(bootstrap: str, topic: str) -> tuple[Any, Callable[[], object], Callable[[], object]]:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": GIVE_UP_MS,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "batch.num.messages": 1000,
            "linger.ms": 5,
        }
    )

    def send(partition: int, number: int, value: bytes) -> None:
        def delivered(error: Any, message: Any) -> None:
            offset = message.offset()
            # None: a duplicate, of which the broker does not remember any more where it lies.
            _report(error, partition, number, -1 if offset is None else offset)

        while True:
            try:
                producer.produce(topic, value, b"%d" % partition, partition, on_delivery=delivered)
                return
            except BufferError:
                producer.poll(0.05)

    return send, lambda: producer.poll(0), lambda: producer.flush(FLUSH_S)


def _kafka_python(bootstrap: str, topic: str) -> tuple[Any, Callable[[], object], Callable[[], object]]:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        acks="all",
        delivery_timeout_ms=GIVE_UP_MS,
        request_timeout_ms=5_000,
        max_block_ms=60_000,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=100,
        retry_backoff_ms=20,
        linger_ms=5,
    )

    def send(partition: int, number: int, value: bytes) -> None:
        future = producer.send(topic, value, b"%d" % partition, partition=partition)
        future.add_callback(lambda placed: _report(None, partition, number, placed.offset))
        future.add_errback(lambda error: _report(error, partition, number, -1))

    return send, lambda: None, lambda: producer.flush(FLUSH_S)


def _report(error: object, partition: int, number: int, offset: int) -> None:
    line = f"ERROR {partition} {number} {error}" if error is not None else f"{partition} {number} {offset}"
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
