"""Step 6: a log before and after compaction: `python -m examples.tour.compaction`."""

from typing import Final

from examples.tour.connection import NEW_YEAR_MS, Connection, wait_until
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record

TOPIC: Final = "prices"
WEEK_MS: Final = 7 * 24 * 3_600_000
HISTORY: Final = [
    ("apple", "3"),
    ("pear", "5"),
    ("apple", "4"),
    ("plum", "9"),
    ("pear", None),
    ("apple", "2"),
]
"""Keys with their values, in the order of writing. None is a tombstone: the key is gone."""


def batch(key: str, value: str | None, timestamp_ms: int) -> bytes:
    record = Record(timestamp_ms=timestamp_ms, key=key.encode(), value=None if value is None else value.encode())
    return build_batch([record])


def shown(records: list[Record]) -> str:
    return "\n".join(
        f"  offset {record.offset}  {(record.key or b'').decode():<6}"
        + ("(tombstone)" if record.value is None else record.value.decode())
        for record in records
    )


def main() -> None:
    with Connection() as connection:
        connection.make_topic(
            TOPIC, cleanup_policy="compact", segment_ms=str(WEEK_MS), min_cleanable_dirty_ratio="0.01"
        )
        for number, (key, value) in enumerate(HISTORY):
            connection.produce(TOPIC, batch(key, value, NEW_YEAR_MS + number))
        print("As written:\n")
        print(shown(connection.read_all(TOPIC)))

        # A record of more than a week later begins the next segment, and the first one may be compacted.
        connection.produce(TOPIC, batch("plum", "8", NEW_YEAR_MS + 2 * WEEK_MS))
        print("\nThen came plum 8, in a segment of its own. After compaction:\n")
        wait_until(lambda: len(connection.read_all(TOPIC)) < len(HISTORY))
        print(shown(connection.read_all(TOPIC)))


if __name__ == "__main__":
    main()
