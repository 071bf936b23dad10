"""Three brokers on one ZooKeeper: who is told what, what each answers, and how one leaves."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.server import Broker
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.processes import wait_until
from tests.support.registries import expire_session
from tests.support.running_cluster import RunningCluster
from tests.support.wire import TOPIC, RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

IDS = (1, 2, 3)
TIMEOUT_S = 120.0


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[RunningCluster]:
    with RunningCluster(zookeeper.bootstrap, tmp_path, IDS) as made:
        yield made


def address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.endpoints_text().rpartition("//")[2].rpartition(":")
    return host, int(port)


def ask(broker: Broker, request: Any, version: int) -> Any:
    with RawClient(*address(broker)) as client:
        return client.ask(request, version)


def create(broker: Broker, name: str, partitions: int = 3, factor: int = 3) -> Any:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, assignments=[], configs=[])
    (answer,) = ask(broker, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics
    return answer


def told(broker: Broker, *topics: str, creates: bool = False) -> Any:
    asked = [MetadataRequestTopic(name=name) for name in topics]
    return ask(broker, MetadataRequest(topics=asked, allow_auto_topic_creation=creates), 12)


def roles(broker: Broker, topic: str) -> dict[int, tuple[int, int, tuple[int, ...]]]:
    """Leader, leader epoch and replicas of each partition, as the broker was told to lead or follow them."""
    return {
        index: (partition.role.leader_id, partition.role.leader_epoch, partition.role.replicas)
        for (name, index), partition in broker.services.replicas.partitions.items()
        if name == topic
    }


def test_every_broker_knows_all_and_one_is_the_controller(cluster: RunningCluster) -> None:
    cluster.wait_for_one_controller()
    for broker in cluster.brokers.values():
        answer = told(broker)
        assert sorted(each.node_id for each in answer.brokers) == list(IDS)
        assert answer.controller_id == cluster.controller.broker_id
    assert [broker.services.controller.is_active for broker in cluster.brokers.values()].count(True) == 1


def test_a_topic_is_led_and_followed_by_all_its_replicas(cluster: RunningCluster) -> None:
    assert create(cluster.controller, "visits").error_code == ErrorCode.NONE

    cluster.wait_for_topic("visits", 3)
    one, *others = (roles(broker, "visits") for broker in cluster.brokers.values())
    assert others == [one, one]
    assert {leader for leader, _, _ in one.values()} == set(IDS)
    assert all(epoch == 0 and sorted(replicas) == list(IDS) for _, epoch, replicas in one.values())
    for broker in cluster.brokers.values():
        (topic,) = told(broker, "visits").topics
        assert {each.partition_index: each.leader_id for each in topic.partitions} == {
            index: leader for index, (leader, _, _) in one.items()
        }


def test_what_a_topic_is_configured_with_when_it_is_made_holds_on_all_brokers(cluster: RunningCluster) -> None:
    configs = [CreatableTopicConfig(name="segment.bytes", value="1234567")]
    topic = CreatableTopic(name="visits", num_partitions=3, replication_factor=2, assignments=[], configs=configs)
    ask(cluster.controller, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)

    cluster.wait_for_topic("visits", 2)
    for broker in cluster.brokers.values():
        logs = [each.log for (name, _), each in broker.services.replicas.partitions.items() if name == "visits"]
        assert [log.config.segment_bytes for log in logs if log is not None] == [1234567] * 2
        with RawClient(*address(broker)) as client:
            assert client.describe(TOPIC, "visits")["segment.bytes"] == "1234567"


def test_a_broker_that_is_not_the_controller_says_so_to_who_creates_topics(cluster: RunningCluster) -> None:
    other = next(broker for broker in cluster.brokers.values() if broker is not cluster.controller)

    assert create(other, "visits").error_code == ErrorCode.NOT_CONTROLLER


def test_any_broker_has_topics_created_that_clients_ask_for(cluster: RunningCluster) -> None:
    for broker_id, broker in cluster.brokers.items():
        name = f"wanted-at-{broker_id}"
        assert told(broker, name, creates=True).topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        cluster.wait_for_topic(name, 1)


def test_any_broker_has_a_coordinators_topic_created_with_all_its_replicas(cluster: RunningCluster) -> None:
    other = next(broker for broker in cluster.brokers.values() if broker is not cluster.controller)

    def is_found() -> bool:
        answer: Any = ask(other, FindCoordinatorRequest(key="readers", key_type=0), 2)
        return bool(answer.error_code == ErrorCode.NONE)

    wait_until(is_found, TIMEOUT_S, lambda: "no coordinator")
    topic = other.services.metadata.current.topics[GROUP_METADATA_TOPIC]
    assert {tuple(sorted(each.replicas)) for each in topic} == {IDS}


def test_producer_ids_of_all_brokers_are_different(cluster: RunningCluster) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)

    def given(broker: Broker) -> tuple[int] | None:
        answer = ask(broker, request, 4)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), answer
        return (answer.producer_id,) if answer.error_code == ErrorCode.NONE else None

    ids = [
        wait_until(partial(given, broker), TIMEOUT_S, "no producer id")
        for broker in cluster.brokers.values()
        for _ in range(2)
    ]

    assert len(set(ids)) == 6


def test_a_broker_that_stops_hands_its_leaderships_over_while_it_serves(cluster: RunningCluster) -> None:
    create(cluster.controller, "visits")
    cluster.wait_for_topic("visits", 3)
    leaving = next(broker_id for broker_id, broker in cluster.brokers.items() if broker is not cluster.controller)

    cluster.stop(leaving)

    for broker in cluster.brokers.values():
        # The controller answers who leaves, and then others, when it has begun to tell all.
        wait_until(partial(is_handed_over, broker, leaving), TIMEOUT_S, f"{leaving} leads still")
        # Once: nobody was without a leader.
        assert max(epoch for _, epoch, _ in roles(broker, "visits").values()) == 1
    cluster.start(leaving)
    cluster.wait_for_topic("visits", 3)


def is_handed_over(broker: Broker, leaving: int) -> bool:
    return leaving not in {leader for leader, _, _ in roles(broker, "visits").values()}


def test_when_the_controller_stops_another_one_goes_on(cluster: RunningCluster) -> None:
    create(cluster.controller, "visits")
    cluster.wait_for_topic("visits", 3)
    before = cluster.controller.broker_id

    cluster.stop(before)

    cluster.wait_for_controller(other_than=before)
    assert create(cluster.controller, "clicks", factor=2).error_code == ErrorCode.NONE
    cluster.start(before)
    cluster.wait_for_topic("clicks", 2)
    cluster.wait_for_topic("visits", 3)


@pytest.mark.parametrize("is_controller", [False, True])
def test_a_broker_whose_session_was_lost_comes_back_under_a_new_epoch(
    cluster: RunningCluster, zookeeper: ZooKeeperProcess, is_controller: bool
) -> None:
    create(cluster.controller, "visits")
    cluster.wait_for_topic("visits", 3)
    broker = next(each for each in cluster.brokers.values() if each.services.controller.is_active is is_controller)
    registry: Any = broker.services.registry
    before = broker._membership.epoch

    expire_session(registry, zookeeper.bootstrap)

    wait_until(lambda: broker._membership.epoch not in (-1, before), TIMEOUT_S, lambda: "no new epoch")
    cluster.wait_for_one_controller()
    cluster.wait_for_brokers()
    # All that may be as it was before: whoever controls has to hear of the end of the old session first.
    wait_until(partial(is_created, cluster, "clicks"), TIMEOUT_S, "no topic can be made")
    cluster.wait_for_topic("clicks", 3)
    cluster.wait_for_topic("visits", 3)


def is_created(cluster: RunningCluster, name: str) -> bool:
    """Whether the topic is there, now or from an order that was given up before it was carried out."""
    controllers = [each for each in cluster.brokers.values() if each.services.controller.is_active]
    codes = {create(each, name).error_code for each in controllers}
    return bool(codes & {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})
