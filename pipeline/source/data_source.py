"""The data source `kavka` of Spark's Python Data Source API.

Spark starts a process for each of its methods: each loads what it needs, and no more.
"""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.read_options import ReadOptions, check_columns, columns_of, read_options


class KavkaDataSource(DataSource):
    """Topics as rows, and rows to topics. Registers itself where `kavka` was installed; else, in any session,
    `spark.dataSource.register(KavkaDataSource)`.

        visits = spark.read.format("kavka").option("kafka.bootstrap.servers", "localhost:9092")
        visits = visits.option("subscribe", "visits").load()
        visits.selectExpr("CAST(value AS STRING)", "timestamp").show()

    Options go by the names that Spark's own Kafka source has for them, and mean the same: a query changes from one to
    the other, both ways and in mid-life, by its format's name. Their case does not matter.

    Where from
        kafka.bootstrap.servers      host:port,...; any other `kafka.NAME` is the consumer's setting NAME
                                     `bootstrap.servers`, `client.id`, `security.protocol`, `isolation.level`, `ssl.*`
                                     and `sasl.*` may do without `kafka.`
        subscribe                    topics: a,b
        subscribePattern             a regular expression that whole names match
        assign                       partitions: {"a":[0,1]}; one of the three is given
        path                         directories with logs, a,b: their segment files are read, and not the brokers asked
                                     for records. Every executor has to see them
        kafka.isolation.level        read_committed; read_uncommitted has aborted and open transactions' records too
    From where to where
        startingOffsets              earliest (batch), latest (stream), {"a":{"0":23,"1":-2}}: -2 earliest, -1 latest
        startingTimestamp            the first records since then, milliseconds since 1970; goes before startingOffsets
        startingOffsetsByTimestamp   {"a":{"0":1700000000000}}
        startingOffsetsByTimestampStrategy   error, or latest, where a partition has no record since then
        endingOffsets, endingTimestamp, endingOffsetsByTimestamp   the same for the end of a batch read; latest
    Streams
        maxOffsetsPerTrigger         about so many offsets a batch, each partition having its share
        minOffsetsPerTrigger         no batch before there are so many, but for the first and maxTriggerDelay (15m)
        maxBytesPerTrigger           about so many bytes of the logs a batch (64m), by their partitions' average record
    Tasks
        minPartitions                at least so many tasks: large ranges are cut
        maxRecordsPerPartition       no task has more offsets
        kafkaConsumer.pollTimeoutMs  a task fails that gets nothing for so long; 120000
    Rows
        columns                      which of key, value, topic, partition, offset, timestamp, timestampType, headers
        includeHeaders               false: whether headers are among the columns, without `columns`
        failOnDataLoss               true: records that are gone, by retention or with their topic, end the query
        pushdown                     false: whether filters on topic, partition, offset and timestamp narrow what a
                                     batch reads; needs spark.sql.python.filterPushdown.enabled=true
    Writing, at least once (exactly once: kavka.pipeline.write)
        topic                        where to; or a column says
        kafka.NAME                   the producer's setting NAME
        Columns: value, and key, topic, partition, timestamp, headers where there are such. A batch's mode is append.
    """

    @classmethod
    def name(cls) -> str:
        return "kavka"

    def schema(self) -> StructType:
        """The columns that are read. Raises OptionError."""
        return struct_type(columns_of(self._given()))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Raises OptionError."""
        from kavka.pipeline.source.batch_reader import FilteredBatchReader, KavkaBatchReader

        options = self._read_options(schema, streaming=False)
        return FilteredBatchReader(options) if options.pushes_down else KavkaBatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Raises OptionError."""
        from kavka.pipeline.source.stream_reader import KavkaStreamReader

        return KavkaStreamReader(self._read_options(schema, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Raises OptionError, RowError."""
        from kavka.pipeline.source.write_options import write_options
        from kavka.pipeline.source.writing import TopicWriter

        if overwrite:
            raise OptionError('a topic cannot be overwritten: write with mode("append")')
        return TopicWriter(write_options(self._given()), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's name
        """Every output mode appends: `overwrite`, which the mode `complete` asks for, changes nothing."""
        from kavka.pipeline.source.write_options import write_options
        from kavka.pipeline.source.writing import TopicStreamWriter

        return TopicStreamWriter(write_options(self._given()), schema)

    def _given(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self.options.items()}

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        """The columns are the schema's: a DataFrame's user may have given one of his own."""
        names = tuple(schema.fieldNames())
        check_columns(names)
        for field in schema.fields:
            if field.dataType != _TYPES[field.name]:
                raise OptionError(f"the column {field.name} is {_TYPES[field.name].simpleString()}, nothing else")
        return replace(read_options(self._given(), streaming=streaming), columns=names)


_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


def struct_type(columns: tuple[str, ...]) -> StructType:
    """The schema of rows with these columns, as Spark's own Kafka source has it."""
    return StructType([StructField(name, _TYPES[name]) for name in columns])
