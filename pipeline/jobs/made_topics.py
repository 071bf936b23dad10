"""Topics that a job writes to, made where they are not there."""

import contextlib
from collections.abc import Mapping

from kavka.client import Admin, NewTopic
from kavka.client.api_errors import TopicExistsError


def make_topic(admin: Admin, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
    """-1 partitions: as many as the broker's default. Raises KafkaError."""
    if topic in admin.list_topics():
        return
    # Another one may be quicker.
    with contextlib.suppress(TopicExistsError):
        admin.create_topics([NewTopic(topic, partitions, -1, dict(configs))])
