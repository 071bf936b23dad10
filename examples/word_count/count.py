"""Count words exactly once: read lines, send each word's count, and commit what was read and written together.

    python -m examples.word_count.count --bootstrap localhost:9092 --lines lines --counts word-counts

Each transaction has the counts of the lines of one poll; who wants totals adds them up, reading committed records only
(`python -m examples.word_count.show`). If the program is killed between two steps, the transaction counts for nothing,
and whoever goes on reads the same lines again. Ends when nothing has come for `--idle` seconds.
"""

import argparse
from collections import Counter

from kavka.client import Consumer, ConsumerRecord, OffsetAndMetadata, Producer, TopicPartition
from kavka.client.api_errors import AbortableError


def count_words(bootstrap: str, lines: str, counts: str, name: str = "word-count", idle_s: float = 10.0) -> int:
    """Count until no line has come for `idle_s`; how many lines there were. One of each `name` runs at a time."""
    total = 0
    with (
        Consumer(
            bootstrap_servers=bootstrap,
            group_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
        Producer(bootstrap_servers=bootstrap, transactional_id=name, compression_type="lz4") as producer,
    ):
        # Ends what a former run left open: from here on it is fenced.
        producer.init_transactions()
        consumer.subscribe([lines])
        while records := list(consumer.poll(idle_s * 1000)):
            producer.begin_transaction()
            try:
                for word, count in Counter(word for record in records for word in words_of(record)).items():
                    producer.send(counts, str(count).encode(), key=word.encode())
                # The consumer's part of the transaction: where the next one begins.
                producer.send_offsets_to_transaction(positions(records), consumer.group_metadata())
                producer.commit_transaction()
            except AbortableError as error:
                print(f"aborted, and to be read again: {error}")
                producer.abort_transaction()
                go_back(consumer, records)
            else:
                total += len(records)
    return total


def words_of(record: ConsumerRecord) -> list[str]:
    """The words of a line."""
    return (record.value or b"").decode("utf-8", "replace").lower().split()


def positions(records: list[ConsumerRecord]) -> dict[TopicPartition, OffsetAndMetadata]:
    """For each partition the offset after its last record."""
    return {record.topic_partition: OffsetAndMetadata(record.offset + 1, record.leader_epoch) for record in records}


def go_back(consumer: Consumer, records: list[ConsumerRecord]) -> None:
    """Read these once more, as far as their partitions are still ours."""
    firsts = {record.topic_partition: record.offset for record in reversed(records)}
    for partition, offset in firsts.items():
        if partition in consumer.assignment():
            consumer.seek(partition, offset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--lines", default="lines")
    parser.add_argument("--counts", default="word-counts")
    parser.add_argument("--name", default="word-count", help="the group, and the transactional id")
    parser.add_argument("--idle", type=float, default=10.0)
    given = parser.parse_args()
    print(f"{count_words(given.bootstrap, given.lines, given.counts, given.name, given.idle)} lines counted")


if __name__ == "__main__":
    main()
