"""Read page visits back, a partition at a time: `python -m examples.page_visits.consume`."""

import argparse

from examples.page_visits.produce import PARTITIONS, TOPIC
from examples.page_visits.visits import PageVisit
from kavka.client import Consumer, TopicPartition

SILENCE_MS = 10_000


def read_visits(bootstrap: str, topic: str = TOPIC) -> dict[int, list[PageVisit]]:
    """All visits that are in the topic now, by partition, in the order of the log.

    Raises ValueError for a topic that is not there, or was not made by `produce`.
    """
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        found = set(consumer.partitions_for(topic))
        if found != set(range(PARTITIONS)):
            raise ValueError(
                f"{topic} has {len(found)} partitions instead of {PARTITIONS}: run examples.page_visits.produce"
            )
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        remaining = sum(consumer.end_offsets(partitions).values()) - sum(
            consumer.beginning_offsets(partitions).values()
        )
        visits: dict[int, list[PageVisit]] = {number: [] for number in range(PARTITIONS)}
        while remaining > 0:
            records = consumer.poll(SILENCE_MS)
            if not records:
                raise TimeoutError(f"nothing came for {SILENCE_MS} ms, {remaining} visits are missing")
            for record in records:
                visits[record.partition].append(PageVisit.from_bytes(record.value))
            remaining -= len(records)
        return visits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="localhost:9092")
    try:
        read = read_visits(parser.parse_args().bootstrap)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    for partition, visits in read.items():
        print(f"partition {partition}: {len(visits)} visits from {len({visit.ip for visit in visits})} addresses")


if __name__ == "__main__":
    main()
