"""Settings and quotas: requests as brokers see them, answers as callers do."""

import pytest

from kavka.client.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    QuotaMatch,
)
from kavka.client.admin.areas.configs import ConfigsArea
from kavka.client.api_errors import (
    DisconnectedError,
    UnsupportedVersionError,
)
from kavka.client.node import Node
from kavka.protocol.api import ApiKey
from kavka.protocol.messages import (
    alter_client_quotas,
    alter_configs,
    describe_client_quotas,
    incremental_alter_configs,
    list_config_resources,
)
from tests.support.admin_stage import AdminStage, Said, in_turn, nodes_of

TOPIC = ConfigResource.topic("t")


def altered(resource: ConfigResource, code: int = 0) -> incremental_alter_configs.IncrementalAlterConfigsResponse:
    row = incremental_alter_configs.AlterConfigsResourceResponse(
        error_code=code, error_message="no", resource_type=resource.type, resource_name=resource.name
    )
    return incremental_alter_configs.IncrementalAlterConfigsResponse(responses=[row])


def test_settings_are_changed_one_by_one() -> None:
    stage = AdminStage()
    area = stage.area(ConfigsArea)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest
    stage.network.answer(request, in_turn(DisconnectedError("gone"), altered(TOPIC)))

    changes = [AlterConfigOp("a", "1"), AlterConfigOp("b", None, AlterConfigOpType.DELETE)]
    assert area.incremental_alter_configs({TOPIC: changes}) == {TOPIC: None}
    rows = stage.network.requests(request)[0].request.resources[0].configs
    assert [(row.name, row.config_operation, row.value) for row in rows] == [("a", 0, "1"), ("b", 1, None)]

    stage.network.answer(request, in_turn(DisconnectedError("gone"), altered(TOPIC)))
    with pytest.raises(DisconnectedError):
        area.incremental_alter_configs({TOPIC: [AlterConfigOp("l", "x", AlterConfigOpType.APPEND)]})


def test_settings_are_replaced_at_the_broker_they_belong_to() -> None:
    stage = AdminStage()
    own = ConfigResource.broker(3)
    row = alter_configs.AlterConfigsResourceResponse(
        error_code=0, error_message=None, resource_type=own.type, resource_name=own.name
    )
    stage.network.answer(
        alter_configs.AlterConfigsRequest, in_turn(alter_configs.AlterConfigsResponse(responses=[row]))
    )

    assert stage.area(ConfigsArea).alter_configs({own: {"log.cleaner.threads": "2"}}) == {own: None}
    assert nodes_of(stage.network.requests(alter_configs.AlterConfigsRequest)) == [3]


def test_resources_are_listed_by_type_and_metrics_alone_of_older_brokers() -> None:
    stage = AdminStage()
    area = stage.area(ConfigsArea)
    rows = [list_config_resources.ConfigResource(resource_name="m", resource_type=16)]
    response = list_config_resources.ListConfigResourcesResponse(error_code=0, config_resources=rows)
    stage.network.answer(list_config_resources.ListConfigResourcesRequest, in_turn(response))

    assert area.list_config_resources() == [ConfigResource(ConfigResourceType.CLIENT_METRICS, "m")]
    stage.network.versions[1] = {ApiKey.LIST_CONFIG_RESOURCES: (0, 0)}
    assert area.list_client_metrics_resources() == ["m"]
    with pytest.raises(UnsupportedVersionError):
        area.list_config_resources()


def test_quotas_are_found_by_their_entities_and_changed() -> None:
    stage = AdminStage()
    area = stage.area(ConfigsArea)
    alice = ClientQuotaEntity.of(user="alice", client_id=None)
    entry = describe_client_quotas.EntryData(
        entity=[
            describe_client_quotas.EntityData(entity_type="client-id", entity_name=None),
            describe_client_quotas.EntityData(entity_type="user", entity_name="alice"),
        ],
        values=[describe_client_quotas.ValueData(key="consumer_byte_rate", value=5.0)],
    )
    response = describe_client_quotas.DescribeClientQuotasResponse(error_code=0, error_message=None, entries=[entry])
    stage.network.answer(describe_client_quotas.DescribeClientQuotasRequest, in_turn(response))

    found = area.describe_client_quotas({"user": "alice", "client-id": QuotaMatch.ANY}, strict=True)

    assert found == {alice: {"consumer_byte_rate": 5.0}}
    assert alice.name("client-id") is None
    (asked,) = stage.network.requests(describe_client_quotas.DescribeClientQuotasRequest)
    assert [(row.entity_type, row.match_type, row.match) for row in asked.request.components] == [
        ("user", 0, "alice"),
        ("client-id", 2, None),
    ]

    def change(_node: Node, request: alter_client_quotas.AlterClientQuotasRequest) -> Said:
        rows = [
            alter_client_quotas.AlterClientQuotasResponseEntryData(
                error_code=0, error_message=None, entity=list(reversed(each.entity))
            )
            for each in request.entries
        ]
        return alter_client_quotas.AlterClientQuotasResponse(entries=rows)

    stage.network.answer(alter_client_quotas.AlterClientQuotasRequest, change)
    assert area.alter_client_quotas({alice: {"consumer_byte_rate": None, "request_percentage": 50.0}}) == {alice: None}
    ops = stage.network.requests(alter_client_quotas.AlterClientQuotasRequest)[0].request.entries[0].ops
    assert [(op.key, op.value, op.remove) for op in ops] == [
        ("consumer_byte_rate", 0.0, True),
        ("request_percentage", 50.0, False),
    ]
