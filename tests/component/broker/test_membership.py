"""A broker in its cluster of one: what the controller on its side decides reaches the parts that go by it."""

from pathlib import Path

import pytest

from kavka.broker.server import StartError
from kavka.cluster.controller.requests import FeatureUpdate, UpgradeType
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from tests.support.processes import wait_until
from tests.support.running_broker import RunningBroker


def test_a_broker_goes_by_the_features_that_are_agreed_on_and_a_restart_raises_none(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        services = running.broker.services
        assert services.features.levels == {"group.version": 1, "transaction.version": 2}
        updates = [
            FeatureUpdate("transaction.version", 1, UpgradeType.SAFE_DOWNGRADE),
            FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE),
        ]
        services.controller.update_features(updates).result(30)
        assert services.features.levels == {"transaction.version": 1}
        running.restart()
        assert running.broker.services.features.levels == {"transaction.version": 1}


def test_a_broker_that_lacks_what_is_agreed_on_does_not_start(tmp_path: Path) -> None:
    registry = EmbeddedRegistry(tmp_path / FILE_NAME, lambda: 1)
    registry.create(FEATURE_PATH, FeatureLevels({"transaction.version": 9}).encode())
    registry.close()

    with pytest.raises(StartError, match=r"agreed on level 9 of transaction\.version"):
        RunningBroker(tmp_path).start()


def test_features_that_cannot_be_read_are_not_used_and_keep_no_broker_from_starting(tmp_path: Path) -> None:
    registry = EmbeddedRegistry(tmp_path / FILE_NAME, lambda: 1)
    registry.create(FEATURE_PATH, b"spoilt")
    registry.close()
    with RunningBroker(tmp_path) as running:
        running.errors.expect("/feature cannot be read")
        assert running.broker.services.features.levels == {}


def test_a_broker_goes_when_the_cluster_agrees_on_what_it_lacks(tmp_path: Path) -> None:
    """As Kafka's does: the controller had no reason to ask a broker whose session had just ended."""
    with RunningBroker(tmp_path) as running:
        services = running.broker.services
        services.registry.set(FEATURE_PATH, FeatureLevels({"transaction.version": 9}).encode())
        wait_until(lambda: running.broker.fatal_reason is not None, 60, "it goes on")
        assert "level 9 of transaction.version" in str(running.broker.fatal_reason)
        assert services.features.levels == {"group.version": 1, "transaction.version": 2}
