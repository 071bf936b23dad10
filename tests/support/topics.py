"""Topics made by librdkafka's admin client, for tests whose subject is something else."""

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.server import RunningServer

TIMEOUT_S = 60.0


def create_topic(
    broker: RunningServer, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    """Create it and wait for the broker's answer. Raises KafkaException when it is refused."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    admin.create_topics([new], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)
