"""Topics that a job writes to, made where they are not there."""

import contextlib
from collections.abc import Mapping
from typing import Final

from kavka.client import Admin, NewTopic
from kavka.client.api_errors import InvalidConfigurationError, TopicExistsError

_ANY_TIME: Final = {
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
"""What a job sends has times of records that another topic took, by its own settings or before there was a limit: by a
broker's limits for all topics one of them would end the job for good."""


def make_topic(admin: Admin, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
    """For records of any time. -1 partitions: as many as the broker's default. Raises KafkaError."""
    if topic in admin.list_topics():
        return
    try:
        _create(admin, topic, partitions, {**_ANY_TIME, **configs})
    except InvalidConfigurationError:
        # Brokers before 3.6 call these limits something else, and have none by default.
        _create(admin, topic, partitions, configs)


def _create(admin: Admin, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
    # Another one may be quicker.
    with contextlib.suppress(TopicExistsError):
        admin.create_topics([NewTopic(topic, partitions, -1, dict(configs))])
