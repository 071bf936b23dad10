"""Topics whose stored settings cannot be read or used: the broker's own must not remove what they kept."""

from pathlib import Path

import pytest

from kavka.cluster.entity_configs import read_config
from kavka.cluster.znodes.config import EntityConfig
from kavka.config.topic_config import KEPT
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import TOPIC, RawClient

UNREADABLE_NODE = b'{"version":1,"config":{"retention.ms"'


@pytest.mark.parametrize(
    ("stored", "log_record", "left"),
    [
        (UNREADABLE_NODE, "the configuration is left out", {**KEPT, "retention.ms": "7"}),
        (EntityConfig.encode({"retention.ms": "-5"}), None, {"retention.ms": "7"}),
    ],
)
def test_records_are_kept_until_the_settings_are_set_rightly(
    tmp_path: Path, stored: bytes, log_record: str | None, left: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with RunningBroker(tmp_path, {"log.cleanup.policy": "compact,delete", "log.retention.ms": "5"}) as running:
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits", 1, cleanup_policy="delete", retention_ms="-1")
        running.broker.services.registry.set(EntityConfig.path("topics/visits"), stored)
        if log_record is not None:
            running.errors.expect(log_record)

        running.restart()

        services = running.broker.services
        assert services.config.topic_config("visits").retention_ms == -1
        if log_record is not None:
            assert not services.config.topic_config("visits").is_compacted
        assert "stored topic setting is not used topic=visits" in caplog.text

        with RawClient(HOST, running.port) as client:
            answer = client.alter(TOPIC, "visits", [("retention.ms", "7")])
        assert answer.error_code == 0, answer.error_message
        assert services.config.topic_config("visits").retention_ms == 7
        assert read_config(services.registry, "topics/visits") == left
