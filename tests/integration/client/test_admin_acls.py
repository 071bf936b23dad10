"""Our administrator's ACLs, at Kafkas that have an authorizer, and subscriptions to clients' metrics."""

from collections.abc import Callable

import pytest

from kavka.client import Admin
from kavka.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    PatternType,
    ResourceType,
)
from tests.support.client_brokers import KAFKA_39, KAFKA_43
from tests.support.processes import wait_until
from tests.support.server import RunningServer

AUTHORIZERS = {
    "kafka-3.9": "kafka.security.authorizer.AclAuthorizer",
    "kafka-4.3": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
WAIT_S = 60
MAY_READ = AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)
MAY_NOT_WRITE = AclBinding(
    ResourceType.TOPIC,
    "or",
    "User:bob",
    AclOperation.WRITE,
    AclPermissionType.DENY,
    "127.0.0.1",
    PatternType.PREFIXED,
)


@pytest.mark.parametrize("broker_kind", [KAFKA_39, KAFKA_43])
def test_acls_are_created_found_and_deleted(
    own_broker: Callable[[dict[str, str]], RunningServer], broker_kind: str
) -> None:
    settings = {"authorizer.class.name": AUTHORIZERS[broker_kind], "super.users": "User:ANONYMOUS"}
    with Admin(bootstrap_servers=own_broker(settings).bootstrap) as admin:
        both = [MAY_READ, MAY_NOT_WRITE]
        assert admin.create_acls(both) == dict.fromkeys(both)
        wait_until(lambda: set(admin.describe_acls()) == set(both), WAIT_S, "not seen")
        matching = AclBindingFilter(ResourceType.TOPIC, "orders", pattern_type=PatternType.MATCH)
        assert set(admin.describe_acls(matching)) == set(both)
        assert admin.describe_acls(AclBindingFilter(principal="User:alice")) == [MAY_READ]

        nobody, bob = AclBindingFilter(principal="User:nobody"), AclBindingFilter(principal="User:bob")
        deleted = admin.delete_acls([nobody, bob])
        assert [(each.binding, each.error) for each in deleted[bob]] == [(MAY_NOT_WRITE, None)]
        assert deleted[nobody] == []
        wait_until(lambda: admin.describe_acls() == [MAY_READ], WAIT_S, "still there")


@pytest.mark.parametrize("broker", [KAFKA_43], indirect=True)
def test_subscriptions_to_clients_metrics(broker: RunningServer) -> None:
    """Neither Kavka nor Kafka 3.9 with ZooKeeper has them (KIP-714)."""
    subscription = ConfigResource(ConfigResourceType.CLIENT_METRICS, "mine")
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert admin.list_client_metrics_resources() == []
        admin.incremental_alter_configs({subscription: [AlterConfigOp("interval.ms", "60000")]})
        try:
            wait_until(lambda: admin.list_client_metrics_resources() == ["mine"], WAIT_S, "not seen")
            assert admin.describe_configs([subscription])[subscription]["interval.ms"].value == "60000"
        finally:
            # Others that use this broker list all that there are.
            admin.incremental_alter_configs(
                {subscription: [AlterConfigOp("interval.ms", None, AlterConfigOpType.DELETE)]}
            )
        wait_until(lambda: admin.list_client_metrics_resources() == [], WAIT_S, "still there")
