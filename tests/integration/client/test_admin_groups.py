"""Our administrator's calls about groups, transactions and the cluster, against real brokers of all three kinds."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from confluent_kafka import Consumer, Producer

from kavka.client import Admin
from kavka.client.admin import (
    AbortTransactionSpec,
    FeatureUpdate,
    GroupListing,
    GroupState,
    GroupType,
    ItemErrors,
    MemberToRemove,
    NewTopic,
    OffsetAndMetadata,
    TopicPartition,
    TransactionState,
    UpgradeType,
)
from kavka.client.api_errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    KafkaError,
    NonEmptyGroupError,
    TransactionalIdNotFoundError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kavka.protocol.api import ApiKey
from tests.support.client_brokers import KAFKA_43
from tests.support.processes import wait_until
from tests.support.server import RunningServer

WAIT_S = 60


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=bootstrap) as client:
        yield client


@contextmanager
def consuming(bootstrap: str, topic: str, group_id: str, **settings: str) -> Iterator[Consumer]:
    """A member of the group that has its partitions, polled by a thread of its own."""
    more = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "enable.auto.commit": "false", **more})
    assigned, stopping = threading.Event(), threading.Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())

    def run() -> None:
        while not stopping.is_set():
            consumer.poll(0.1)

    poller = threading.Thread(target=run, name="poller")
    poller.start()
    try:
        wait_until(assigned.is_set, WAIT_S, "not seen")
        yield consumer
    finally:
        stopping.set()
        poller.join()
        consumer.close()


def test_a_classic_group_with_members_and_without(admin: Admin, bootstrap: str, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])
    group = f"{topic}.group"
    partitions = [TopicPartition(topic, index) for index in (0, 1)]
    with consuming(bootstrap, topic, group, group_instance_id="static"):
        wait_until(
            lambda: admin.describe_consumer_groups([group])[group].state is GroupState.STABLE, WAIT_S, "not seen"
        )
        described = admin.describe_consumer_groups([group], include_authorized_operations=True)[group]
        assert (described.type, described.assignor) == (GroupType.CLASSIC, "range")
        (member,) = described.members
        assert (member.group_instance_id, set(member.assignment)) == ("static", set(partitions))
        assert described.authorized_operations
        raw = admin.describe_classic_groups([group])[group]
        assert (raw.protocol_type, raw.members[0].member_id) == ("consumer", member.member_id)

        listed = [each for each in admin.list_groups(states=[GroupState.STABLE]) if each.group_id == group]
        assert listed == [GroupListing(group, GroupType.CLASSIC, "consumer", GroupState.STABLE)]
        with pytest.raises(NonEmptyGroupError):
            admin.delete_groups([group])
        with pytest.raises(UnknownMemberIdError):
            admin.alter_group_offsets(group, {partitions[0]: 1})
        assert admin.remove_group_members(group, [MemberToRemove("static")]) == {MemberToRemove("static"): None}
        with pytest.raises(ItemErrors):
            admin.remove_group_members(group, [MemberToRemove("nobody"), MemberToRemove(member_id="nobody")])


def test_a_group_of_the_new_protocol(admin: Admin, bootstrap: str, broker: RunningServer, topic: str) -> None:
    if broker.name == "kafka-3.9":
        pytest.skip("a broker of this kind has no groups of KIP-848")
    admin.create_topics([NewTopic(topic, 1, 1)])
    group = f"{topic}.group"
    with consuming(bootstrap, topic, group, group_protocol="consumer"):
        described = admin.describe_consumer_groups([group])[group]
        assert (described.type, described.members[0].subscribed_topics) == (GroupType.CONSUMER, (topic,))
        assert described.group_epoch is not None
        assert [each.group_id for each in admin.list_groups(types=[GroupType.CONSUMER])].count(group) == 1
        with pytest.raises(GroupSubscribedToTopicError):
            admin.delete_group_offsets(group, [TopicPartition(topic, 0)])
    wait_until(lambda: admin.describe_consumer_groups([group])[group].state is GroupState.EMPTY, WAIT_S, "not seen")
    assert admin.delete_groups([group]) == {group: None}


def test_offsets_of_groups_without_members(admin: Admin, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    one, two = f"{topic}.one", f"{topic}.two"

    admin.alter_group_offsets(one, {first: 5, second: OffsetAndMetadata(6, metadata="m")})
    admin.alter_group_offsets(two, {first: 7})
    found = admin.list_group_offsets({one: None, two: [first, second]}, require_stable=True)
    assert found == {
        one: {first: OffsetAndMetadata(5), second: OffsetAndMetadata(6, metadata="m")},
        two: {first: OffsetAndMetadata(7), second: None},
    }
    assert admin.delete_group_offsets(one, [second]) == {second: None}
    assert admin.list_group_offsets({one: None}) == {one: {first: OffsetAndMetadata(5)}}
    described = admin.describe_consumer_groups([one])[one]
    assert (described.state, described.members, described.is_simple) == (GroupState.EMPTY, (), True)

    with pytest.raises(ItemErrors) as failed:
        admin.delete_groups([one, two, f"{topic}.none"])
    assert failed.value.results == {one: None, two: None}
    assert isinstance(failed.value.errors[f"{topic}.none"], GroupIdNotFoundError)
    with pytest.raises(GroupIdNotFoundError):
        admin.describe_consumer_groups([one])


def test_share_and_streams_groups_where_there_are_any(admin: Admin, broker: RunningServer, topic: str) -> None:
    if broker.name != "kafka-4.3":
        for call in (admin.describe_share_groups, admin.describe_streams_groups):
            with pytest.raises(UnsupportedVersionError):
                call([topic])
        return
    with pytest.raises(GroupIdNotFoundError):
        admin.describe_share_groups([topic])
    with pytest.raises(GroupIdNotFoundError):
        admin.describe_streams_groups([topic])
    assert admin.list_share_group_offsets({topic: None}) == {topic: {}}
    with pytest.raises(GroupIdNotFoundError):
        admin.delete_share_group_offsets(topic, [topic])


@pytest.mark.parametrize("broker", [KAFKA_43], indirect=True)
def test_a_share_groups_offsets(broker: RunningServer, topic: str) -> None:
    """Neither Kavka nor Kafka 3.9 has them."""
    partition = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.alter_share_group_offsets(topic, {partition: 0})
        admin.create_topics([NewTopic(topic, 1, 1)])

        def altered() -> bool:
            # The coordinator hears of the topic a little later.
            with suppress(UnknownTopicOrPartitionError):
                return admin.alter_share_group_offsets(topic, {partition: 0}) == {partition: None}
            return False

        wait_until(altered, WAIT_S, "the topic is not known")
        assert admin.list_share_group_offsets({topic: [partition]})[topic][partition].start_offset == 0
        described = admin.describe_share_groups([topic])[topic]
        assert (described.state, described.members) == (GroupState.EMPTY, ())
        assert [group.group_id for group in admin.list_groups(types=[GroupType.SHARE])] == [topic]
        assert admin.delete_share_group_offsets(topic, [topic]) == {topic: None}
        assert admin.delete_groups([topic]) == {topic: None}


def test_a_transaction_is_seen_and_its_producer_fenced(admin: Admin, bootstrap: str, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    partition = TopicPartition(topic, 0)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(WAIT_S)

    described = admin.describe_transactions([topic])[topic]
    assert (described.state, described.partitions) == (TransactionState.ONGOING, (partition,))
    (listed,) = [each for each in admin.list_transactions() if each.transactional_id == topic]
    assert (listed.producer_id, listed.state) == (described.producer_id, TransactionState.ONGOING)
    assert admin.list_transactions(producer_ids=[described.producer_id], longer_than_ms=0)
    (state,) = admin.describe_producers([partition])[partition]
    assert (state.producer_id, state.current_transaction_start_offset) == (described.producer_id, 0)

    fenced = admin.fence_producers([topic])[topic]
    assert fenced.producer_epoch > described.producer_epoch
    wait_until(
        lambda: (
            admin.describe_transactions([topic])[topic].state
            in (TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
        ),
        WAIT_S,
        "not aborted",
    )
    assert admin.describe_producers([partition])[partition][0].current_transaction_start_offset == -1
    with pytest.raises(TransactionalIdNotFoundError):
        admin.describe_transactions([f"{topic}.none"])


def test_a_hanging_transaction_is_aborted_at_its_partition(admin: Admin, bootstrap: str, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    partition = TopicPartition(topic, 0)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"hangs", partition=0)
    producer.flush(WAIT_S)
    (state,) = admin.describe_producers([partition])[partition]

    admin.abort_transaction(AbortTransactionSpec(partition, state.producer_id, state.producer_epoch, 0))

    assert admin.describe_producers([partition])[partition][0].current_transaction_start_offset == -1


def test_the_cluster_its_versions_and_features(admin: Admin, broker: RunningServer) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True)
    (node,) = cluster.nodes
    assert (node.host, node.port, cluster.controller) == (broker.host, broker.port, node)
    assert cluster.cluster_id
    assert cluster.authorized_operations
    if broker.name == "kafka-3.9":
        with pytest.raises(UnsupportedVersionError):
            admin.describe_cluster(include_fenced_brokers=True)
    else:
        assert admin.describe_cluster(include_fenced_brokers=True).fenced == frozenset()

    versions = admin.describe_api_versions()[node.id]
    assert versions[ApiKey.METADATA].newest >= 12
    features = admin.describe_features()
    # KRaft's epoch is an offset of its log, which grows with the time.
    assert admin.describe_features(broker_id=node.id).finalized == features.finalized
    if broker.name != "kafka-3.9":
        lower = FeatureUpdate(features.finalized["transaction.version"].newest - 1, UpgradeType.SAFE_DOWNGRADE)
        assert admin.update_features({"transaction.version": lower}, validate_only=True)
        assert admin.describe_features().finalized == features.finalized, "it was only asked whether it could be"
    with pytest.raises(KafkaError):
        admin.update_features({"nonsense": FeatureUpdate(1)})


def test_what_kraft_alone_has(admin: Admin, broker: RunningServer) -> None:
    if broker.name != "kafka-4.3":
        with pytest.raises(UnsupportedVersionError):
            admin.describe_metadata_quorum()
        with pytest.raises(UnsupportedVersionError):
            admin.unregister_broker(99)
        return
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id in {voter.replica_id for voter in quorum.voters}
    assert quorum.endpoints[quorum.leader_id]
    with pytest.raises(KafkaError, match="99"):
        admin.unregister_broker(99)
    with pytest.raises(KafkaError):
        admin.remove_raft_voter(99, bytes(16))


def test_threads_share_a_client(admin: Admin, topic: str) -> None:
    def life(number: int) -> bool:
        name = f"{topic}.{number}"
        admin.create_topics([NewTopic(name, 1, 1)])
        wait_until(lambda: name in admin.list_topics(), WAIT_S, "not seen")
        admin.alter_group_offsets(name, {TopicPartition(name, 0): number})
        committed = admin.list_group_offsets({name: None})[name][TopicPartition(name, 0)]
        admin.delete_topics([name])
        return bool(committed == OffsetAndMetadata(number))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(life, range(16)))
