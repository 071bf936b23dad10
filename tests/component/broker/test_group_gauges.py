"""What a scrape shows of groups and offsets."""

from collections.abc import Mapping
from typing import Any, cast

from kavka.broker.metrics.group_gauges import register_group_gauges
from kavka.broker.metrics.registry import Metrics
from kavka.coordinator.group.group import GroupType
from tests.support.broker_handlers import BROKER_ID, Broker
from tests.support.offset_stage import FakeGroup
from tests.support.staged_groups import StagedGroups

MANAGER = "kafka_coordinator_group_groupmetadatamanager_"


def shown(broker: Broker) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    metrics = Metrics()
    register_group_gauges(metrics, broker.services)
    return {gauge.name: list(gauge.read()) for gauge in metrics.gauges()}


def broker_with(groups: StagedGroups) -> Broker:
    broker = Broker(visits=[BROKER_ID])
    broker.host("visits").high_watermark = 90
    broker.services.groups = cast(Any, groups)
    return broker


def test_groups_are_counted_by_state_and_protocol() -> None:
    groups = StagedGroups()
    groups.stage.put_offsets({("visits", 0): 1}, "offsets-only")
    groups.stage.shard.groups.put(FakeGroup("modern"))
    groups.stage.shard.groups.put(FakeGroup("old", kind=GroupType.CLASSIC, state="Stable"))

    page = shown(broker_with(groups))

    assert page[MANAGER + "numgroups"] == [({}, 2.0)]
    assert page[MANAGER + "numgroupsempty"] == page[MANAGER + "numgroupsstable"] == [({}, 1.0)]
    assert page[MANAGER + "numgroupspreparingrebalance"] == [({}, 0.0)]
    assert page[MANAGER + "numoffsets"] == [({}, 1.0)]
    assert page["kafka_server_group_coordinator_metrics_group_count"] == [
        ({"protocol": "classic"}, 2.0),
        ({"protocol": "consumer"}, 1.0),
    ]
    assert ({"state": "stable"}, 1.0) in page["kafka_server_group_coordinator_metrics_consumer_group_count"]
    assert ({"consumergroup": "modern"}, 1.0) in page["kafka_consumergroup_members"]


def test_lag_is_what_lies_between_the_offset_and_the_high_watermark() -> None:
    groups = StagedGroups()
    groups.stage.put_offsets({("visits", 0): 70, ("elsewhere", 3): 5}, "g")

    page = shown(broker_with(groups))

    here = {"consumergroup": "g", "topic": "visits", "partition": "0"}
    there = {"consumergroup": "g", "topic": "elsewhere", "partition": "3"}
    assert page["kafka_consumergroup_current_offset"] == [(here, 70.0), (there, 5.0)]
    assert page["kafka_consumergroup_lag"] == [(here, 20.0)]
    assert page["kafka_consumergroup_lag_sum"] == [({"consumergroup": "g", "topic": "visits"}, 20.0)]


def test_a_broker_without_coordinator_shows_nothing() -> None:
    groups = StagedGroups()
    groups.existing_runtime = None

    page = shown(broker_with(groups))

    assert page[MANAGER + "numgroups"] == [({}, 0.0)]
    assert page["kafka_consumergroup_lag"] == []
