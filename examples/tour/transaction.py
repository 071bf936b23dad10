"""Step 4: high watermark, last stable offset and a commit marker: `python -m examples.tour.transaction`."""

from typing import Final

from examples.tour.connection import NEW_YEAR_MS, Connection, records_in, require, wait_until
from kavka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.records.batch import iter_batch_headers
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record

TOPIC: Final = "ledger"
TRANSACTIONAL_ID: Final = "transfer"
TEN_YEARS_MS: Final = 10 * 365 * 24 * 3_600_000
CELL_WIDTH: Final = 10
TRANSACTION_KEY: Final = 1


def plain(text: str) -> bytes:
    """A batch outside of any transaction."""
    return build_batch([Record(timestamp_ms=NEW_YEAR_MS, key=None, value=text.encode())])


def transfer(connection: Connection) -> tuple[int, int]:
    """Begin a transaction and write two records in it; the producer's id and epoch."""
    connection.ask(FindCoordinatorRequest(key_type=TRANSACTION_KEY, coordinator_keys=[TRANSACTIONAL_ID]), 4)
    producer = connection.ask(
        InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000), 4
    )
    require(producer.error_code)
    added = connection.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTIONAL_ID,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        ),
        3,
    )
    require(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    batch = build_batch(
        [Record(timestamp_ms=NEW_YEAR_MS, key=None, value=text) for text in (b"A -5", b"B +5")],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    connection.produce(TOPIC, batch, TRANSACTIONAL_ID)
    return producer.producer_id, producer.producer_epoch


def picture(connection: Connection) -> str:
    """The log as cells, its offsets above it, and below it how far which reader may read."""
    data = connection.fetch(TOPIC)
    cells = {record.offset: (record.value or b"").decode() for record in records_in(data)}
    for _, header in iter_batch_headers(bytes(data.records or b"")):
        if header.is_control:
            cells[header.base_offset] = "COMMIT"
        elif header.is_transactional:
            cells |= {offset: f"({cells[offset]})" for offset in range(header.base_offset, header.next_offset)}
    lines = [
        "".join(f"{offset:<{CELL_WIDTH}}" for offset in range(data.high_watermark + 1)).rstrip(),
        "".join(f"|{cells[offset]:^{CELL_WIDTH - 1}}" for offset in sorted(cells)) + "|",
        _pointer(data.last_stable_offset, "last stable offset"),
        _pointer(data.high_watermark, "high watermark"),
    ]
    for name, read_committed in (("read_uncommitted", False), ("read_committed", True)):
        seen = records_in(connection.fetch(TOPIC, read_committed=read_committed))
        lines.append(f"{name} gets: {', '.join((record.value or b'').decode() for record in seen)}")
    return "\n".join(f"  {line}" for line in lines)


def _pointer(offset: int, name: str) -> str:
    return " " * (CELL_WIDTH * offset) + f"^ {name}"


def main() -> None:
    with Connection() as connection, Connection() as other:
        # The marker bears the time of its writing. That is long after New Year, and would begin a new segment.
        connection.make_topic(TOPIC, segment_ms=str(TEN_YEARS_MS))
        other.produce(TOPIC, plain("A =9"))
        producer_id, producer_epoch = transfer(connection)
        other.produce(TOPIC, plain("C =1"))
        print("While the transaction is open:\n")
        print(picture(connection))

        commit = EndTxnRequest(
            transactional_id=TRANSACTIONAL_ID, producer_id=producer_id, producer_epoch=producer_epoch, committed=True
        )
        require(connection.ask(commit, 3).error_code)
        # The coordinator has noted the commit, and writes the markers after its answer.
        wait_until(lambda: connection.fetch(TOPIC).last_stable_offset > 1)
        print("\nAfter its commit:\n")
        print(picture(connection))


if __name__ == "__main__":
    main()
