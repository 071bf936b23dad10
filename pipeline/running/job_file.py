"""A job file: what is read, what becomes of it, and where it goes (docs/pipeline.md). Read without Spark."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kavka.pipeline.running.places import OWN_NAMES
from kavka.pipeline.running.sink import FACTORIES
from kavka.pipeline.running.tables import SettingError, Table, meant

DEFAULT_MASTER: Final = "local[2]"
DEFAULT_EVERY_MS: Final = 10_000
MOST_BYTES: Final = 1024 * 1024
SECTIONS: Final = "job", "spark", "source", "schema", "transforms", "sinks", "dead_letters", "show", "metrics"
BOOTSTRAP: Final = "bootstrap.servers"
DEAD_LETTERS_NAME: Final = "dead_letters"
FORMATS: Final = "kavka", "kafka"


class JobFileError(Exception):
    """A job file cannot be used: one line with the file, the key and what is wrong."""


@dataclass(frozen=True)
class Embedded:
    """In place of brokers: one in this process, which goes with the run."""

    fill: str
    """`module:function`, called with its address before the job starts."""
    settings: Mapping[str, str]
    """The broker's."""


@dataclass(frozen=True)
class Source:
    """[source]: by which data source of Spark's, and its options. References to secrets are not resolved."""

    format: str
    options: Mapping[str, str]
    embedded: Embedded | None


@dataclass(frozen=True)
class Transform:
    """One of [[transforms]]: a function from DataFrame to DataFrame, or a query on the view `rows`."""

    key: str
    function: str | None
    sql: str | None


@dataclass(frozen=True)
class SinkTable:
    """One of [[sinks]], or [dead_letters]: `settings` are its own, unchecked."""

    key: str
    name: str
    kind: str
    settings: Mapping[str, object]


@dataclass(frozen=True)
class Show:
    """One of [[show]]: a query on the archives, by their sinks' names, when all is read."""

    title: str
    sql: str


@dataclass(frozen=True)
class Job:
    """What a file says. Paths are absolute; `checkpoint` is None where the source is embedded and none is given."""

    path: Path
    name: str
    checkpoint: Path | None
    every_ms: int
    python_path: tuple[Path, ...]
    master: str
    conf: Mapping[str, str]
    source: Source
    schema: Mapping[str, object] | None
    transforms: tuple[Transform, ...]
    sinks: tuple[SinkTable, ...]
    dead_letters: SinkTable | None
    shows: tuple[Show, ...]
    metrics_port: int | None
    metrics_host: str

    @property
    def folder(self) -> Path:
        """From where on relative paths in the file are meant, but for those of a job that keeps nothing."""
        return self.path.absolute().parent

    def complaint(self, error: SettingError) -> JobFileError:
        """The error with this file's name before it."""
        return JobFileError(f"{self.path}: {error}")


def read_job(path: Path) -> Job:
    """What the file says, as far as it shows without looking elsewhere. Raises JobFileError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise JobFileError(f"{path}: more than {MOST_BYTES} bytes are no job file")
        return _job(path, tomllib.loads(data.decode()))
    except OSError as error:
        raise JobFileError(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise JobFileError(f"{path}: its tables and lists are nested too deeply") from None
    except ValueError as error:
        # No text, no TOML, a number of thousands of digits, or a SettingError.
        raise JobFileError(f"{path}: {error}") from None


def _job(path: Path, document: Mapping[str, object]) -> Job:
    for key in document:
        if key not in SECTIONS:
            raise SettingError(key, f"is no section{meant(key, SECTIONS) or '; there are ' + ', '.join(SECTIONS)}")
    whole = Table(document)
    job, spark, metrics = whole.table("job"), whole.table("spark"), whole.table("metrics")
    folder = path.absolute().parent
    source = _source(whole)
    checkpoint = job.optional_text("checkpoint")
    if checkpoint is None and source.embedded is None:
        raise job.wrong("checkpoint", "is missing: a folder that keeps how far the job has come")
    schema = whole.table("schema").rest() if whole.has("schema") else None
    read = Job(
        path=path,
        name=job.text("name"),
        checkpoint=None if checkpoint is None else folder / _local(job, "checkpoint", checkpoint),
        every_ms=job.duration_ms("every", DEFAULT_EVERY_MS),
        python_path=tuple((folder / each).resolve() for each in job.texts("python_path", ["."])),
        master=spark.text("master", DEFAULT_MASTER),
        conf=spark.table("conf").flat(),
        source=source,
        schema=schema,
        transforms=tuple(_transform(each, number) for number, each in enumerate(whole.tables("transforms"))),
        sinks=_sinks(whole),
        dead_letters=_dead_letters(whole),
        shows=tuple(_show(each) for each in whole.tables("show")),
        metrics_port=metrics.number("port", most=65535) if metrics.has("port") else None,
        metrics_host=metrics.text("host", "127.0.0.1"),
    )
    for table in (job, spark, metrics):
        table.close()
    if read.schema is not None and read.dead_letters is None:
        raise SettingError("dead_letters", "is missing: with a [schema], rows that do not fit it have to go somewhere")
    if read.schema is None and read.dead_letters is not None:
        raise SettingError("dead_letters", "nothing would go there without a [schema]")
    return read


def _local(table: Table, key: str, text: str) -> str:
    if "://" in text:
        raise table.wrong(key, f"{text}: give a folder on this machine, or one that all of the cluster sees")
    return text


def _source(whole: Table) -> Source:
    if not whole.has("source"):
        raise SettingError("source", "is missing: [source] says which topics are read")
    table = whole.table("source")
    form = table.choice("format", FORMATS, "kavka")
    embedded = None
    if table.has("embedded"):
        inner = table.table("embedded")
        embedded = Embedded(inner.text("fill"), inner.table("settings").flat())
        inner.close()
    options = table.flat()
    address = options.get(BOOTSTRAP) or options.get(f"kafka.{BOOTSTRAP}")
    if address is not None:
        embedded = None
    elif embedded is None and "path" not in options:
        raise table.wrong(BOOTSTRAP, "is missing: the brokers to ask first, host:port")
    return Source(form, options, embedded)


def _transform(table: Table, number: int) -> Transform:
    made = Transform(f"transforms[{number}]", table.optional_text("function"), table.optional_text("sql"))
    table.close()
    if (made.function is None) == (made.sql is None):
        raise SettingError(made.key, "give either function = 'module:function', or sql = 'SELECT ... FROM rows'")
    return made


def _show(table: Table) -> Show:
    made = Show(table.text("title", "result"), table.text("sql"))
    table.close()
    return made


def _sinks(whole: Table) -> tuple[SinkTable, ...]:
    made: list[SinkTable] = []
    for number, table in enumerate(whole.tables("sinks")):
        kind = table.choice("kind", FACTORIES)
        name = table.text("name", kind)
        if not name.replace("-", "").replace("_", "").isalnum():
            raise table.wrong("name", f"{name!r}: letters, numbers, - and _ make a name")
        if name in OWN_NAMES:
            raise table.wrong("name", f"{name!r}: a file of the checkpoint's own has that name")
        if name in {DEAD_LETTERS_NAME, *(each.name for each in made)}:
            raise table.wrong("name", f"{name!r} is there already: each sink needs a name of its own")
        made.append(SinkTable(f"sinks[{number}]", name, kind, table.rest()))
    if not made:
        raise SettingError("sinks", "are missing: [[sinks]] say where the rows go")
    return tuple(made)


def _dead_letters(whole: Table) -> SinkTable | None:
    if not whole.has("dead_letters"):
        return None
    return SinkTable(DEAD_LETTERS_NAME, DEAD_LETTERS_NAME, DEAD_LETTERS_NAME, whole.table("dead_letters").rest())
