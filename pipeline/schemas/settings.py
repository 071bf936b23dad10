"""The settings of a schema stage, checked without Spark, a registry or any decoder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kavka.pipeline.running.tables import SettingError, Table

FORMATS: Final = ("json", "avro", "protobuf")
CHANGES: Final = ("evolve", "fail", "ignore")
UNKNOWN_IDS: Final = ("wait", "dead_letters")


@dataclass(frozen=True)
class RegistrySettings:
    """Where schemas are asked for: either `url` (http or https) or `directory` is set."""

    url: str | None = None
    directory: str | None = None
    username: str | None = None
    """User and password may be references to secrets."""
    password: str | None = None
    ca_file: str | None = None
    """Certificates in PEM that sign the registry's; the system's without it."""
    cert_file: str | None = None
    key_file: str | None = None
    timeout_ms: int = 10_000
    """For one request, and for each wait within it."""
    max_bytes: int = 4 << 20
    """A longer answer counts as none."""


@dataclass(frozen=True)
class ValueSettings:
    """How the column `column` (`value` or `key`) is to be decoded."""

    column: str
    format: str
    on_change: str
    fields: Mapping[str, object] | str | None = None
    required: tuple[str, ...] = ()
    schema: str | None = None
    """The reader's schema as text; without it, the subject's."""
    message: str | None = None
    """Which Protobuf message; the schema's first without it."""
    subject: str | None = None
    version: int | str = "latest"
    unknown_ids: str = "wait"
    into: str | None = None
    """The column that the whole value becomes; without it, a record's fields are columns of their own."""


@dataclass(frozen=True)
class SchemaSettings:
    """What of each row is decoded, and where the schemas come from."""

    columns: tuple[ValueSettings, ...]
    registry: RegistrySettings | None


def schema_settings(settings: Mapping[str, object]) -> SchemaSettings:
    """The settings in the table `[schema]` of a job file: the value's, `key` for the key's, and `registry`.

    Raises SettingError for what is unknown, missing or contradicts itself; reads `schema_file`, nothing else.
    """
    table = Table(settings)
    registry = _registry(table.table("registry")) if table.has("registry") else None
    columns = []
    if table.has("format") or not table.has("key"):
        columns.append(_value(table, "value"))
    if table.has("key"):
        key = table.table("key")
        columns.append(_value(key, "key"))
        key.close()
    table.close()
    if registry is None and any(column.format != "json" for column in columns):
        raise table.wrong("registry", "is missing: set its url, or its directory")
    return SchemaSettings(tuple(columns), registry)


def _value(table: Table, column: str) -> ValueSettings:
    kind = table.choice("format", FORMATS)
    change = table.choice("on_change", CHANGES, "ignore" if kind == "json" else "fail")
    into = table.text("into") if table.has("into") else ("key" if column == "key" else None)
    if kind == "json":
        return ValueSettings(
            column, kind, change, fields=_fields(table), required=tuple(table.texts("required", ())), into=into
        )
    schema, subject = _schema_text(table), table.optional_text("subject")
    version = _version(table)
    if schema is None and subject is None:
        raise table.wrong("subject", "is missing: name it, or give a schema or schema_file")
    if change == "evolve" and subject is None:
        raise table.wrong("subject", "is missing: on_change = evolve follows a subject in the registry")
    if change == "evolve" and version != "latest":
        raise table.wrong("version", "has to be latest where on_change is evolve")
    message = table.optional_text("message") if kind == "protobuf" else None
    unknown_ids = table.choice("unknown_ids", UNKNOWN_IDS, "wait")
    return ValueSettings(
        column,
        kind,
        change,
        schema=schema,
        message=message,
        subject=subject,
        version=version,
        unknown_ids=unknown_ids,
        into=into,
    )


def _fields(table: Table) -> str | dict[str, str]:
    if not table.has("fields"):
        raise table.wrong("fields", "is missing: declare them, as in 'site string, at timestamp'")
    try:
        return table.table("fields").flat()
    except SettingError:
        return table.text("fields")


def _version(table: Table) -> int | str:
    try:
        return table.number("version", least=1)
    except SettingError:
        return table.choice("version", ("latest",), "latest")


def _schema_text(table: Table) -> str | None:
    text, file = table.optional_text("schema"), table.optional_text("schema_file")
    if file is None:
        return text
    if text is not None:
        raise table.wrong("schema_file", "stands beside schema: leave one out")
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise table.wrong("schema_file", f"cannot be read: {error}") from error


def _registry(table: Table) -> RegistrySettings:
    url, directory = table.optional_text("url"), table.optional_text("directory")
    if (url is None) == (directory is None):
        raise table.wrong("url", "or directory is needed, and not both")
    if url is not None:
        _check_url(url, table)
    username, password = table.optional_text("username"), table.optional_text("password")
    if (username is None) != (password is None):
        raise table.wrong("username", "and password go together")
    made = RegistrySettings(
        url,
        directory,
        username,
        password,
        ca_file=table.optional_text("ca_file"),
        cert_file=table.optional_text("cert_file"),
        key_file=table.optional_text("key_file"),
        timeout_ms=table.number("timeout_ms", 10_000, least=1, most=3_600_000),
        max_bytes=table.number("max_bytes", 4 << 20, least=1, most=1 << 30),
    )
    table.close()
    return made


def _check_url(url: str, table: Table) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise table.wrong("url", "is no http://HOST[:PORT][/PATH] or https://...")
    if parts.username is not None or parts.password is not None:
        raise table.wrong("url", "holds a password: set username and password")
    if parts.query or parts.fragment:
        raise table.wrong("url", "has to end before ? and #")
