"""Produce page visits to a six-partition topic: `python -m examples.page_visits.produce --acks all --count 10000`."""

import argparse
from collections.abc import Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import TopicAlreadyExistsError
from kafka.partitioner import Partitioner

from examples.page_visits.visits import PageVisit, generate_visits

TOPIC = "page_visits"
PARTITIONS = 6


class LastOctetPartitioner(Partitioner):  # type: ignore[misc]  # kafka-python has no types
    """A partitioner of our own, on the client's side: the last number of the address, modulo the topic's partitions.

    It counts all partitions, not only those with a leader: a visitor stays where he is while a broker is away.
    """

    def partition(
        self, topic: str, key: Any, serialized_key: bytes, value: Any, serialized_value: bytes, cluster: Any
    ) -> int:
        partitions = sorted(cluster.partitions_for_topic(topic))
        return int(partitions[int(serialized_key.rpartition(b".")[2]) % len(partitions)])


def create_topic(bootstrap: str, topic: str = TOPIC) -> None:
    """Make the topic unless it is there. Raises ValueError if it is, with another number of partitions."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        wanted = {"num_partitions": PARTITIONS, "replication_factor": 1}
        admin.create_topics({topic: wanted}, wait_for_metadata=True)
    except TopicAlreadyExistsError:
        (found,) = admin.describe_topics([topic])
        if (count := len(found["partitions"])) != PARTITIONS:
            raise ValueError(f"{topic} is there with {count} partitions instead of {PARTITIONS}; delete it") from None
    finally:
        admin.close()


def produce_visits(bootstrap: str, visits: Sequence[PageVisit], acks: int | str, topic: str = TOPIC) -> None:
    """Send all visits and wait until they are out (acks 0), on the leader (1), or on all in-sync replicas ("all").

    Raises the first delivery error.
    """
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks=acks,
        # Idempotence needs acks=all; in-flight 1 keeps the order over retries without it.
        enable_idempotence=acks == "all",
        max_in_flight_requests_per_connection=5 if acks == "all" else 1,
        linger_ms=5,
        compression_type="lz4",
        partitioner=LastOctetPartitioner(),
    )
    try:
        futures = [
            producer.send(topic, visit.to_bytes(), key=visit.key, timestamp_ms=visit.time_ms) for visit in visits
        ]
        producer.flush(timeout=60)
        for future in futures:
            future.get(timeout=60)
    finally:
        producer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--acks", choices=("0", "1", "all"), default="all")
    arguments = parser.parse_args()
    try:
        create_topic(arguments.bootstrap)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    acks = arguments.acks if arguments.acks == "all" else int(arguments.acks)
    produce_visits(arguments.bootstrap, list(generate_visits(arguments.count)), acks)
    print(f"{arguments.count} visits sent to {TOPIC}")


if __name__ == "__main__":
    main()
