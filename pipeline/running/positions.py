"""What the brokers know of the partitions that a job reads: which there are, and where they end."""

import json
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kavka.pipeline.running.job_file import BOOTSTRAP
from kavka.pipeline.running.sink import Offsets
from kavka.pipeline.running.source_options import client_settings
from kavka.pipeline.secret_references import resolved_settings

if TYPE_CHECKING:
    from kavka.client import Consumer

EARLIEST: Final = -2
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

    def starting(self, known: Offsets) -> str:
        """As `startingOffsets`: what is known of each partition, and the beginning of each other one that is read.

        Raises KafkaError.
        """
        found: dict[str, dict[str, int]] = {}
        if self._consumer is not None:
            for topic in self._topics(self._consumer):
                numbers = self._consumer.partitions_for(topic)
                found[topic] = {str(n): known.get(topic, {}).get(n, EARLIEST) for n in sorted(numbers)}
        return json.dumps(found)

    def close(self) -> None:
        """May be called twice."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _topics(self, consumer: "Consumer") -> list[str]:
        given = {name.lower(): value for name, value in self._options.items()}
        if "subscribe" in given:
            return [topic.strip() for topic in given["subscribe"].split(",")]
        if "assign" in given:
            assigned: dict[str, Any] = json.loads(given["assign"])
            return list(assigned)
        pattern = re.compile(given.get("subscribepattern", ""))
        return [topic for topic in consumer.list_topics() if pattern.fullmatch(topic)]
