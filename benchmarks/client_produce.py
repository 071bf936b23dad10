"""What producing costs the client: records a second of its own processor time, Kavka's client beside the others.

    python -m benchmarks.client_produce --bootstrap localhost:9092

Each client sends in a process of its own, one after the other, several times; the best run of each counts, as others on
the machine can only make it worse. `--one-at-a-time` waits for each record instead, and shows the latencies.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.client_load import Load, load_parser, loads_of, measured, show_rates

CLIENTS: Final = ("kavka", "aiokafka", "kafka-python", "confluent")
SMALL_BYTES: Final = 100
"""Of larger records fewer are sent."""
LINGER_MS: Final = 5
POLLED_EVERY: Final = 500


def main() -> None:
    parser = load_parser(__doc__, "client-produce", 200_000, CLIENTS)
    parser.add_argument("--one-at-a-time", action="store_true")
    given = parser.parse_args()
    if given.client:
        run = _latencies if given.one_at_a_time else _costs
        print(*run(given.client, given.load))
        return
    flags = ["--one-at-a-time"] * given.one_at_a_time
    for load in loads_of(given, SMALL_BYTES):
        results = {
            client: [measured("benchmarks.client_produce", client, load, *flags) for _ in range(given.runs)]
            for client in given.clients
        }
        print(f"produce {load.size_bytes} B, {load.codec}")
        if not given.one_at_a_time:
            show_rates({client: max(run[0] for run in runs) for client, runs in results.items()})
            continue
        for client, runs in results.items():
            p50, p99 = (min(run[index] for run in runs) * 1000 for index in range(2))
            print(f"  {client:13} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms", flush=True)


def _costs(client: str, load: Load) -> Sequence[float]:
    return [_cost(client, load)]


def _cost(client: str, load: Load) -> float:
    """Records a second of this process's time, from the first send until all are acknowledged."""
    if client == "aiokafka":
        return asyncio.run(_aiokafka(load))
    send, flush = _OPENERS[client](load)
    value = bytes(load.size_bytes)
    send(value)
    flush()
    began = time.process_time()
    for _ in range(load.records):
        send(value)
    flush()
    return load.records / (time.process_time() - began)


def _latencies(client: str, load: Load, writes: int = 2_000) -> Sequence[float]:
    """Median and 99th percentile of one record after the other, in seconds."""
    value = bytes(load.size_bytes)
    taken = []
    if client == "aiokafka":
        taken = asyncio.run(_aiokafka_latencies(load, value, writes))
    else:
        send, flush = _OPENERS[client](load, linger_ms=0)
        for _ in range(writes):
            began = time.perf_counter()
            send(value)
            flush()
            taken.append(time.perf_counter() - began)
    counted = sorted(taken[writes // 10 :])
    return counted[len(counted) // 2], counted[len(counted) * 99 // 100]


def _kavka(load: Load, linger_ms: int = LINGER_MS) -> tuple[Callable[[bytes], Any], Callable[[], Any]]:
    from kavka.client import Producer

    producer = Producer(bootstrap_servers=load.bootstrap, linger_ms=linger_ms, compression_type=load.codec)
    return lambda value: producer.send(load.topic, value), producer.flush


def _kafka_python(load: Load, linger_ms: int = LINGER_MS) -> tuple[Callable[[bytes], Any], Callable[[], Any]]:
    from kafka import KafkaProducer

    codec = None if load.codec == "none" else load.codec
    producer = KafkaProducer(bootstrap_servers=load.bootstrap, linger_ms=linger_ms, compression_type=codec)
    return lambda value: producer.send(load.topic, value), producer.flush


def _confluent(load: Load, linger_ms: int = LINGER_MS) -> tuple[Callable[[bytes], Any], Callable[[], Any]]:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": load.bootstrap,
            "linger.ms": linger_ms,
            "compression.type": load.codec,
            "enable.idempotence": True,
            "batch.size": 16_384,
            "queue.buffering.max.messages": 1_000_000,
        }
    )

    sent = 0

    def send(value: bytes) -> None:
        nonlocal sent
        producer.produce(load.topic, value, on_delivery=_delivered)
        sent += 1
        if sent % POLLED_EVERY == 0:
            producer.poll(0)

    return send, producer.flush


def _delivered(error: Any, _message: Any) -> None:
    if error is not None:
        raise RuntimeError(str(error))


async def _aiokafka(load: Load) -> float:
    producer = await _aiokafka_producer(load, LINGER_MS)
    value = bytes(load.size_bytes)
    await producer.send_and_wait(load.topic, value)
    began = time.process_time()
    futures = [await producer.send(load.topic, value) for _ in range(load.records)]
    await producer.flush()
    for future in futures:
        future.result()
    rate = load.records / (time.process_time() - began)
    await producer.stop()
    return rate


async def _aiokafka_latencies(load: Load, value: bytes, writes: int) -> list[float]:
    producer = await _aiokafka_producer(load, 0)
    taken = []
    for _ in range(writes):
        began = time.perf_counter()
        await producer.send_and_wait(load.topic, value)
        taken.append(time.perf_counter() - began)
    await producer.stop()
    return taken


async def _aiokafka_producer(load: Load, linger_ms: int) -> Any:
    from aiokafka import AIOKafkaProducer

    codec = None if load.codec == "none" else load.codec
    producer = AIOKafkaProducer(
        bootstrap_servers=load.bootstrap, linger_ms=linger_ms, compression_type=codec, enable_idempotence=True
    )
    await producer.start()
    return producer


_OPENERS: Final[dict[str, Callable[..., tuple[Callable[[bytes], Any], Callable[[], Any]]]]] = {
    "kavka": _kavka,
    "kafka-python": _kafka_python,
    "confluent": _confluent,
}

if __name__ == "__main__":
    main()
