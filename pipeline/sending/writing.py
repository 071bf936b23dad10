"""A batch of a streaming query written to topics, exactly once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow
import pyarrow.compute
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from kavka.client import Admin
from kavka.pipeline.sending.marked_producer import MarkedProducer, Transactions
from kavka.pipeline.sending.marker_reading import NOTHING_READ, MarkersRead, read_markers
from kavka.pipeline.sending.markers import MARKER_TOPIC, Marker, MarkerName, MarkerPlace, common_settings, marker_place
from kavka.pipeline.sending.partition_task import PARTITION, TOPIC, PartitionTask, check_whole, stale
from kavka.pipeline.sending.steps import PLANNED, WRITTEN, OnStep, unwatched
from kavka.pipeline.sending.target_partitions import BY_KEY, PartitionChoice

POSITION: Final = ("topic", "partition", "offset")
"""The columns that say where a row comes from, in the order in which rows are sent."""
PLAN: Final = -1
"""In place of a partition, in the name of the driver's own marker: among how many partitions a batch is shared out."""
_ID: Final = "_kavka_id"
_HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_REPORT: Final = "topic string, partition int, rows long, sent long"


class WriteOptions(NamedTuple):
    """How a batch is written.

    `topic`: where to; None: each row's column `topic` says. `partitions`: "key", or "source" to keep the numbers.
    `order`: columns by which the rows of a target partition are sorted; None: those of topic, partition and offset that
    are there. `transactions`: see there; with a limit of rows readers of committed records see a batch bit by bit, and
    the order has to be the same when the batch is made again, so it needs a column `offset` or an `order` of your own.
    """

    topic: str | None = None
    partitions: str = BY_KEY
    order: Sequence[str] | None = None
    transactions: Transactions = Transactions()
    marker_topic: str = MARKER_TOPIC
    on_step: OnStep = unwatched


class Written(NamedTuple):
    """A batch: how many rows it has, and how many were sent just now; others were there from an attempt before."""

    rows: int
    sent: int


def write(
    df: DataFrame,
    batch_id: int,
    settings: Mapping[str, str],
    *,
    query: str | None = None,
    options: WriteOptions = WriteOptions(),  # noqa: B008 - it is immutable
) -> Written:
    """Write a batch's rows to topics, exactly once, with their times and headers; for `foreachBatch`.

        copy = WriteOptions(topic="copy", partitions="source")
        visits.writeStream.foreachBatch(lambda df, batch_id: write(df, batch_id, settings, options=copy)).start()

    Columns: value; key, timestamp, headers, and topic, partition, offset as the source `kavka` gives them. Text goes as
    UTF-8. `settings` are a producer's, by Kafka's names. `query` names the writer: batch ids count within it, and two
    that run at once need two names; None: the streaming query's id, which lies in its checkpoint.

    Each target partition's rows are brought to one task, sorted, and written in one transaction (or more, see
    `WriteOptions`) together with a marker in a compacted topic. A batch that is written again goes on behind its
    markers: it has to have the same rows then, as Spark's batches have whose transformations are functions of the rows.
    Attempts that are still at work are shut out.

    Raises ValueError for columns or options that cannot be, StaleBatchError for a batch before the last one that was
    written, MarkerTopicError, KafkaError, and what Spark raises. Threads: one for each query.
    """
    query = query or df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not query:
        raise ValueError("write needs the name of its query: outside of a streaming query say query=...")
    missing = {"value"} - set(df.columns)
    if missing:
        raise ValueError(f"write needs a column value; there are {', '.join(df.columns)}")
    order = _order(df, options)
    topics = [options.topic] if options.topic is not None else _topics(df)
    choice = PartitionChoice(options.partitions, settings)
    if not topics:
        return Written(0, 0)
    with Admin(common_settings(settings)) as admin:
        place = marker_place(admin, settings, options.marker_topic)
        described = admin.describe_topics(topics)
        counts = {topic: len(described[topic].partitions) for topic in topics}
        counts, is_retried, read = _planned(place, query, batch_id, counts, options)
        if is_retried:
            # What died left transactions open, which hold back readers, and the markers of others.
            names = [MarkerName(query, topic, number) for topic in topics for number in range(counts[topic])]
            admin.fence_producers([name.transactional_id for name in names])
    options.on_step(PLANNED)
    known = read_markers(place, read, 2 * options.transactions.timeout_ms, lambda name: name.query == query)
    task = PartitionTask(place, query, batch_id, known, options.transactions, options.on_step)
    prepared = _prepared(df, options, counts, choice, order)
    report = prepared.mapInArrow(_ArrowTask(task), _REPORT).collect()
    check_whole(known, query, batch_id, counts, {(row["topic"], row["partition"]) for row in report})
    options.on_step(WRITTEN)
    return Written(sum(row["rows"] for row in report), sum(row["sent"] for row in report))


class _ArrowTask:
    """Spark looks at the attributes of functions, which a tuple has not."""

    def __init__(self, task: PartitionTask) -> None:
        self._task: Final = task

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return self._task(batches)


def _order(df: DataFrame, options: WriteOptions) -> list[str]:
    wanted: Sequence[str] = POSITION if options.order is None else options.order
    order = [name for name in wanted if options.order is not None or name in df.columns]
    unknown = set(order) - set(df.columns)
    if unknown:
        raise ValueError(f"rows cannot be sorted by {', '.join(sorted(unknown))}: no such column")
    if options.transactions.rows and "offset" not in order and options.order is None:
        raise ValueError("a limit of rows a transaction needs a column offset, or an order that tells all rows apart")
    return order


def _topics(df: DataFrame) -> list[str]:
    if "topic" not in df.columns:
        raise ValueError("write needs a topic: as an option, or as a column topic")
    found = [row[0] for row in df.select("topic").distinct().collect()]
    if None in found:
        raise ValueError("a row's column topic is null")
    return sorted(found)


def _planned(
    place: MarkerPlace, query: str, batch_id: int, counts: Mapping[str, int], options: WriteOptions
) -> tuple[dict[str, int], bool, MarkersRead]:
    """Among how many partitions this batch is shared out, whether somebody has begun it before, and what was read.

    Noted before its first row is sent: a topic may have more partitions by the time it is written again, and its rows
    have to go where they went.
    """
    name = MarkerName(query, options.topic or "*", PLAN)
    with MarkedProducer(place, name, Transactions(options.transactions.timeout_ms)) as producer:
        marker = producer.open(NOTHING_READ)
        if marker is not None and marker.batch_id > batch_id:
            raise stale(name, marker, batch_id)
        if marker is not None and marker.batch_id == batch_id:
            before = {str(topic): int(count) for topic, count in marker.details["partitions"].items()}
            return {topic: before.get(topic, count) for topic, count in counts.items()}, True, producer.read
        producer.begin()
        producer.commit(Marker(batch_id, details={"partitions": dict(counts)}))
    return dict(counts), False, producer.read


def _prepared(
    df: DataFrame, options: WriteOptions, counts: Mapping[str, int], choice: PartitionChoice, order: Sequence[str]
) -> DataFrame:
    """The rows with their target, brought together by it, and sorted."""
    key = df["key"].cast("binary") if "key" in df.columns else functions.lit(None).cast("binary")
    value = df["value"].cast("binary")
    source = df["partition"].cast("int") if "partition" in df.columns else functions.lit(None).cast("int")
    target = functions.lit(options.topic) if options.topic is not None else df["topic"]
    columns: list[Column] = [target.alias(TOPIC), key.alias("key"), value.alias("value")]
    if "timestamp" in df.columns:
        # One that a job has made of a text may be none: such a record's time is that of sending.
        columns.append(df["timestamp"].try_cast("timestamp").alias("timestamp"))
    if "headers" in df.columns:
        columns.append(df["headers"].cast(_HEADERS).alias("headers"))
    by = [f"_kavka_order_{number}" for number in range(len(order))]
    columns += [df[name].alias(alias) for name, alias in zip(order, by, strict=True)]
    # Its declared types want the kind of function named, at run time the function's own annotations do.
    typed: Callable[..., Callable[..., Column]] = arrow_udf
    chosen = typed(_chooser(choice, dict(counts)), "int")
    first = {}
    total = 0
    for topic in sorted(counts):
        first[topic] = total
        total += counts[topic]
    starts = functions.create_map(*[functions.lit(each) for pair in first.items() for each in pair])
    with_target = df.select(*columns, chosen(target, key, value, source).alias(PARTITION))
    with_id = with_target.withColumn(_ID, (starts[functions.col(TOPIC)] + functions.col(PARTITION)).cast("int"))
    together = with_id.repartitionById(total, _ID)
    return together.sortWithinPartitions(_ID, *by).drop(_ID, *by)


def _chooser(choice: PartitionChoice, counts: Mapping[str, int]) -> Callable[..., pyarrow.Array]:
    """For an Arrow function of Spark's: target topics, keys, values and source partitions to target partitions."""

    def choose(
        topics: pyarrow.Array, keys: pyarrow.Array, values: pyarrow.Array, sources: pyarrow.Array
    ) -> pyarrow.Array:
        if len(counts) == 1:
            return choice.partitions(next(iter(counts.values())), keys, values, sources)
        chosen = pyarrow.nulls(len(topics), pyarrow.int32())
        for topic, count in counts.items():
            here = pyarrow.compute.equal(topics, topic)
            found = choice.partitions(count, keys.filter(here), values.filter(here), sources.filter(here))
            chosen = pyarrow.compute.replace_with_mask(chosen, here, found)
        return chosen

    return choose
