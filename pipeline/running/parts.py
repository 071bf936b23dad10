"""The parts that a job file names, found and checked without Spark: sinks, the schema's decoder, functions."""

import ast
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kavka.pipeline.running.job_file import BOOTSTRAP, DEAD_LETTERS_NAME, Job, SinkTable
from kavka.pipeline.running.sink import DEAD_LETTERS, DECODER, FACTORIES, Decoder, DecoderFactory, Factory, Sink, named
from kavka.pipeline.running.tables import SettingError, meant
from kavka.pipeline.secret_references import SecretError, check_secret

EXTRA: Final = "pip install 'kavka[pipeline]'"
_PATHS: Final = frozenset({"path", "lake", "directory", "schema_file", "ca_file", "cert_file", "key_file"})
"""Settings of sinks and schemas that are paths: a relative one is meant from the job file's folder."""


class MissingExtraError(Exception):
    """A package of the extra is not installed."""


@dataclass(frozen=True)
class Parts:
    """What a job is made of."""

    sinks: tuple[tuple[SinkTable, Sink, Decoder | None], ...]
    """With that for dead letters, at the end; settings have absolute paths. A decoder belongs to one query."""


def load_parts(job: Job, folder: Path | None = None) -> Parts:
    """Make all that the file names, without a look at brokers or lakes.

    Relative paths are meant from `folder` on, by default the file's. Raises JobFileError, MissingExtraError.
    """
    folder = job.folder if folder is None else folder
    try:
        _check_references(job)
        _check_source(job)
        for transform in job.transforms:
            if transform.function is not None:
                _look_for(job, f"{transform.key}.function", transform.function)
        if job.source.embedded is not None:
            _look_for(job, "source.embedded.fill", job.source.embedded.fill)
        tables = [*job.sinks, *([job.dead_letters] if job.dead_letters is not None else [])]
        found = [replace(table, settings=absolute(folder, table.settings)) for table in tables]
        return Parts(tuple((table, _sink(table), _decoder(folder, job.schema)) for table in found))
    except SettingError as error:
        raise job.complaint(error) from None
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("kavka"):
            raise
        raise MissingExtraError(f"{error.name} is not installed: {EXTRA}") from None


def absolute(folder: Path, settings: Mapping[str, object]) -> dict[str, object]:
    """The settings, with relative paths from the folder on."""
    return {key: _absolute(folder, key, value) for key, value in settings.items()}


def _absolute(folder: Path, key: str, value: object) -> object:
    if isinstance(value, Mapping):
        return absolute(folder, value)
    if key not in _PATHS or not isinstance(value, str) or "://" in value or value.startswith("${"):
        return value
    return str(folder / value)


def open_python_path(job: Job) -> None:
    """Let the job's own modules be imported."""
    for folder in job.python_path:
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def _sink(table: SinkTable) -> Sink:
    make: Factory = named(DEAD_LETTERS if table.kind == DEAD_LETTERS_NAME else FACTORIES[table.kind])
    try:
        return make(table.settings)
    except SettingError as error:
        raise SettingError(f"{table.key}.{error.key}" if error.key else table.key, error.problem) from None


def _decoder(folder: Path, settings: Mapping[str, object] | None) -> Decoder | None:
    if settings is None:
        return None
    make: DecoderFactory = named(DECODER)
    try:
        return make(absolute(folder, settings))
    except SettingError as error:
        raise SettingError(f"schema.{error.key}" if error.key else "schema", error.problem) from None


def _check_references(job: Job) -> None:
    """Each reference is well-formed; whether it leads anywhere shows when it is needed. Secrets are references."""
    places: list[tuple[str, object]] = [("source", job.source.options), ("spark.conf", job.conf)]
    for table in job.sinks:
        if "${" in str(table.settings.get("path", "")):
            raise SettingError(f"{table.key}.path", "is a folder's name as it stands: references are for secrets")
        places.append((table.key, table.settings))
    places += [("schema", job.schema or {}), ("dead_letters", job.dead_letters.settings if job.dead_letters else {})]
    for key, value in places:
        _check_value(key, value)


def _check_value(key: str, value: object) -> None:
    if key.startswith("schema.") and key.endswith(".fields"):
        return
    if isinstance(value, Mapping):
        for name, each in value.items():
            _check_value(f"{key}.{name}", each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_value(f"{key}[{number}]", each)
    else:
        try:
            check_secret(key, value)
        except SecretError as error:
            raise SettingError(key, str(error)) from None


def _check_source(job: Job) -> None:
    """As the data source will see it; Spark's own connector says itself what it does not like."""
    if job.source.format != "kavka":
        return
    from kavka.pipeline.source.errors import OptionError
    from kavka.pipeline.source.read_options import read_options

    given = {name.lower(): value for name, value in job.source.options.items()}
    if job.source.embedded is not None:
        given[BOOTSTRAP] = "localhost:9092"
    try:
        read_options(given, streaming=True)
    except OptionError as error:
        raise SettingError("source", str(error)) from None


def _look_for(job: Job, key: str, place: str) -> None:
    """Whether there is such a function, from the file's text: importing it would load Spark."""
    module, parted, name = place.partition(":")
    if not parted or not module or not name:
        raise SettingError(key, f"{place!r} is no 'module:function'")
    open_python_path(job)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        folders = ", ".join(map(str, job.python_path))
        raise SettingError(key, f"there is no module {module} in {folders} (job.python_path)")
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise SettingError(key, f"{spec.origin}: {error}") from None
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in names:
        raise SettingError(key, f"{spec.origin} has no function {name}{meant(name, names)}")
