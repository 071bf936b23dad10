"""Interceptors: code that sees each record on its way, and whose errors stop nothing."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kavka.client.serialization import close_quietly, named_object
from kavka.config.errors import ConfigError

log = logging.getLogger(__name__)


class ProducerRecord(NamedTuple):
    """A record as it was given to `send`, before serializers and partitioner. Immutable: `_replace` makes another.

    print(ProducerRecord("visits", b"/start")._replace(key=b"192.168.14.7"))
    """

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] | Mapping[str, bytes | None] = ()
    partition_key: Any = None


class ProducerInterceptor:
    """Sees records before they are sent, and what became of them; derive from it, and override what is of interest.

        class Counting(ProducerInterceptor):
            def on_acknowledgement(self, metadata, error):
                print(metadata.topic, "failed" if error else metadata.offset)

    What it raises is logged, and the chain goes on as if it had not been there.
    """

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Called once, with all settings as they were given."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to go on with. On the thread that sends, before serializers and partitioner."""
        return record

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """The record lies there, or was not delivered. Before its callback; on the client's thread, so be quick."""

    def close(self) -> None:
        """The producer is closed."""


class Interceptors:
    """A chain of interceptors, in the order of the setting. Immutable; called by any thread."""

    def __init__(self, chain: Iterable[Any]) -> None:
        self.chain: Final = tuple(chain)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record as the last one leaves it; one that fails leaves it as it was."""
        for interceptor in self.chain:
            try:
                changed = interceptor.on_send(record)
                if changed is None:
                    raise TypeError("on_send has to give back a record")
                record = changed
            except Exception:
                log.exception("an interceptor failed method=on_send topic='%s'", record.topic)
        return record

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """Tell all what became of a record."""
        for interceptor in self.chain:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except BaseException:
                log.exception("an interceptor failed method=on_acknowledgement topic='%s'", metadata.topic)

    def on_consume(self, records: Any) -> Any:
        """The records as the last one leaves them; one that fails leaves them as they were."""
        for interceptor in self.chain:
            try:
                changed = interceptor.on_consume(records)
                if changed is None:
                    raise TypeError("on_consume has to give back records")
                records = changed
            except Exception:
                log.exception("an interceptor failed method=on_consume")
        return records

    def on_commit(self, offsets: Any) -> None:
        """Tell all what was committed."""
        for interceptor in self.chain:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                log.exception("an interceptor failed method=on_commit")

    def close(self) -> None:
        """Close all of them."""
        for interceptor in self.chain:
            close_quietly(interceptor)


def interceptors_of(setting: Any, settings: Mapping[str, Any]) -> Interceptors | None:
    """What `interceptor.classes` says: classes, objects or dotted names, made and configured; None for none.

    Raises ConfigError.
    """
    if isinstance(setting, str):
        setting = [name.strip() for name in setting.split(",") if name.strip()]
    chain = []
    for each in setting or ():
        if isinstance(each, str):
            try:
                each = named_object(each)
            except ImportError as error:
                raise ConfigError("interceptor.classes", each, f"Class {each} could not be found: {error}") from None
        made = each() if isinstance(each, type) else each
        if hasattr(made, "configure"):
            made.configure(settings)
        chain.append(made)
    return Interceptors(chain) if chain else None
