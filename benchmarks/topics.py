"""Topics of the benchmark, by librdkafka's admin client: the same calls for every broker."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.processes import wait_until
from tests.support.server import RunningServer

TIMEOUT_S = 120.0
TOPICS_A_REQUEST = 250
_numbers = count(1)


@contextmanager
def topic(
    server: RunningServer, partitions: int, configs: Mapping[str, str] | None = None, *, replication_factor: int = 1
) -> Iterator[str]:
    """A topic of its own for one run, deleted afterwards."""
    name = f"bench-{next(_numbers)}"
    create(server, [name], partitions, configs, replication_factor=replication_factor)
    try:
        yield name
    finally:
        delete(server, [name])


def create(
    server: RunningServer,
    names: list[str],
    partitions: int,
    configs: Mapping[str, str] | None = None,
    *,
    replication_factor: int = 1,
) -> None:
    """Create the topics and wait until every partition has a leader."""
    admin = _admin(server)
    for start in range(0, len(names), TOPICS_A_REQUEST):
        chosen = [
            NewTopic(name, num_partitions=partitions, replication_factor=replication_factor, config=dict(configs or {}))
            for name in names[start : start + TOPICS_A_REQUEST]
        ]
        for future in admin.create_topics(chosen, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S).values():
            future.result(TIMEOUT_S)

    def all_led() -> bool:
        known = admin.list_topics(timeout=TIMEOUT_S).topics
        found = [known[name].partitions for name in names if name in known]
        return len(found) == len(names) and all(
            len(parts) == partitions and all(part.leader >= 0 for part in parts.values()) for parts in found
        )

    wait_until(all_led, TIMEOUT_S, f"no leaders for {names[:3]} on {server.name}")


def delete(server: RunningServer, names: list[str]) -> None:
    admin = _admin(server)
    for start in range(0, len(names), TOPICS_A_REQUEST):
        chosen = names[start : start + TOPICS_A_REQUEST]
        for future in admin.delete_topics(chosen, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S).values():
            future.result(TIMEOUT_S)


def wait_until_serving(server: RunningServer, name: str, partitions: Sequence[int], timeout_s: float) -> float:
    """Wait until these partitions of the topic are led and answer where their logs end; the seconds it took.

    This is later than the first answered request where a broker answers before its logs are loaded.
    """
    started_at = time.monotonic()
    config = {"bootstrap.servers": server.bootstrap, "group.id": "bench", "log_level": 0}
    # The broker may not be back yet: ask again soon.
    consumer = Consumer({**config, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20})

    def serves() -> bool:
        try:
            return all(
                consumer.get_watermark_offsets(TopicPartition(name, part), timeout=5.0)[1] > 0 for part in partitions
            )
        except KafkaException:
            return False

    try:
        wait_until(serves, timeout_s, f"{server.name} does not serve {name}")
    finally:
        consumer.close()
    return time.monotonic() - started_at


def _admin(server: RunningServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 3})
