"""Add up what `count.py` has committed, and print it: `python -m examples.word_count.show --counts word-counts`."""

import argparse
from collections import Counter

from kavka.client import Consumer, TopicPartition

SILENCE_MS = 5_000


def totals(bootstrap: str, counts: str) -> Counter[str]:
    """Each word's total, of committed transactions alone. Raises TimeoutError when records do not come."""
    found: Counter[str] = Counter()
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        partitions = [TopicPartition(counts, number) for number in consumer.partitions_for(counts)]
        if not partitions:
            return found
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            # Positions move over markers and aborted records too, of which a poll has nothing to show.
            for record in consumer.poll(SILENCE_MS):
                found[(record.key or b"").decode()] += int(record.value or b"0")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--counts", default="word-counts")
    given = parser.parse_args()
    for word, count in totals(given.bootstrap, given.counts).most_common():
        print(f"{count:8} {word}")


if __name__ == "__main__":
    main()
