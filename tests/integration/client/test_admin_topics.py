"""Our administrator's calls about topics, partitions and settings, against real brokers of all three kinds."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kavka.client import Admin
from kavka.client.admin import (
    AclBindingFilter,
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ElectionType,
    ItemErrors,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ScramMechanism,
    TopicPartition,
    TopicPartitionReplica,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kavka.client.api_errors import (
    DelegationTokenDisabledError,
    DisconnectedError,
    ElectionNotNeededError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    KafkaError,
    LogDirNotFoundError,
    NoReassignmentInProgressError,
    OffsetOutOfRangeError,
    ResourceNotFoundError,
    SecurityDisabledError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from tests.support.processes import wait_until
from tests.support.server import RunningServer


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap) as client:
        yield client


def produce(bootstrap: str, topic: str, count: int) -> None:
    """Records to partition 0, with timestamps 1000, 2000, ..."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1000 * (number + 1))
    assert producer.flush(60) == 0


def visible(admin: Admin, topic: str) -> None:
    """Wait until every broker knows it: KRaft's learn of it after the controller has answered."""
    wait_until(lambda: topic in admin.list_topics(), 30, "not seen")


def test_a_topics_life(admin: Admin, topic: str) -> None:
    wanted = NewTopic(topic, 2, 1, configs={"retention.ms": "60000"})
    assert topic in admin.create_topics([wanted], validate_only=True)
    created = admin.create_topics([wanted])[topic]
    assert (created.num_partitions, created.replication_factor) == (2, 1)
    assert created.configs is not None
    assert created.configs["retention.ms"].value == "60000"
    visible(admin, topic)

    described = admin.describe_topics([topic, created.topic_id])
    assert described[topic].partitions == tuple(
        each._replace(
            eligible_leader_replicas=mine.eligible_leader_replicas,
            last_known_eligible_leader_replicas=mine.last_known_eligible_leader_replicas,
        )
        for each, mine in zip(described[created.topic_id].partitions, described[topic].partitions, strict=True)
    )
    assert [each.partition for each in described[topic].partitions] == [0, 1]
    assert admin.list_topics()[topic].topic_id == created.topic_id
    with pytest.raises(TopicExistsError):
        admin.create_topics([wanted])

    broker_id = described[topic].partitions[0].leader_id
    assert admin.create_partitions({topic: 3}) == {topic: None}
    assert admin.create_partitions({topic: NewPartitions(4, [[broker_id]])}) == {topic: None}
    wait_until(lambda: len(admin.describe_topics([topic])[topic].partitions) == 4, 30, "not seen")
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 1})

    assert admin.delete_topics([created.topic_id]) == {created.topic_id: None}
    wait_until(lambda: topic not in admin.list_topics(), 30, "not seen")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])
    # Kafka's with ZooKeeper still knows the id.
    with pytest.raises((UnknownTopicIdError, UnknownTopicOrPartitionError)):
        admin.delete_topics([created.topic_id])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.describe_topics([topic])


def test_topics_that_cannot_be_created_say_why_and_the_others_are(admin: Admin, topic: str) -> None:
    bad = [
        NewTopic("no/name", 1, 1),
        NewTopic(f"{topic}-replicas", 1, 99),
        NewTopic(f"{topic}-config", 1, 1, configs={"retention.ms": "soon"}),
    ]

    with pytest.raises(ItemErrors) as failed:
        admin.create_topics([*bad, NewTopic(topic, 1, 1)])

    assert failed.value.results.keys() == {topic}
    kinds = [type(failed.value.errors[each.name]) for each in bad]
    assert kinds == [InvalidTopicError, InvalidReplicationFactorError, InvalidConfigurationError]


def test_offsets_of_every_kind_and_records_deleted(
    admin: Admin, bootstrap: str, broker: RunningServer, topic: str
) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])
    produce(bootstrap, topic, 5)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)

    assert admin.list_offsets({full: OffsetSpec.LATEST, empty: OffsetSpec.LATEST})[full].offset == 5
    newest = admin.list_offsets({full: OffsetSpec.MAX_TIMESTAMP})[full]
    assert (newest.offset, newest.timestamp_ms) == (4, 5000)
    assert admin.list_offsets({full: OffsetSpec.EARLIEST_LOCAL})[full].offset == 0
    by_time = admin.list_offsets({full: 2500, empty: 2500})
    assert (by_time[full].offset, by_time[full].timestamp_ms, by_time[empty].offset) == (2, 3000, -1)
    if broker.name == "kafka-3.9":
        with pytest.raises(UnsupportedVersionError):
            admin.list_offsets({full: OffsetSpec.EARLIEST_PENDING_UPLOAD})

    assert admin.delete_records({full: 3}) == {full: 3}
    assert admin.list_offsets({full: OffsetSpec.EARLIEST})[full].offset == 3
    assert admin.delete_records({full: -1}) == {full: 5}
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({full: 99})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.list_offsets({TopicPartition(topic, 9): OffsetSpec.LATEST})


def test_settings_of_topics_and_brokers(admin: Admin, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    visible(admin, topic)
    resource = ConfigResource.topic(topic)
    broker_id = admin.describe_cluster().nodes[0].id
    own = ConfigResource.broker(broker_id)

    admin.incremental_alter_configs(
        {
            resource: [
                AlterConfigOp("retention.ms", "60000"),
                AlterConfigOp("cleanup.policy", "compact", AlterConfigOpType.APPEND),
            ]
        }
    )
    wait_until(lambda: value(admin, resource, "retention.ms") == "60000", 30, "not seen")
    assert value(admin, resource, "cleanup.policy") == "delete,compact"
    entry = admin.describe_configs([resource], names=["retention.ms"], include_synonyms=True)[resource]["retention.ms"]
    assert entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entry.synonyms[0].value == "60000"

    admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", None, AlterConfigOpType.DELETE)]})
    wait_until(lambda: value(admin, resource, "retention.ms") != "60000", 30, "not seen")
    admin.alter_configs({resource: {"segment.ms": "70000"}})
    wait_until(lambda: value(admin, resource, "segment.ms") == "70000", 30, "not seen")
    assert value(admin, resource, "cleanup.policy") == "delete", "what was not named is back at its default"

    settings = admin.describe_configs([own], include_documentation=True)[own]
    assert settings["log.dirs"].is_read_only
    assert settings["num.io.threads"].documentation
    with pytest.raises(ItemErrors) as failed:
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp("retention.ms", "soon")], own: [AlterConfigOp("log.cleaner.threads", "1")]},
            validate_only=True,
        )
    assert failed.value.results == {own: None}
    assert isinstance(failed.value.errors[resource], InvalidConfigurationError)


def value(admin: Admin, resource: ConfigResource, name: str) -> str | None:
    return admin.describe_configs([resource], names=[name])[resource][name].value


def test_resources_with_settings_are_listed(admin: Admin, broker: RunningServer, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    visible(admin, topic)
    if broker.name == "kafka-3.9":
        with pytest.raises(UnsupportedVersionError):
            admin.list_config_resources()
        return
    assert ConfigResource.topic(topic) in admin.list_config_resources([ConfigResourceType.TOPIC])
    assert admin.list_client_metrics_resources() == []


def test_log_directories(admin: Admin, bootstrap: str, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    produce(bootstrap, topic, 3)
    partition = TopicPartition(topic, 0)

    ((broker_id, dirs),) = admin.describe_log_dirs().items()
    ((path, log_dir),) = dirs.items()
    assert log_dir.replicas[partition].size_bytes > 0
    assert log_dir.usable_bytes > 0
    replica = TopicPartitionReplica(topic, 0, broker_id)
    assert admin.describe_replica_log_dirs([replica])[replica].current_dir == path
    with pytest.raises(LogDirNotFoundError):
        admin.alter_replica_log_dirs({replica: "/nowhere"})
    assert admin.alter_replica_log_dirs({replica: path}) == {replica: None}


def test_elections_and_reassignments(admin: Admin, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    visible(admin, topic)
    partition = TopicPartition(topic, 0)
    broker_id = admin.describe_cluster().nodes[0].id

    assert admin.elect_leaders(ElectionType.PREFERRED) == {}
    with pytest.raises(ElectionNotNeededError):
        admin.elect_leaders(ElectionType.PREFERRED, [partition])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, 9)])
    assert admin.list_partition_reassignments() == {}
    assert admin.list_partition_reassignments([partition]) == {}
    assert admin.alter_partition_reassignments({partition: [broker_id]}) == {partition: None}
    with pytest.raises(NoReassignmentInProgressError):
        admin.alter_partition_reassignments({partition: None})


def test_quotas_are_set_found_and_removed(admin: Admin, topic: str) -> None:
    entity = ClientQuotaEntity.of(user=topic)
    assert admin.alter_client_quotas({entity: {"consumer_byte_rate": 1000.0}}) == {entity: None}
    wait_until(
        lambda: admin.describe_client_quotas({"user": topic}) == {entity: {"consumer_byte_rate": 1000.0}},
        30,
        "not seen",
    )
    assert admin.alter_client_quotas({entity: {"consumer_byte_rate": None}}) == {entity: None}
    wait_until(lambda: admin.describe_client_quotas({"user": topic}) == {}, 30, "not seen")


def test_passwords_are_set_found_and_removed(admin: Admin, topic: str) -> None:
    wanted = UserScramCredentialUpsertion(topic, ScramMechanism.SCRAM_SHA_512, "secret", 5000)
    assert admin.alter_user_scram_credentials([wanted]) == {topic: None}
    described = {topic: ((ScramMechanism.SCRAM_SHA_512, 5000),)}
    wait_until(lambda: topic in admin.describe_user_scram_credentials(), 30, "not seen")
    assert admin.describe_user_scram_credentials([topic]) == described
    assert admin.alter_user_scram_credentials([], [UserScramCredentialDeletion(topic, wanted.mechanism)]) == {
        topic: None
    }
    wait_until(lambda: topic not in admin.describe_user_scram_credentials(), 30, "not seen")
    with pytest.raises(ResourceNotFoundError):
        admin.describe_user_scram_credentials([topic])


def test_what_needs_security_says_that_there_is_none(admin: Admin) -> None:
    with pytest.raises(SecurityDisabledError):
        admin.describe_acls()
    with pytest.raises(SecurityDisabledError):
        admin.delete_acls([AclBindingFilter(principal="User:nobody")])
    with pytest.raises(KafkaError) as denied:
        admin.create_delegation_token()
    assert not isinstance(denied.value, DisconnectedError)
    with pytest.raises((DelegationTokenDisabledError, KafkaError)):
        admin.describe_delegation_tokens()
