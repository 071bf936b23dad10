"""A broker in its cluster of one: what the controller on its side decides reaches the parts that go by it."""

from pathlib import Path

import pytest

from kavka.broker.server import StartError
from kavka.cluster.controller.requests import FeatureUpdate, UpgradeType
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from tests.support.running_broker import RunningBroker


def test_a_broker_goes_by_the_features_that_are_agreed_on_and_a_restart_raises_none(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        services = running.broker.services
        assert services.features.levels == {"group.version": 1, "transaction.version": 2}
        updates = [
            FeatureUpdate("transaction.version", 1, UpgradeType.SAFE_DOWNGRADE),
            FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE),
        ]
        outcomes = services.controller.update_features(updates).result(30)
        assert outcomes == {"transaction.version": None, "group.version": None}
        assert services.features.levels == {"transaction.version": 1}
        running.restart()
        assert running.broker.services.features.levels == {"transaction.version": 1}


def test_a_broker_that_lacks_what_is_agreed_on_does_not_start(tmp_path: Path) -> None:
    registry = EmbeddedRegistry(tmp_path / FILE_NAME, lambda: 1)
    registry.create(FEATURE_PATH, FeatureLevels({"transaction.version": 9}).encode())
    registry.close()

    with pytest.raises(StartError, match=r"agreed on level 9 of transaction\.version"):
        RunningBroker(tmp_path).start()
