"""Leaders and controllers that move under clients of all kinds: administrators find them, errors name them, replicas
nearby are read from, and logs that were cut are noticed.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from kavka.client import Admin, Consumer, Producer
from kavka.client.admin import AlterConfigOp, ConfigResource, NewPartitions, NewTopic, OffsetSpec
from kavka.client.consumer.errors import LogTruncationError
from kavka.client.metadata import Metadata
from kavka.client.topic_partition import TopicPartition
from tests.support.client_cluster import IDS, QUICK, ClientCluster, rack_of
from tests.support.process_cluster import INTERNAL, NOBODY
from tests.support.processes import wait_until

pytestmark = [pytest.mark.java, pytest.mark.slow]

TIMEOUT_S = 120.0
MOST_MOVES = 10
"""Of a leader, until an error names one before metadata do that were asked for upon something else."""


def test_administrators_go_on_under_each_controller(cluster: ClientCluster, admin: Admin, topic: str) -> None:
    described = admin.describe_cluster()
    assert described.controller is not None
    assert sorted(node.id for node in described.nodes) == list(IDS)
    for controller in [each for each in IDS if each != described.controller.id]:
        cluster.make_controller(controller)
        do_chores(cluster, admin, f"{topic}-{controller}")
    # Nobody tells the client: it finds out that its controller, and a leader, are gone.
    killed = cluster.controller_id
    first, second = (each for each in IDS if each != killed)
    place = TopicPartition(topic, 0)
    admin.create_topics([NewTopic(topic, assignment={0: [killed, first, second]})])
    assert admin.list_offsets({place: OffsetSpec.LATEST})[place].offset == 0
    cluster.wait_in_sync(topic)
    cluster.kill(killed)
    other = f"{topic}-other"
    admin.create_topics([NewTopic(other, assignment={0: [first]})])
    assert admin.list_offsets({place: OffsetSpec.LATEST})[place].offset == 0
    assert admin.delete_topics([topic, other]) == {topic: None, other: None}
    cluster.start(killed)
    cluster.wait_in_sync(*[name for name in INTERNAL if cluster.told(name)])


def do_chores(cluster: ClientCluster, admin: Admin, name: str) -> None:
    """All that a controller does for administrators, and what leaders do."""
    places = [TopicPartition(name, number) for number in range(3)]
    admin.create_topics([NewTopic(name, assignment={0: [1, 2], 1: [2, 3]})])
    admin.create_partitions({name: NewPartitions(3, [[3, 1]])})
    admin.alter_partition_reassignments({places[0]: [2, 3, 1]})
    wait_until(lambda: not admin.list_partition_reassignments(places), TIMEOUT_S, "it is still on the way")
    cluster.lead_as_preferred(admin, name)
    partitions = admin.describe_topics([name])[name].partitions
    assert [(each.leader_id, each.replicas) for each in partitions] == [(2, (2, 3, 1)), (2, (2, 3)), (3, (3, 1))]
    resource = ConfigResource.topic(name)
    admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", "86400000")]})
    wait_until(
        lambda: admin.describe_configs([resource])[resource]["retention.ms"].value == "86400000", TIMEOUT_S, "not set"
    )
    with Producer(QUICK, bootstrap_servers=cluster.bootstrap) as producer:
        for place in places:
            producer.send(name, b"", partition=place.partition).result(TIMEOUT_S)
    found = admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    assert [found[place].offset for place in places] == [1, 1, 1]
    assert admin.delete_records(dict.fromkeys(places, 1)) == dict.fromkeys(places, 1)
    admin.delete_topics([name])


def test_what_each_broker_says_is_put_together(cluster: ClientCluster, admin: Admin, topic: str) -> None:
    brokers = [ConfigResource.broker(each) for each in IDS]
    racks = admin.describe_configs(brokers, names=["broker.rack"])
    assert [racks[each]["broker.rack"].value for each in brokers] == [rack_of(each) for each in IDS]
    assert admin.describe_log_dirs().keys() == admin.describe_api_versions().keys() == set(IDS)
    admin.create_topics([NewTopic(topic, num_partitions=1)])
    # Until the groups' coordinator has heard of it, it is none to commit offsets of.
    cluster.wait_in_sync(topic)
    groups = [f"{topic}-{number}" for number in range(5)]
    for group in groups:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0})
    assert set(groups) <= {each.group_id for each in admin.list_groups()}
    assert admin.describe_consumer_groups(groups).keys() == set(groups)
    assert admin.delete_groups(groups) == dict.fromkeys(groups)
    admin.list_transactions()


def test_errors_name_the_new_leader(cluster: ClientCluster, admin: Admin, topic: str) -> None:
    """KIP-951: it is known before the metadata that are asked for upon the error are there."""
    place = TopicPartition(topic, 0)
    admin.create_topics([NewTopic(topic, assignment={0: [1, 2, 3]})])
    cluster.wait_in_sync(topic)
    with reader(cluster) as consumer, Producer(QUICK, bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"before").result(TIMEOUT_S)
        consumer.assign([place])
        assert values_of(consumer, 1) == [b"before"]
        learnt = [leaders_learnt(each, place) for each in (producer._metadata, consumer._core.metadata)]
        for turn in range(1, MOST_MOVES):
            admin.alter_partition_reassignments({place: [1 + turn % 2, 2 - turn % 2, 3]})
            cluster.lead_as_preferred(admin, topic)
            assert producer.send(topic, b"%d" % turn).result(TIMEOUT_S).offset == turn
            assert values_of(consumer, 1) == [b"%d" % turn]
            if all(map(were_named, learnt)):
                return
        raise AssertionError(f"no error named a leader first: {learnt}")


def test_the_replica_in_ones_own_rack_is_read_from(cluster: ClientCluster, admin: Admin, topic: str) -> None:
    """KIP-392; and the leader again, once that one cannot be reached."""
    place = TopicPartition(topic, 0)
    admin.create_topics([NewTopic(topic, assignment={0: [1, 2, 3]})])
    with (
        reader(cluster, client_rack=rack_of(3)) as consumer,
        Producer(QUICK, bootstrap_servers=cluster.bootstrap) as producer,
    ):
        consumer.assign([place])
        for number in range(20):
            producer.send(topic, b"%d" % number)
        assert values_of(consumer, 20) == [b"%d" % number for number in range(20)]
        closest = "preferred-read-replica", {"topic": topic, "partition": 0}
        assert consumer.metrics[closest] == 3
        cluster.links[3].refuses = True
        cluster.links[3].cut()
        producer.send(topic, b"20")
        assert values_of(consumer, 1) == [b"20"]
        assert consumer.metrics[closest] != 3
        cluster.links[3].mend()


def test_a_log_that_was_cut_by_an_unclean_election_is_noticed(cluster: ClientCluster, admin: Admin, topic: str) -> None:
    """KIP-320: who asks for it is told, others go on where the logs part; the producer goes on, too (KIP-360)."""
    ahead, behind, other = IDS
    place = TopicPartition(topic, 0)
    cluster.make_controller(other)
    cluster.wait_in_sync(*[name for name in INTERNAL if cluster.told(name)])
    admin.create_topics([NewTopic(topic, assignment={0: [ahead, behind]}, configs={"min.insync.replicas": "1"})])
    cluster.wait_in_sync(topic)
    cluster.kavka(behind).expect_errors("beyond is lost")
    with (
        reader(cluster, auto_offset_reset="none") as strict,
        reader(cluster) as lenient,
        Producer(QUICK, bootstrap_servers=cluster.bootstrap) as producer,
    ):
        for value in (b"one", b"two"):
            producer.send(topic, value).result(TIMEOUT_S)
        cluster.kill(behind)
        cluster.wait_for([topic], lambda told: told.isr == {ahead}, "the dead broker is in the ISR")
        producer.send(topic, b"lost").result(TIMEOUT_S)
        for consumer in (strict, lenient):
            consumer.assign([place])
            consumer.seek(place, 0)
            assert values_of(consumer, 3) == [b"one", b"two", b"lost"]
        cluster.kill(ahead)
        cluster.wait_for([topic], lambda told: told.leader == NOBODY, "the dead broker leads")
        cluster.start(behind)
        change = AlterConfigOp("unclean.leader.election.enable", "true")
        admin.incremental_alter_configs({ConfigResource.topic(topic): [change]})
        assert producer.send(topic, b"three").result(TIMEOUT_S).offset == 2
        with pytest.raises(LogTruncationError) as told:
            values_of(strict, 1)
        assert (told.value.partitions, told.value.divergent_offsets) == ({place: 3}, {place: 2})
        assert values_of(lenient, 1) == [b"three"]
        cluster.start(ahead)
        cluster.wait_in_sync(topic)


def reader(cluster: ClientCluster, **settings: Any) -> Consumer:
    return Consumer(QUICK, **{"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest", **settings})


def values_of(consumer: Consumer, count: int) -> list[bytes | None]:
    """The next records' values, at least so many."""
    found: list[bytes | None] = []

    def are_there() -> bool:
        found.extend(record.value for record in consumer.poll(500))
        return len(found) >= count

    wait_until(are_there, TIMEOUT_S, lambda: f"{found} only")
    return found


def leaders_learnt(metadata: Metadata, place: TopicPartition) -> list[tuple[int, int]]:
    """The version of each snapshot from now on, and who leads in it; the present one first."""
    learnt: list[tuple[int, int]] = []

    def note(cluster: Any) -> None:
        info = cluster.partition(place)
        learnt.append((cluster.version, NOBODY if info is None else info.leader_id))

    note(metadata.cluster)
    listen: Callable[[Any], None] = note
    metadata.listeners.append(listen)
    return learnt


def were_named(snapshots: list[tuple[int, int]]) -> bool:
    """Whether a snapshot is that of before, but for the leader."""
    return any(version == former and leader != before for (former, before), (version, leader) in pairwise(snapshots))
