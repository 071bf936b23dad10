"""Produce page visits to a six-partition topic: `python -m examples.page_visits.produce --acks all --count 10000`.

`--by site` chooses partitions by the site that was visited, rather than by the visitor's address.
"""

import argparse
import zlib
from collections.abc import Sequence
from typing import Any

from examples.page_visits.visits import PageVisit, generate_visits
from kavka.client import Admin, Cluster, NewTopic, Producer
from kavka.client.api_errors import TopicExistsError

TOPIC = "page_visits"
PARTITIONS = 6


class LastNumberPartitioner:
    """A partitioner of our own, on the client's side: the last number of the address, modulo the topic's partitions.

    It counts all partitions, not only those with a leader: a visitor stays where he is while a broker is away.
    """

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        partition_key: Any,
    ) -> int:
        return int(key.rpartition(b".")[2]) % len(cluster.topics[topic].partitions)


class SitePartitioner:
    """All visits to a site together. `partition_key` is for the partitioner alone: the key is the address still."""

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        partition_key: Any,
    ) -> int:
        return zlib.crc32(partition_key.encode()) % len(cluster.topics[topic].partitions)


PARTITIONERS = {"address": LastNumberPartitioner, "site": SitePartitioner}


def create_topic(bootstrap: str, topic: str = TOPIC) -> None:
    """Make the topic unless it is there. Raises ValueError if it is, with another number of partitions."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        try:
            admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)])
        except TopicExistsError:
            count = len(admin.describe_topics([topic])[topic].partitions)
            if count != PARTITIONS:
                raise ValueError(
                    f"{topic} is there with {count} partitions instead of {PARTITIONS}; delete it"
                ) from None


def produce_visits(
    bootstrap: str, visits: Sequence[PageVisit], acks: int | str, topic: str = TOPIC, by: str = "address"
) -> None:
    """Send all visits and wait until they are out (acks 0), on the leader (1), or on all in-sync replicas ("all").

    Raises the first delivery error.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "acks": str(acks),
        # Idempotence needs acks=all; one request in flight keeps the order over retries without it.
        "max.in.flight.requests.per.connection": 5 if acks == "all" else 1,
        "compression.type": "lz4",
        "partitioner.class": PARTITIONERS[by],
    }
    with Producer(settings) as producer:
        futures = [
            producer.send(topic, visit.to_bytes(), key=visit.key, timestamp_ms=visit.time_ms, partition_key=visit.site)
            for visit in visits
        ]
        for future in futures:
            future.result(timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--acks", choices=("0", "1", "all"), default="all")
    parser.add_argument("--by", choices=tuple(PARTITIONERS), default="address")
    arguments = parser.parse_args()
    try:
        create_topic(arguments.bootstrap)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    acks = arguments.acks if arguments.acks == "all" else int(arguments.acks)
    produce_visits(arguments.bootstrap, list(generate_visits(arguments.count)), acks, by=arguments.by)
    print(f"{arguments.count} visits sent to {TOPIC}")


if __name__ == "__main__":
    main()
