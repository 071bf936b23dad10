"""What the brokers know of the partitions that a job reads: which there are, and where they end."""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kavka.pipeline.running.job_file import BOOTSTRAP
from kavka.pipeline.running.sink import Offsets
from kavka.pipeline.running.source_options import client_settings, reading_options
from kavka.pipeline.secret_references import resolved_settings

if TYPE_CHECKING:
    from kavka.client import Consumer
    from kavka.pipeline.source.log_bounds import LogBounds
    from kavka.pipeline.source.read_options import ReadOptions

_TIMEOUT_MS: Final = 5_000

log = logging.getLogger(__name__)


class Positions:
    """A consumer that only asks; nothing where the source names no brokers. Owned by one thread at a time.

    Raises SecretError where it is made, ConfigError for settings that no client takes.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options: Final = options
        self._consumer: Consumer | None = None
        settings = client_settings(options)
        if BOOTSTRAP in settings:
            from kavka.client import Consumer as Made

            chosen = {name: value for name, value in settings.items() if name not in {"group.id", "isolation.level"}}
            timeout = {"default.api.timeout.ms": str(_TIMEOUT_MS), "request.timeout.ms": str(_TIMEOUT_MS)}
            # A stable end: what a reader of committed records can come to.
            isolation = {"isolation.level": settings.get("isolation.level", "read_committed")}
            self._consumer = Made(resolved_settings({**timeout, **chosen, **isolation}))

    def lag(self, offsets: Mapping[str, Mapping[str, int]]) -> int | None:
        """Records from there to the ends; None while nobody can tell."""
        from kavka.client import TopicPartition
        from kavka.client.kafka_error import KafkaError

        if self._consumer is None or not offsets:
            return None
        at = {TopicPartition(topic, int(n)): offset for topic, found in offsets.items() for n, offset in found.items()}
        try:
            ends = self._consumer.end_offsets(list(at))
        except KafkaError as error:
            log.debug("the lag is not known: %s", error)
            return None
        return sum(max(ends[partition] - offset, 0) for partition, offset in at.items())

    def close(self) -> None:
        """May be called twice."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def starting(
    options: Mapping[str, str], known: Offsets, opened: "Callable[[ReadOptions], LogBounds] | None" = None
) -> str:
    """As `startingOffsets`, for each partition that is read: what is known of it, else what the options say.

    `options` are the source's. Asks brokers, or looks into the files of `path`. Raises OptionError, SecretError,
    KafkaError, OSError.
    """
    from kavka.client import TopicPartition
    from kavka.pipeline.source.choices import Kind, resolved
    from kavka.pipeline.source.logs import log_bounds
    from kavka.pipeline.source.offsets import nested
    from kavka.pipeline.source.read_options import read_options

    checked = read_options(resolved_settings(reading_options(options)), streaming=True)
    with closing((opened or log_bounds)(checked)) as bounds:
        partitions = bounds.partitions(checked.subscription)
        at = {TopicPartition(topic, n): offset for topic, found in known.items() for n, offset in found.items()}
        found = {each: at[each] for each in partitions if each in at}
        others = [each for each in partitions if each not in at]
        choice = checked.starting
        if choice.kind in (Kind.OFFSETS, Kind.TIMES):
            choice = replace(choice, numbers={each: n for each, n in choice.numbers.items() if each not in at})
        return json.dumps(nested({**found, **(resolved(choice, others, bounds) if others else {})}))
