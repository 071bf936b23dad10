"""Every API that a broker serves to administrators has a method; every other one says why it has none."""

import ast
from pathlib import Path

from kavka.broker.requests.handling import load_handlers
from kavka.client.admin import Admin
from kavka.protocol.api import ApiKey

OPERATIONS = Path(__file__).resolve().parents[4] / "client" / "admin" / "operations"

KAFKA_39_WITH_ZOOKEEPER = frozenset({*range(52), 56, 57, 58, 60, 61, 65, 66, 67, 68, 69})
KAFKA_43 = frozenset(
    {*range(4), *range(8, 52), 55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72, *range(74, 82), *range(83, 93)}
)
"""What ApiVersions of real brokers shows, on a listener for clients."""

METHODS = {
    ApiKey.LIST_OFFSETS: "list_offsets",
    ApiKey.METADATA: "list_topics",
    ApiKey.OFFSET_COMMIT: "alter_group_offsets",
    ApiKey.OFFSET_FETCH: "list_group_offsets",
    ApiKey.LEAVE_GROUP: "remove_group_members",
    ApiKey.DESCRIBE_GROUPS: "describe_classic_groups",
    ApiKey.LIST_GROUPS: "list_groups",
    ApiKey.API_VERSIONS: "describe_api_versions",
    ApiKey.CREATE_TOPICS: "create_topics",
    ApiKey.DELETE_TOPICS: "delete_topics",
    ApiKey.DELETE_RECORDS: "delete_records",
    ApiKey.INIT_PRODUCER_ID: "fence_producers",
    ApiKey.WRITE_TXN_MARKERS: "abort_transaction",
    ApiKey.DESCRIBE_ACLS: "describe_acls",
    ApiKey.CREATE_ACLS: "create_acls",
    ApiKey.DELETE_ACLS: "delete_acls",
    ApiKey.DESCRIBE_CONFIGS: "describe_configs",
    ApiKey.ALTER_CONFIGS: "alter_configs",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "alter_replica_log_dirs",
    ApiKey.DESCRIBE_LOG_DIRS: "describe_log_dirs",
    ApiKey.CREATE_PARTITIONS: "create_partitions",
    ApiKey.CREATE_DELEGATION_TOKEN: "create_delegation_token",
    ApiKey.RENEW_DELEGATION_TOKEN: "renew_delegation_token",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "expire_delegation_token",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "describe_delegation_tokens",
    ApiKey.DELETE_GROUPS: "delete_groups",
    ApiKey.ELECT_LEADERS: "elect_leaders",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "incremental_alter_configs",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "alter_partition_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "list_partition_reassignments",
    ApiKey.OFFSET_DELETE: "delete_group_offsets",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "describe_client_quotas",
    ApiKey.ALTER_CLIENT_QUOTAS: "alter_client_quotas",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "describe_user_scram_credentials",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "alter_user_scram_credentials",
    ApiKey.DESCRIBE_QUORUM: "describe_metadata_quorum",
    ApiKey.UPDATE_FEATURES: "update_features",
    ApiKey.DESCRIBE_CLUSTER: "describe_cluster",
    ApiKey.DESCRIBE_PRODUCERS: "describe_producers",
    ApiKey.UNREGISTER_BROKER: "unregister_broker",
    ApiKey.DESCRIBE_TRANSACTIONS: "describe_transactions",
    ApiKey.LIST_TRANSACTIONS: "list_transactions",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "describe_consumer_groups",
    ApiKey.LIST_CONFIG_RESOURCES: "list_config_resources",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "describe_topics",
    ApiKey.SHARE_GROUP_DESCRIBE: "describe_share_groups",
    ApiKey.ADD_RAFT_VOTER: "add_raft_voter",
    ApiKey.REMOVE_RAFT_VOTER: "remove_raft_voter",
    ApiKey.STREAMS_GROUP_DESCRIBE: "describe_streams_groups",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "list_share_group_offsets",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "alter_share_group_offsets",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "delete_share_group_offsets",
}

NOT_ADMINISTRATORS = {
    "producers send them": {
        ApiKey.PRODUCE,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    },
    "consumers send them": {
        ApiKey.FETCH,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.SYNC_GROUP,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    },
    "every client sends them for itself, when it needs them": {
        ApiKey.FIND_COORDINATOR,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    },
    "brokers send them to one another": {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    },
}


def test_every_api_of_a_broker_has_a_method_or_a_reason() -> None:
    served = {*KAFKA_39_WITH_ZOOKEEPER, *KAFKA_43, *load_handlers(in_cluster=True)}
    assert (len(KAFKA_39_WITH_ZOOKEEPER), len(KAFKA_43)) == (62, 77)
    explained = set().union(*NOT_ADMINISTRATORS.values())

    assert {ApiKey(key) for key in served} == METHODS.keys() | explained
    assert METHODS.keys() & explained == set()


def test_every_method_is_there() -> None:
    missing = [name for name in METHODS.values() if not callable(getattr(Admin, name, None))]
    assert missing == []
    assert len(set(METHODS.values())) == len(METHODS)


def test_what_operations_send_is_what_methods_are_listed_for() -> None:
    sent = set()
    for path in OPERATIONS.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kavka.protocol.messages"):
                package, _, module = str(node.module).rpartition(".")
                modules = [each.name for each in node.names] if package == "kavka.protocol" else [module]
                sent |= {ApiKey[name.upper()] for name in modules}

    assert sent == set(METHODS)
