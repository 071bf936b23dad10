"""Options of writing, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kavka.config.clients.producer import producer_settings
from kavka.config.errors import ConfigError
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.option_values import check_names, client_error, client_settings

_KNOWN: Final = ("topic", "includeHeaders", "checkpointLocation", "queryName")
"""The last two are Spark's own, which it gives to every sink; headers are written wherever there is such a column."""
_REFUSED: Final = {
    "key.serializer": "keys are bytes or text; columns of a DataFrame make them",
    "value.serializer": "values are bytes or text; columns of a DataFrame make them",
    "transactional.id": "this way of writing is at least once; kavka.pipeline.write is the one in transactions",
}


@dataclass(frozen=True)
class WriteOptions:
    """Immutable; goes to executors by pickle."""

    client: Mapping[str, Any]
    """A producer's settings by Kafka's names."""
    topic: str | None
    """Where all rows go, whatever a column says; None: where their column `topic` says."""


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """`options` by their names in lower case, as Spark gives them. Raises OptionError."""
    check_names(options, _KNOWN, "writing")
    client = client_settings(options, _REFUSED)
    if not client.get("bootstrap.servers"):
        raise OptionError("kafka.bootstrap.servers is to be given")
    try:
        producer_settings(client)
    except ConfigError as error:
        raise client_error(error) from None
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise OptionError("topic is empty")
    return WriteOptions(client, topic)
