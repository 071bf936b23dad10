"""What a job's rows go to: one streaming query a sink, each with a checkpoint of its own.

A sink's module has a factory that takes the settings of its table in the job file, without `kind` and `name`, and
checks them without Spark:

    def sink(settings: Mapping[str, object]) -> Sink:
        table = Table(settings)             # kavka.pipeline.running.tables; raises SettingError
        made = ArchiveSink(table.text("path"))
        table.close()                       # what is left over is an unknown key
        return made

Settings may hold references to secrets (`${env:NAME}`): `kavka.pipeline.secret_references.resolved` at the last moment.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kavka.pipeline.running.decided_ids import DecidedIds

FACTORIES: Final = {
    "archive": "kavka.pipeline.lake.archive:sink",
    "aggregate": "kavka.pipeline.jobs.aggregate:sink",
    "join": "kavka.pipeline.jobs.join:sink",
    "topic": "kavka.pipeline.sending.topic_sink:sink",
}
"""By `kind` in [[sinks]]: module and factory."""
DEAD_LETTERS: Final = "kavka.pipeline.jobs.dead_letters:sink"
"""The factory for [dead_letters]: a sink whose batches are the rows that could not be decoded."""
DECODER: Final = "kavka.pipeline.schemas.decoding:decoder"
"""The factory for [schema]."""

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""By topic and partition."""


class Report(Protocol):
    """What a sink tells while it works. Any thread."""

    def add(self, counter: str, amount: int) -> None:
        """Count: `rows_out`, `bytes_out`, `files`, `late_rows`, `dead_letters`, or a word of the sink's own.

        It is shown as `kavka_pipeline_COUNTER_total` with the sink's name, and in the state of the run.
        """

    def note(self, text: str) -> None:
        """Say on one line what people should know now: that the sink waits for something, and for what."""


@dataclass(frozen=True)
class RunContext:
    """What a sink is given before its first batch."""

    spark: "SparkSession"
    job: str
    name: str
    """The sink's, unique in the job."""
    query_id: str
    """Spark's id of the streaming query: the same after a restart, another one with a new checkpoint."""
    checkpoint: Path
    """The query's own folder, as Spark writes it."""
    directory: Path
    """A folder for the sink's own notes; there, and kept as long as the checkpoint is."""
    client_settings: Mapping[str, str]
    """The source's brokers, for a client: `bootstrap.servers`, `security.protocol` ... References are not resolved."""
    source: Mapping[str, str]
    """The options of the job's source, as the data source takes them. References are not resolved."""
    report: Report


class Sink(Protocol):
    """Where rows go. All calls come from one thread at a time.

    `write` may be called again for a batch id that it has seen, and must come to the same: whoever is stopped between
    the sink's work and Spark's note of it has the batch come again, with the same rows, in the next run.
    """

    def open(self, run: RunContext) -> None:
        """Before the first batch: locks, recovery. Raises SinkError for what the user has to see to."""

    def write(self, batch: "DataFrame", batch_id: int) -> None:
        """The rows of one batch, decoded and transformed, not streaming. What it raises ends the run."""

    def close(self) -> None:
        """After the last batch, in order or not. May be called without `open`, and twice."""


@runtime_checkable
class Resuming(Protocol):
    """A sink that knows by itself how far it has come, so that a lost checkpoint does no harm."""

    def starting_offsets(self) -> Offsets | None:
        """Called after `open` where the query has no checkpoint: where it is to begin; None: as the source says."""


class Decoder(Protocol):
    """What [schema] stands for: made by `kavka.pipeline.schemas.decoding:decoder(settings)`, one for each query."""

    def decode(self, rows: "DataFrame") -> "tuple[DataFrame, DataFrame]":
        """Rows with their values' fields as columns, and rows that cannot be decoded, with reason and source position.

        `rows` are a batch as the source gives it, with key, value, topic, partition, offset, timestamp. Raises
        SinkError. Waits while a registry cannot be asked.
        """

    def report_to(self, report: Report) -> None:
        """Where to count, and to say what is waited for. Before the first batch."""

    def decide_by(self, decided: "DecidedIds") -> None:
        """Where decisions are kept that are the same for all queries of a job. Before the first batch."""

    def release(self) -> None:
        """Let go of what the last batch kept."""

    def close(self) -> None:
        """End a wait, which raises GaveUpError. Any thread."""


class SinkError(Exception):
    """A sink cannot go on, and one line says why, and what to do."""


class GaveUpError(SinkError):
    """A wait was ended, as the run is to stop: the batch comes again in the next run."""


Factory: TypeAlias = Callable[[Mapping[str, object]], Sink]
DecoderFactory: TypeAlias = Callable[[Mapping[str, object]], Decoder]


def named(place: str) -> Any:
    """What stands at `module:name`. Raises ImportError, AttributeError."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
