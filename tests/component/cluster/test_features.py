"""The features that a cluster agrees on."""

from pathlib import Path

import pytest

from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.features import finalize
from kavka.cluster.registry.embedded import EmbeddedRegistry
from kavka.cluster.znodes.feature import FEATURE_PATH
from tests.support.controller_stage import Clock


def registry_in(path: Path) -> EmbeddedRegistry:
    registry = EmbeddedRegistry(path / "registry", Clock())
    prepare_tree(registry)
    return registry


def test_a_new_cluster_agrees_on_all_that_its_first_broker_can(tmp_path: Path) -> None:
    registry = registry_in(tmp_path)

    first, again = finalize(registry), finalize(registry)
    data = registry.get(FEATURE_PATH)[0]
    registry.close()

    assert first == again
    assert (first.level("transaction.version"), first.level("group.version"), first.epoch) == (2, 1, 0)
    assert data == b'{"features":{"group.version":1,"transaction.version":2},"version":2,"status":1}'


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (b'{"features":{},"version":2,"status":1}', {"group.version": 1, "transaction.version": 2}),
        (b'{"features":{"transaction.version":0,"x":3},"version":2,"status":1}', {"transaction.version": 0, "x": 3}),
        (
            b'{"features":{"group.version":{"min_version_level":1,"max_version_level":1}},"version":1,"status":1}',
            {"group.version": 1},
        ),
    ],
)
def test_what_was_agreed_before_is_kept_and_what_was_not_is_agreed_on_now(
    tmp_path: Path, found: bytes, expected: dict[str, int]
) -> None:
    registry = registry_in(tmp_path)
    registry.create(FEATURE_PATH, found)

    agreed = finalize(registry)
    registry.close()

    assert agreed.epoch == 1
    assert agreed.levels == {"group.version": 1, "transaction.version": 2} | expected
