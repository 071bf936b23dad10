"""Requests about topics and configurations."""

from typing import Final

from kavka.broker.security.acl import Operation
from kavka.protocol.api import ApiKey
from kavka.protocol.messages import alter_configs, incremental_alter_configs
from kavka.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kavka.protocol.messages.create_topics import CreateTopicsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.schema import ZERO_UUID
from tests.integration.oracle.answers.stage import NOWHERE, creatable
from tests.integration.oracle.rights.table import GONE, TOO, Names, cluster, row, topic

MADE: Final = "rights-made"
DOOMED: Final = "rights-doomed"
TOPIC: Final = 2
BROKER: Final = 4
LOGGER: Final = 8
WITH_OPERATIONS: Final = 8
WITH_IDS: Final = 6
CLUSTERS_OPERATIONS: Final = range(8, 11)


@row(ApiKey.METADATA, topic(Operation.DESCRIBE), versions="4-99")
def metadata(version: int, names: Names) -> MetadataRequest:
    return _metadata(version, names.topic, TOO)


@row(ApiKey.METADATA, topic(Operation.DESCRIBE), versions="4-99")
def metadata_of_internal_and_impossible_topics(version: int, names: Names) -> MetadataRequest:
    return _metadata(version, names.topic, "__consumer_offsets", "no such name", DOOMED[:-1])


@row(ApiKey.METADATA, topic(Operation.DESCRIBE), versions="0")
def metadata_of_old_clients(version: int, names: Names) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in (names.topic, TOO)])


@row(ApiKey.METADATA, topic(Operation.DESCRIBE) + cluster(Operation.DESCRIBE), versions="8-10")
def metadata_with_operations(version: int, names: Names) -> MetadataRequest:
    request = _metadata(version, names.topic, TOO)
    request.include_cluster_authorized_operations = True
    return request


@row(ApiKey.METADATA, topic(Operation.DESCRIBE))
def metadata_of_all_topics(version: int, names: Names) -> MetadataRequest:
    return MetadataRequest(
        topics=[] if version == 0 else None, include_topic_authorized_operations=version >= WITH_OPERATIONS
    )


@row(ApiKey.METADATA, topic(Operation.DESCRIBE), versions="12-99", hides=False)
def metadata_by_id(version: int, names: Names) -> MetadataRequest:
    ids = [names.id_of(names.topic), names.id_of(TOO), NOWHERE]
    topics = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    return MetadataRequest(topics=topics, include_topic_authorized_operations=True)


@row(
    ApiKey.METADATA,
    topic(Operation.DESCRIBE, MADE) + topic(Operation.CREATE, MADE),
    topic(Operation.DESCRIBE, MADE) + cluster(Operation.CREATE),
    undo=(MADE,),
)
def metadata_that_creates(version: int, names: Names) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=MADE), MetadataRequestTopic(name=TOO)])


@row(ApiKey.CREATE_TOPICS, topic(Operation.CREATE), cluster(Operation.CREATE))
def create_topics_that_are_there(version: int, names: Names) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[creatable(names.topic), creatable(TOO)], timeout_ms=30_000)


@row(
    ApiKey.CREATE_TOPICS,
    topic(Operation.CREATE, MADE) + topic(Operation.DESCRIBE_CONFIGS, MADE),
    cluster(Operation.CREATE),
    versions="1-99",
)
def create_topics_for_trial(version: int, names: Names) -> CreateTopicsRequest:
    topics = [creatable(MADE), creatable("__cluster_metadata"), creatable("a b")]
    return CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=True)


@row(ApiKey.CREATE_TOPICS, topic(Operation.CREATE, MADE), versions="0", undo=(MADE,))
def create_topics(version: int, names: Names) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[creatable(MADE)], timeout_ms=30_000)


@row(ApiKey.DELETE_TOPICS, topic(Operation.DELETE, DOOMED), undo=(DOOMED,))
def delete_topics(version: int, names: Names) -> DeleteTopicsRequest:
    return _delete_topics(version, DOOMED, GONE)


@row(ApiKey.DELETE_TOPICS, topic(Operation.DELETE, GONE))
def delete_topics_that_are_not_there(version: int, names: Names) -> DeleteTopicsRequest:
    return _delete_topics(version, GONE)


@row(
    ApiKey.DELETE_TOPICS,
    topic(Operation.DELETE, DOOMED),
    topic(Operation.DESCRIBE, DOOMED),
    versions="6-99",
    undo=(DOOMED,),
)
def delete_topics_by_id(version: int, names: Names) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=topic_id) for topic_id in (names.id_of(DOOMED), NOWHERE)], timeout_ms=30_000
    )


@row(ApiKey.CREATE_PARTITIONS, topic(Operation.ALTER))
def create_partitions(version: int, names: Names) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in (names.topic, TOO)]
    return CreatePartitionsRequest(topics=topics, timeout_ms=30_000, validate_only=True)


@row(ApiKey.CREATE_PARTITIONS, topic(Operation.ALTER))
def create_partitions_twice(version: int, names: Names) -> CreatePartitionsRequest:
    topics = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in (names.topic, TOO, TOO)]
    return CreatePartitionsRequest(topics=topics, timeout_ms=30_000, validate_only=True)


@row(ApiKey.DESCRIBE_CONFIGS, topic(Operation.DESCRIBE_CONFIGS) + cluster(Operation.DESCRIBE_CONFIGS))
def describe_configs(version: int, names: Names) -> DescribeConfigsRequest:
    return _describe_configs((TOPIC, names.topic), (TOPIC, TOO), (BROKER, "1"), (BROKER, "7"))


@row(ApiKey.DESCRIBE_CONFIGS, cluster(Operation.DESCRIBE_CONFIGS))
def describe_configs_of_something_else(version: int, names: Names) -> DescribeConfigsRequest:
    return _describe_configs((TOPIC, names.topic), (3, "x"))


@row(ApiKey.ALTER_CONFIGS, topic(Operation.ALTER_CONFIGS) + cluster(Operation.ALTER_CONFIGS))
def alter_configs_(version: int, names: Names) -> alter_configs.AlterConfigsRequest:
    return _alter_configs((TOPIC, names.topic, "7"), (TOPIC, TOO, "7"), (BROKER, "1", "2"))


@row(ApiKey.ALTER_CONFIGS, topic(Operation.ALTER_CONFIGS))
def alter_configs_wrongly(version: int, names: Names) -> alter_configs.AlterConfigsRequest:
    wrong = ((BROKER, "7", "1"), (LOGGER, "1", "INFO"), (TOPIC, TOO, None), (3, "x", "y"))
    return _alter_configs((TOPIC, names.topic, "7"), *wrong)


@row(ApiKey.INCREMENTAL_ALTER_CONFIGS, topic(Operation.ALTER_CONFIGS) + cluster(Operation.ALTER_CONFIGS))
def incremental_alter_configs_(version: int, names: Names) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    return _incremental((TOPIC, names.topic, "7"), (TOPIC, TOO, "7"), (BROKER, "1", "2"), (LOGGER, "7", "7"))


@row(ApiKey.INCREMENTAL_ALTER_CONFIGS, topic(Operation.ALTER_CONFIGS))
def incremental_alter_configs_wrongly(
    version: int, names: Names
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    return _incremental((TOPIC, names.topic, "7"), (BROKER, "7", "1"), (TOPIC, TOO, None), (3, "x", "y"))


def _metadata(version: int, *names: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=version >= WITH_OPERATIONS,
    )


def _delete_topics(version: int, *names: str) -> DeleteTopicsRequest:
    if version >= WITH_IDS:
        topics = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names]
        return DeleteTopicsRequest(topics=topics, timeout_ms=30_000)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)


def _describe_configs(*resources: tuple[int, str]) -> DescribeConfigsRequest:
    keys = {TOPIC: "retention.ms", BROKER: "log.retention.hours"}
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=[keys.get(kind, "something")]
            )
            for kind, name in resources
        ]
    )


def _setting(kind: int) -> str:
    return "retention.ms" if kind == TOPIC else "log.cleaner.threads"


def _alter_configs(*resources: tuple[int, str, str | None]) -> alter_configs.AlterConfigsRequest:
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=_setting(kind), value=value)],
            )
            for kind, name, value in resources
        ],
        validate_only=True,
    )


def _incremental(
    *resources: tuple[int, str, str | None],
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(name=_setting(kind), config_operation=0, value=value)
                ],
            )
            for kind, name, value in resources
        ],
        validate_only=True,
    )
