"""`df.write` and `df.writeStream` to topics, at least once.

A task that fails is run again by Spark, and so is a batch whose query was killed before its end was noted: what they
had written already is there twice then. Exactly once is `kavka.pipeline.write`, from `foreachBatch`.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType, TimestampType

from kavka.client.producer.producer import Producer
from kavka.pipeline.secret_references import resolved_settings
from kavka.pipeline.source.errors import DeliveryError, RowError
from kavka.pipeline.source.write_options import WriteOptions

_BYTES: Final = (BinaryType, StringType)
_COLUMNS: Final[dict[str, tuple[type[DataType], ...]]] = {
    "topic": (StringType,),
    "key": _BYTES,
    "value": _BYTES,
    "partition": (IntegerType,),
    "timestamp": (TimestampType,),
    "headers": (ArrayType,),
}
"""What is written of rows; other columns are not, as with Spark's own sink, which has no timestamp."""
log = logging.getLogger(__name__)


class Written(WriterCommitMessage):
    """How many records a task has written."""

    def __init__(self, records: int) -> None:
        self.records = records


class TopicWriter(DataSourceArrowWriter):
    """Rows of a batch query. Made on the driver and pickled to executors."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        """Raises RowError for a schema that cannot be written."""
        check_schema(schema, options)
        self._options: Final = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In an executor: one task's rows. Raises RowError, DeliveryError, KafkaError."""
        return written(iterator, self._options)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _say(messages)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """As `TopicWriter`, for a streaming query."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        """Raises RowError for a schema that cannot be written."""
        check_schema(schema, options)
        self._options: Final = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """In an executor: one task's rows. Raises RowError, DeliveryError, KafkaError."""
        return written(iterator, self._options)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        _say(messages, f" batch={batchId}")


def _say(messages: Sequence[WriterCommitMessage | None], batch: str = "") -> None:
    count = sum(each.records for each in messages if isinstance(each, Written))
    log.info("written at least once, retried tasks' records are there twice records=%d%s", count, batch)


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """Raises RowError where there is no value, no topic, or a column of another type."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise RowError("rows are to have a column value, of type binary or string")
    if "topic" not in types and options.topic is None:
        raise RowError("where to? Rows are to have a column topic, or the option topic is to be given")
    for name, kinds in _COLUMNS.items():
        if name in types and not isinstance(types[name], kinds):
            expected = " or ".join(kind().simpleString() for kind in kinds if kind is not ArrayType)
            expected = expected or "array<struct<key:string,value:binary>>"
            raise RowError(f"the column {name} is to be {expected}, not {types[name].simpleString()}")


def written(batches: Iterator[Any], options: WriteOptions) -> Written:
    """Send all rows, and wait until they are acknowledged. Raises RowError, DeliveryError, KafkaError, SecretError."""
    failures: list[BaseException] = []

    def told(_metadata: object, error: BaseException | None) -> None:
        if error is not None and not failures:
            failures.append(error)

    count = 0
    with Producer(resolved_settings(options.client)) as producer:
        for batch in batches:
            for row in records_of(batch, options.topic):
                if failures:
                    break
                producer.send(*row, on_delivery=told)
            count += batch.num_rows
        producer.flush()
    if failures:
        raise DeliveryError(f"records were not delivered: {failures[0]}") from failures[0]
    return Written(count)


def records_of(batch: Any, topic: str | None) -> Iterator[tuple[Any, ...]]:
    """The arguments of `Producer.send` for each row of a record batch. Raises RowError."""
    count = batch.num_rows
    names = set(batch.schema.names)

    def column(name: str, kind: str | None = None) -> Any:
        if name not in names:
            return [None] * count
        found = batch.column(name)
        return (found if kind is None else found.cast(kind)).to_pylist()

    topics = [topic] * count if topic is not None else column("topic")
    if None in topics:
        raise RowError("a row has no topic: the column is null, and the option topic is not given")
    times = [None] * count
    if "timestamp" in names:
        micros = batch.column("timestamp").cast("int64").to_pylist()
        # A record that never had a time was read with -1 ms.
        times = [None if each is None or each < 0 else each // 1000 for each in micros]
    # Texts as their bytes: Spark makes texts of bytes that are no UTF-8, too.
    for to, value, key, partition, time_ms, headers in zip(
        topics,
        column("value", "binary"),
        column("key", "binary"),
        column("partition"),
        times,
        column("headers"),
        strict=True,
    ):
        yield to, value, key, partition, time_ms, [(each["key"], each["value"]) for each in headers or ()]
