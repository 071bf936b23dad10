"""The APIs of the protocol: their keys, and which versions this room can encode and decode.

The table stands here so that header parsing and version checks import no message module; a test holds it against the
declarations. Which of these versions a broker serves is for its handlers to say.
"""

from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

from kavka.protocol.schema import NEVER, Request, Response


class ApiKey(IntEnum):
    """Every API key of Kafka 3.9 and 4.3, also those that have no message here."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92

    @property
    def title(self) -> str:
        """The name as Kafka writes it: LeaderAndIsr."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class ApiSpec(NamedTuple):
    """One API. `versions` is (oldest, newest); from `flexible_since` on, headers and bodies have tagged fields."""

    key: ApiKey
    name: str
    versions: tuple[int, int]
    flexible_since: int
    request_class: type[Request]
    response_class: type[Response]


class VersionRange(NamedTuple):
    """Known versions of an API; `flexible_since` is NEVER for the two that stay inflexible."""

    oldest: int
    newest: int
    flexible_since: int


@cache
def spec(key: int) -> ApiSpec:
    """The API behind a key; imports its message module. Raises KeyError for a key that has no messages here."""
    versions = VERSIONS[key]
    api = ApiKey(key)
    module = import_module(f"kavka.protocol.messages.{api.name.lower()}")
    request: type[Request] = getattr(module, f"{api.title}Request")
    response: type[Response] = getattr(module, f"{api.title}Response")
    return ApiSpec(api, api.title, (versions.oldest, versions.newest), versions.flexible_since, request, response)


VERSIONS: Final[dict[int, VersionRange]] = {
    int(key): VersionRange(*row)
    for key, row in {
        ApiKey.PRODUCE: (0, 13, 9),
        ApiKey.FETCH: (0, 18, 12),
        ApiKey.LIST_OFFSETS: (0, 11, 6),
        ApiKey.METADATA: (0, 13, 9),
        ApiKey.LEADER_AND_ISR: (0, 7, 4),
        ApiKey.STOP_REPLICA: (0, 4, 2),
        ApiKey.UPDATE_METADATA: (0, 8, 6),
        ApiKey.CONTROLLED_SHUTDOWN: (0, 3, 3),
        ApiKey.OFFSET_COMMIT: (0, 10, 8),
        ApiKey.OFFSET_FETCH: (0, 10, 6),
        ApiKey.FIND_COORDINATOR: (0, 6, 3),
        ApiKey.JOIN_GROUP: (0, 9, 6),
        ApiKey.HEARTBEAT: (0, 4, 4),
        ApiKey.LEAVE_GROUP: (0, 5, 4),
        ApiKey.SYNC_GROUP: (0, 5, 4),
        ApiKey.DESCRIBE_GROUPS: (0, 6, 5),
        ApiKey.LIST_GROUPS: (0, 5, 3),
        ApiKey.SASL_HANDSHAKE: (0, 1, NEVER),
        ApiKey.API_VERSIONS: (0, 4, 3),
        ApiKey.CREATE_TOPICS: (0, 7, 5),
        ApiKey.DELETE_TOPICS: (0, 6, 4),
        ApiKey.DELETE_RECORDS: (0, 2, 2),
        ApiKey.INIT_PRODUCER_ID: (0, 6, 2),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4, 4),
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5, 3),
        ApiKey.ADD_OFFSETS_TO_TXN: (0, 4, 3),
        ApiKey.END_TXN: (0, 5, 3),
        ApiKey.WRITE_TXN_MARKERS: (0, 2, 1),
        ApiKey.TXN_OFFSET_COMMIT: (0, 5, 3),
        ApiKey.DESCRIBE_ACLS: (0, 3, 2),
        ApiKey.CREATE_ACLS: (0, 3, 2),
        ApiKey.DELETE_ACLS: (0, 3, 2),
        ApiKey.DESCRIBE_CONFIGS: (0, 4, 4),
        ApiKey.ALTER_CONFIGS: (0, 2, 2),
        ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2, 2),
        ApiKey.DESCRIBE_LOG_DIRS: (0, 5, 2),
        ApiKey.SASL_AUTHENTICATE: (0, 2, 2),
        ApiKey.CREATE_PARTITIONS: (0, 3, 2),
        ApiKey.CREATE_DELEGATION_TOKEN: (0, 3, 2),
        ApiKey.RENEW_DELEGATION_TOKEN: (0, 2, 2),
        ApiKey.EXPIRE_DELEGATION_TOKEN: (0, 2, 2),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: (0, 3, 2),
        ApiKey.DELETE_GROUPS: (0, 2, 2),
        ApiKey.ELECT_LEADERS: (0, 2, 2),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1, 1),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1, 0),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0, 0),
        ApiKey.OFFSET_DELETE: (0, 0, NEVER),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1, 1),
        ApiKey.ALTER_CLIENT_QUOTAS: (0, 1, 1),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0, 0),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0, 0),
        ApiKey.DESCRIBE_QUORUM: (0, 2, 0),
        ApiKey.ALTER_PARTITION: (0, 3, 0),
        ApiKey.UPDATE_FEATURES: (0, 2, 0),
        ApiKey.DESCRIBE_CLUSTER: (0, 2, 0),
        ApiKey.DESCRIBE_PRODUCERS: (0, 0, 0),
        ApiKey.UNREGISTER_BROKER: (0, 0, 0),
        ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0),
        ApiKey.LIST_TRANSACTIONS: (0, 2, 0),
        ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0, 0),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1, 0),
        ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1, 0),
        ApiKey.LIST_CONFIG_RESOURCES: (0, 1, 0),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0, 0),
        ApiKey.SHARE_GROUP_DESCRIBE: (0, 1, 0),
        ApiKey.ADD_RAFT_VOTER: (0, 1, 0),
        ApiKey.REMOVE_RAFT_VOTER: (0, 0, 0),
        ApiKey.STREAMS_GROUP_DESCRIBE: (0, 0, 0),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1, 0),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0, 0),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0, 0),
    }.items()
}
