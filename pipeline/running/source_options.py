"""A job's source as Spark's readers take it, and as Kavka's own clients do."""

from collections.abc import Mapping
from typing import Final

from kavka.pipeline.running.job_file import BOOTSTRAP, Source
from kavka.pipeline.secret_references import resolved_settings

_PREFIX: Final = "kafka."
_NO_CLIENTS: Final = ("fetchoffset.", "kafkaconsumer.")
"""Options with a dot that are the reader's own."""
_STARTING: Final = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp")
_WHAT: Final = ("assign", "subscribe", "subscribepattern", "path", "startingoffsetsbytimestampstrategy")


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """A client's settings, by Kafka's names. References stay."""
    return {name.removeprefix(_PREFIX): value for name, value in options.items() if _is_clients(name)}


def reader_options(source: Source) -> dict[str, str]:
    """What `spark.readStream` is given. Spark's own connector cannot resolve references: it gets what they stand for.

    Raises SecretError.
    """
    if source.format == "kavka":
        return dict(source.options)
    named = {
        f"{_PREFIX}{name.removeprefix(_PREFIX)}" if _is_clients(name) else name: value
        for name, value in source.options.items()
    }
    return resolved_settings(named)


def reading_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those that say what is read and from where on, by their names in lower case. References stay."""
    lower = {name.lower(): value for name, value in options.items()}
    return {name: value for name, value in lower.items() if _is_clients(name) or name in _WHAT or name in _STARTING}


def with_brokers(options: Mapping[str, str], bootstrap: str) -> dict[str, str]:
    """The same for other brokers."""
    return {**options, BOOTSTRAP: bootstrap}


def starting_at(options: Mapping[str, str], offsets: str) -> dict[str, str]:
    """The same from these offsets on, and from nowhere else."""
    kept = {name: value for name, value in options.items() if name.lower() not in _STARTING}
    return {**kept, "startingOffsets": offsets}


def _is_clients(name: str) -> bool:
    return name.startswith(_PREFIX) or ("." in name and not name.lower().startswith(_NO_CLIENTS))
