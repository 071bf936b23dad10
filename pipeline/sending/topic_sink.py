"""The sink `topic` of a job: its rows to a topic, exactly once.

[[sinks]]
kind = "topic"
topic = "visits-by-site"
key = "site"                      # a column; without one the column key, if there is one
json = ["site", "ip"]             # columns that make up the value; without them the column value
partitions = "key"                # or "source": each row keeps its partition's number
transaction_timeout = "1m"        # a transaction holds back readers of committed records for so long at most
transaction_rows = 0              # so many rows a transaction; 0: all of a batch and partition
client = { "compression.type" = "lz4", "bootstrap.servers" = "elsewhere:9092" }
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, functions

from kavka.client.api_errors import KafkaError
from kavka.pipeline.running.sink import RunContext, Sink, SinkError
from kavka.pipeline.running.tables import SettingError, Table
from kavka.pipeline.sending.marked_producer import TRANSACTION_TIMEOUT_MS, Transactions
from kavka.pipeline.sending.markers import MARKER_TOPIC
from kavka.pipeline.sending.target_partitions import BY_KEY, WAYS, PartitionChoice
from kavka.pipeline.sending.writing import WriteOptions, write


class TopicSink:
    """See the head of the module. Threads: one."""

    def __init__(self, table: Table) -> None:
        """Raises SettingError."""
        self._key: Final = table.optional_text("key")
        self._json: Final = table.texts("json", ())
        self._options: Final = options_of(table, table.text("topic"))
        self._client: Final = table.table("client").flat()
        try:
            PartitionChoice(self._options.partitions, self._client)
        except ValueError as error:
            raise SettingError("client", str(error)) from None
        self._run: RunContext | None = None

    def open(self, run: RunContext) -> None:
        """Nothing is opened before the first batch."""
        self._run = run

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Send a batch. Raises SinkError."""
        run = self._run
        assert run is not None, "write comes after open"
        if self._json:
            fields = functions.struct(*[functions.col(name) for name in self._json])
            batch = batch.withColumn("value", functions.to_json(fields))
        if self._key is not None:
            batch = batch.withColumn("key", functions.col(self._key).cast("string").cast("binary"))
        try:
            settings = {**run.client_settings, **self._client}
            written = write(batch, batch_id, settings, query=run.query_id, options=self._options)
        except (KafkaError, ValueError) as error:
            raise SinkError(f"{run.name}: {error}") from error
        run.report.add("rows_out", written.sent)

    def close(self) -> None:
        """Nothing is open between batches."""


def options_of(table: Table, topic: str | None) -> WriteOptions:
    """What a table of a job says of how rows are sent. Raises SettingError."""
    transactions = Transactions(
        table.duration_ms("transaction_timeout", TRANSACTION_TIMEOUT_MS), table.number("transaction_rows", 0)
    )
    return WriteOptions(
        topic=topic,
        partitions=table.choice("partitions", WAYS, BY_KEY),
        transactions=transactions,
        marker_topic=table.text("marker_topic", MARKER_TOPIC),
    )


def sink(settings: Mapping[str, object]) -> Sink:
    """The sink that a table of a job file describes. Raises SettingError."""
    table = Table(settings)
    made = TopicSink(table)
    table.close()
    return made
