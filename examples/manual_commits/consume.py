"""A consumer that commits by hand: records are stored first and committed then, so that none is lost.

    python -m examples.manual_commits.consume --bootstrap localhost:9092 --topic visits --into visits.txt

What was stored and not committed before a crash is read again: each line names its partition and offset, by which the
doubles can be told. Ends when nothing has come for `--idle` seconds; Ctrl-C ends it, too.
"""

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TextIO

from kavka.client import Consumer, ConsumerRecord, OffsetAndMetadata, RebalanceListener, TopicPartition
from kavka.client.api_errors import CommitFailedError


class Archive(RebalanceListener):
    """Stores records, and knows up to where each partition is stored."""

    def __init__(self, consumer: Consumer, out: TextIO) -> None:
        self._consumer = consumer
        self._out = out
        self._stored: dict[TopicPartition, OffsetAndMetadata] = {}

    def store(self, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            value = (record.value or b"").decode("utf-8", "replace")
            self._out.write(f"{record.topic}-{record.partition}@{record.offset} {value}\n")
            # What is committed is the next record to be read.
            self._stored[record.topic_partition] = OffsetAndMetadata(record.offset + 1, record.leader_epoch)
        self._out.flush()

    def commit(self) -> None:
        """Tell the group. If it has given the partitions to others meanwhile, they read these records again."""
        if self._stored:
            try:
                self._consumer.commit_sync(self._stored)
            except CommitFailedError as error:
                print(f"not committed, others go on with these: {error}")
            self._stored.clear()

    def on_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.commit()

    def on_lost(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._stored.pop(partition, None)


def archive(bootstrap: str, topic: str, group: str, into: Path, idle_s: float) -> int:
    """How many records were stored."""
    count = 0
    with (
        into.open("a") as out,
        Consumer(
            bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
        ) as consumer,
    ):
        archive = Archive(consumer, out)
        consumer.subscribe([topic], archive)
        while records := consumer.poll(idle_s * 1000):
            archive.store(records)
            archive.commit()
            count += len(records)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--topic", default="visits")
    parser.add_argument("--group", default="archive")
    parser.add_argument("--into", type=Path, default=Path("visits.txt"))
    parser.add_argument("--idle", type=float, default=10.0)
    given = parser.parse_args()
    try:
        count = archive(given.bootstrap, given.topic, given.group, given.into, given.idle)
        print(f"{count} records stored in {given.into}")
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
