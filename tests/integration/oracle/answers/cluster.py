"""The cluster, its topics and what the broker offers: Metadata and its younger relatives."""

from typing import Any

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.describe_cluster import DescribeClusterRequest
from kavka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kavka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.integration.oracle.answers.stage import KAFKA_43, NOWHERE, Stage, scenario
from tests.support.processes import wait_until


def about(stage: Stage, label: str, *names: str, creates: bool = False, **fields: bool) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    if stage.version >= 4:
        fields["allow_auto_topic_creation"] = creates
    stage.ask(label, MetadataRequest(topics=topics, **fields))


@scenario(ApiKey.METADATA, "1-99")
def topics_are_described(stage: Stage) -> None:
    topic = stage.topic(partitions=3)
    stage.id_of(topic)
    about(stage, "one", topic)
    about(stage, "twice", topic, topic)
    about(stage, "no topics")
    if stage.version >= 4:
        about(stage, "unknown", topic + ".no")
        about(stage, "known and unknown", topic + ".no", topic)
    about(stage, "illegal characters", "not/legal", creates=True)
    about(stage, "empty name", "", creates=True)
    about(stage, "dots", "..", creates=True)
    about(stage, "long name", "x" * 250, creates=True)


@scenario(ApiKey.METADATA, "0-0")
def the_oldest_metadata_is_answered(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    about(stage, "one", topic)
    about(stage, "illegal", "not/legal")


@scenario(ApiKey.METADATA)
def topics_are_created_when_asked_for(stage: Stage) -> None:
    about(stage, "first sight", f"{stage.name}.new", creates=True)
    about(stage, "two, one illegal", f"{stage.name}.new2", "not/legal", creates=True)
    if stage.version >= 4:
        about(stage, "collides", f"{stage.name}_new", creates=True)


@scenario(ApiKey.METADATA, "8-99")
def authorized_operations_are_told(stage: Stage) -> None:
    topic = stage.topic()
    stage.id_of(topic)
    about(stage, "of topics", topic, include_topic_authorized_operations=True)
    if stage.version <= 10:
        about(stage, "of the cluster", topic, include_cluster_authorized_operations=True)
    about(stage, "of unknown topics", topic + ".no", include_topic_authorized_operations=True)


@scenario(ApiKey.METADATA, "10-99")
def topics_are_found_by_id(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    topic_id = stage.id_of(topic)

    def ask(label: str, *topics: MetadataRequestTopic) -> None:
        stage.ask(label, MetadataRequest(topics=list(topics), allow_auto_topic_creation=False))

    ask("by id", MetadataRequestTopic(topic_id=topic_id, name=None))
    ask("unknown id", MetadataRequestTopic(topic_id=NOWHERE, name=None))
    ask("known and unknown", *(MetadataRequestTopic(topic_id=each, name=None) for each in (NOWHERE, topic_id)))
    ask("id and name", MetadataRequestTopic(topic_id=topic_id, name=topic))
    ask("neither", MetadataRequestTopic(name=None))
    ask("by id and by name", MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(name=topic))


@scenario(ApiKey.DESCRIBE_CLUSTER)
def the_cluster_is_described(stage: Stage) -> None:
    for operations in (False, True):
        request = DescribeClusterRequest(include_cluster_authorized_operations=operations)
        stage.ask(f"operations {operations}", request)
    if stage.version >= 1:
        for kind in (1, 2, 0, 9):
            request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=kind)
            stage.ask(f"endpoints {kind}", request)


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS, oracles=(KAFKA_43,))
def topics_are_described_in_pages(stage: Stage) -> None:
    first, second = stage.topic("a", partitions=4), stage.topic("b", partitions=2)
    for topic in (first, second):
        stage.id_of(topic)

    def ask(label: str, *names: str, limit: int = 2000, cursor: Cursor | None = None) -> None:
        topics = [TopicRequest(name=name) for name in names]
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)
        stage.ask(label, request)

    ask("two", second, first)
    ask("pages of three", first, second, limit=3)
    ask("pages of one", first, limit=1)
    ask("the second page", first, second, limit=3, cursor=Cursor(topic_name=first, partition_index=3))
    ask("from the second topic", first, second, cursor=Cursor(topic_name=second, partition_index=1))
    ask("beyond the last partition", first, second, cursor=Cursor(topic_name=first, partition_index=9))
    ask("negative cursor", first, cursor=Cursor(topic_name=first, partition_index=-1))
    ask("unknown", first + ".no", second)
    ask("cursor on an unknown topic", first, second, cursor=Cursor(topic_name=first + ".no", partition_index=0))
    ask("no limit", first, limit=0)
    ask("negative limit", first, limit=-1)
    ask("illegal", "not/legal")


@scenario(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def nothing_is_being_reassigned(stage: Stage) -> None:
    topic = stage.topic()
    asked = [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0, 9])]
    unknown = [ListPartitionReassignmentsTopics(name=topic + ".no", partition_indexes=[0])]
    for label, topics in (("all", None), ("one", asked), ("unknown", unknown), ("none", [])):
        stage.ask(label, ListPartitionReassignmentsRequest(timeout_ms=60_000, topics=topics))


@scenario(ApiKey.INIT_PRODUCER_ID)
def producers_get_ids(stage: Stage) -> None:
    def ask(label: str, name: str | None = None, timeout_ms: int = 60_000, **fields: Any) -> None:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms, **fields)
        wait_until(lambda: is_ready(stage.client.ask(request, stage.version)), 60, "no producer ids")
        answer = stage.ask(label, request)
        stage.note(f"{label}: an id", answer.producer_id >= 0)

    ask("idempotent")
    ask("no timeout", timeout_ms=0)
    ask("negative timeout", timeout_ms=-1)
    ask("huge timeout", timeout_ms=2**31 - 1)
    ask("empty transactional id", "")
    if stage.version >= 3:
        ask("goes on", producer_id=3, producer_epoch=2)
        ask("an id without epoch", producer_id=3, producer_epoch=-1)
        ask("an epoch without id", producer_id=-1, producer_epoch=3)


def is_ready(answer: InitProducerIdResponse) -> bool:
    """Kafka fetches its first ids when it is first asked."""
    return answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@scenario(ApiKey.API_VERSIONS, "3-99")
def software_names_are_checked(stage: Stage) -> None:
    for name, version in (("", "1"), ("a b", "1"), ("a", ""), ("-a", "1"), ("a", "1.0-x"), ("a.", "1")):
        answer = stage.client.ask(
            ApiVersionsRequest(client_software_name=name, client_software_version=version), stage.version
        )
        stage.note(f"{name!r} {version!r}", (answer.error_code, bool(answer.api_keys)))


@scenario(ApiKey.UPDATE_FEATURES)
def features_are_not_changed(stage: Stage) -> None:
    """What nothing changes: other scenarios go by the features."""

    def ask(label: str, *levels: tuple[str, int], kind: int = 1) -> None:
        rows = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in levels]
        for row in rows if stage.version >= 1 else ():
            row.upgrade_type = kind
        stage.ask(label, UpdateFeaturesRequest(feature_updates=rows))

    held = ("transaction.version", 2)
    ask("nothing")
    ask("unheard", ("unheard", 1))
    ask("unheard and held", ("unheard", 1), held)
    ask("held and unheard", held, ("unheard", 1))
    ask("no name", ("", 1))
    ask("too high", ("transaction.version", 9))
    ask("negative", ("transaction.version", -1))
    ask("down as an upgrade", ("transaction.version", 1))
    ask("held", held)
    if stage.version >= 1:
        ask("away, of an unknown kind", ("transaction.version", 0), kind=9)
        ask("unheard away", ("unheard", 0), kind=2)
        ask("held, as a downgrade", held, kind=2)
        ask("up as a downgrade", ("transaction.version", 3), kind=2)
