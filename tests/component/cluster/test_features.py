"""The features that a cluster agrees on, as a broker reads them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.features import FinalizedFeatures, check_supported, read_features
from kavka.cluster.registry.base import WatchEvent
from kavka.cluster.registry.embedded import EmbeddedRegistry
from kavka.cluster.znodes.feature import FEATURE_PATH
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Clock


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[EmbeddedRegistry]:
    opened = EmbeddedRegistry(tmp_path / "registry", Clock())
    prepare_tree(opened)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("data", "levels"),
    [
        (b'{"features":{},"version":2,"status":1}', {}),
        (
            b'{"features":{"transaction.version":{"max_version_level":2}},"version":2,"status":1}',
            {"transaction.version": 2},
        ),
        (b'{"features":{"transaction.version":2},"version":2,"status":1}', {"transaction.version": 2}),
        (b'{"features":{"transaction.version":{"max_version_level":2}},"version":2,"status":0}', {}),
        (
            b'{"features":{"group.version":{"min_version_level":1,"max_version_level":1}},"version":1,"status":1}',
            {"group.version": 1},
        ),
    ],
    ids=["none", "one", "as Kavka wrote it first", "disabled", "version 1"],
)
def test_what_is_agreed_on_is_read_in_all_its_forms(
    registry: EmbeddedRegistry, data: bytes, levels: dict[str, int]
) -> None:
    registry.create(FEATURE_PATH, data)

    agreed = read_features(registry)

    assert (agreed.levels, agreed.epoch, agreed.level("unheard")) == (levels, 0, 0)


def test_before_anybody_agreed_the_first_change_is_heard(registry: EmbeddedRegistry) -> None:
    heard: list[WatchEvent] = []

    assert read_features(registry, heard.append) == FinalizedFeatures({}, -1)
    registry.create(FEATURE_PATH, b'{"features":{"a":1},"version":2,"status":1}')

    assert [event.path for event in heard] == [FEATURE_PATH]
    assert read_features(registry) == FinalizedFeatures({"a": 1}, 0)


@pytest.mark.parametrize(
    ("levels", "is_supported"),
    [({}, True), ({"transaction.version": 2}, True), ({"transaction.version": 3}, False), ({"unheard": 1}, False)],
)
def test_a_broker_may_not_join_what_it_cannot_do(levels: dict[str, int], is_supported: bool) -> None:
    if is_supported:
        check_supported(FinalizedFeatures(levels, 0))
        return
    with pytest.raises(BrokerError, match="this broker supports up to") as raised:
        check_supported(FinalizedFeatures(levels, 0))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
