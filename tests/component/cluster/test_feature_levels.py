"""What the cluster agrees on: made once by its controller, changed on request, followed by every broker."""

from collections.abc import Mapping, Sequence

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import FeatureUpdate, UpgradeType
from kavka.cluster.features import ADVERTISED, FinalizedFeatures
from kavka.cluster.znodes.broker import FeatureRange
from kavka.cluster.znodes.feature import FEATURE_PATH, FeatureLevels
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Stage, wait

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
A, B = FeatureRange("a", 1, 3), FeatureRange("b", 2, 5)


def started(stage: Stage, features: Mapping[int, Sequence[FeatureRange]]) -> tuple[Controller, list[FinalizedFeatures]]:
    """A controller on a cluster of these brokers, and what it says is agreed on."""
    for broker, ranges in features.items():
        stage.cluster.add(broker, tuple(ranges))
    seen: list[FinalizedFeatures] = []
    controller = stage.candidate(1, seen.append)
    wait(controller.start())
    return controller, seen


def levels(stage: Stage) -> dict[str, int]:
    return FeatureLevels.decode(stage.registry.get(FEATURE_PATH)[0]).levels


def update(controller: Controller, *updates: FeatureUpdate, validate_only: bool = False) -> None:
    wait(controller.update_features(updates, validate_only=validate_only))


@pytest.mark.parametrize(
    ("brokers", "agreed"),
    [
        ({1: [A, B]}, {"a": 3, "b": 5}),
        ({1: [A, B], 2: [FeatureRange("a", 1, 2), B]}, {"a": 2, "b": 5}),
        ({1: [A, B], 2: [A]}, {"a": 3}),
        ({1: [A, B], 2: []}, {}),
        ({1: [FeatureRange("a", 3, 4)], 2: [FeatureRange("a", 1, 2)]}, {}),
    ],
    ids=["alone", "lower", "lacking", "Kafka", "apart"],
)
def test_the_node_is_made_with_what_all_registered_brokers_can(
    stage: Stage, brokers: dict[int, list[FeatureRange]], agreed: dict[str, int]
) -> None:
    _, seen = started(stage, brokers)
    assert levels(stage) == agreed
    assert seen == [FinalizedFeatures(agreed, 0)]


def test_a_cluster_that_awaits_brokers_of_kafka_agrees_on_nothing(stage: Stage) -> None:
    stage.settings.awaits_other_releases = True
    _, seen = started(stage, {1: ADVERTISED})
    assert levels(stage) == {}
    assert seen == [FinalizedFeatures({}, 0)]


def test_a_broker_that_stands_alone_agrees_on_all_that_it_can(stage: Stage) -> None:
    started(stage, {1: ADVERTISED})
    assert stage.registry.get(FEATURE_PATH)[0] == (
        b'{"features":{"group.version":{"max_version_level":1},"transaction.version":{"max_version_level":2}},'
        b'"version":2,"status":1}'
    )


def test_levels_in_a_form_that_kafka_cannot_read_are_written_anew(stage: Stage) -> None:
    stage.registry.create(FEATURE_PATH, b'{"features":{"group.version":1},"version":2,"status":1}')
    _, seen = started(stage, {1: ADVERTISED})
    assert stage.registry.get(FEATURE_PATH)[0] == (
        b'{"features":{"group.version":{"max_version_level":1}},"version":2,"status":1}'
    )
    assert seen == [FinalizedFeatures({"group.version": 1}, 1)]


def test_what_is_agreed_on_is_raised_by_nobody_unasked(stage: Stage) -> None:
    stage.registry.create(FEATURE_PATH, FeatureLevels({}).encode())
    controller, seen = started(stage, {1: [A, B]})
    stage.cluster.add(2, (A, B))
    stage.settle(controller)
    assert levels(stage) == {}
    assert seen == [FinalizedFeatures({}, 0)]


def test_a_node_that_is_disabled_is_enabled_with_nothing_agreed_on(stage: Stage) -> None:
    stage.registry.create(FEATURE_PATH, b'{"features":{"a":1},"version":2,"status":0}')
    started(stage, {1: [A]})
    assert stage.registry.get(FEATURE_PATH)[0] == b'{"features":{},"version":2,"status":1}'


def test_levels_go_up_and_down_and_away_and_every_broker_hears_of_it(stage: Stage) -> None:
    controller, seen = started(stage, {1: [A, B], 2: [A]})
    others: list[FinalizedFeatures] = []
    other = stage.candidate(2, others.append)
    wait(other.start())
    update(controller, FeatureUpdate("a", 1, SAFE))
    assert seen[-1] == FinalizedFeatures({"a": 1}, 1)
    update(controller, FeatureUpdate("a", 3))
    update(controller, FeatureUpdate("a", 0, UNSAFE))
    assert seen[-1] == FinalizedFeatures({}, 3)
    with pytest.raises(BrokerError) as raised:
        update(other, FeatureUpdate("a", 1))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    assert others[-1] == FinalizedFeatures({}, 3)


@pytest.mark.parametrize(
    "refused",
    [
        FeatureUpdate("", 1),
        FeatureUpdate("a", 1, UpgradeType.UNKNOWN),
        FeatureUpdate("a", 1),
        FeatureUpdate("a", 3, SAFE),
        FeatureUpdate("a", 0),
        FeatureUpdate("a", -1, UNSAFE),
        FeatureUpdate("a", 4),
        FeatureUpdate("b", 2),
        FeatureUpdate("unheard", 1),
        FeatureUpdate("unheard", 0, SAFE),
    ],
    ids=str,
)
def test_a_change_against_the_rules_is_refused_and_so_are_the_others(stage: Stage, refused: FeatureUpdate) -> None:
    stage.registry.create(FEATURE_PATH, FeatureLevels({"a": 2, "c": 2}).encode())
    c = FeatureRange("c", 1, 3)
    controller, _ = started(stage, {1: [A, B, c], 2: [A, c]})
    lowered = FeatureUpdate("c", 1, SAFE)
    for updates in ([refused, lowered], [lowered, refused]):
        with pytest.raises(BrokerError, match=rf"Invalid update version {refused.level} for") as raised:
            update(controller, *updates)
        assert raised.value.code is ErrorCode.INVALID_UPDATE_VERSION
    update(controller, lowered, validate_only=True)
    assert levels(stage) == {"a": 2, "c": 2}


def test_a_level_that_holds_already_can_be_asked_for(stage: Stage) -> None:
    stage.registry.create(FEATURE_PATH, FeatureLevels({"a": 2}).encode())
    controller, seen = started(stage, {1: [A, B], 2: [A]})
    update(controller, FeatureUpdate("a", 2), FeatureUpdate("b", 0, SAFE))
    update(controller, FeatureUpdate("a", 2, UNSAFE), FeatureUpdate("b", 0))
    assert seen == [FinalizedFeatures({"a": 2}, 0)]


def test_what_no_broker_knows_any_more_can_be_dropped(stage: Stage) -> None:
    stage.registry.create(FEATURE_PATH, FeatureLevels({"a": 2, "gone": 1}).encode())
    controller, _ = started(stage, {1: [A]})
    update(controller, FeatureUpdate("gone", 0, SAFE))
    assert levels(stage) == {"a": 2}


def test_a_node_that_cannot_be_read_stops_no_controller(stage: Stage) -> None:
    stage.registry.create(FEATURE_PATH, b"{broken")
    controller, seen = started(stage, {1: [A]})
    assert (controller.is_active, seen) == (True, [])
    with pytest.raises(BrokerError) as raised:
        update(controller, FeatureUpdate("a", 1))
    assert raised.value.code is ErrorCode.FEATURE_UPDATE_FAILED
    assert stage.registry.get(FEATURE_PATH)[0] == b"{broken"


def test_a_broker_advertises_no_level_zero_which_older_ones_cannot_read() -> None:
    assert [tuple(each) for each in ADVERTISED] == [("group.version", 1, 1), ("transaction.version", 1, 2)]
