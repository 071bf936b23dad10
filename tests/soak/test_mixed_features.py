"""What Kavka has and Apache Kafka 3.9 has not is agreed on while Kafka is away, and given up before it comes back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kavka.cluster.features import GROUP_VERSION, TRANSACTION_VERSION
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.process_cluster import INTERNAL, TIMEOUT_S, ProcessCluster
from tests.support.processes import ProcessDiedError, wait_until
from tests.support.transactions import TransactionalProducers, read_committed
from tests.support.wire import PRODUCE_VERSION, batch_of, produce_request
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.soak, pytest.mark.java, pytest.mark.timeout(0)]

KAFKA, KAVKA, OTHER = 1, 2, 3
TOPIC, GROUP, NOW_MS = "visits", "readers", 1_700_000_000_000
ALL = (TOPIC, *INTERNAL)
UPGRADE, SAFE_DOWNGRADE = 1, 2
GROUP_CONFIG = 32


@pytest.fixture
def cluster(zookeeper: ZooKeeperProcess, tmp_path: Path) -> Iterator[ProcessCluster]:
    with ProcessCluster(zookeeper, tmp_path, kafkas=[KAFKA], kavkas=[KAVKA, OTHER]) as made:
        made.make_controller(KAVKA)
        made.create(TOPIC, 1, first=KAVKA)
        for kind in (0, 1):
            made.ask(KAVKA, FindCoordinatorRequest(key_type=kind, coordinator_keys=["somebody"]), 4)
        made.wait_in_sync(*ALL)
        yield made


def agree(cluster: ProcessCluster, feature: str, level: int, kind: int = UPGRADE) -> tuple[int, str | None]:
    wanted = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    (result,) = cluster.ask_controller(UpdateFeaturesRequest(feature_updates=[wanted]), 1).results
    return result.error_code, result.error_message


def heartbeat(cluster: ProcessCluster, broker_id: int) -> int:
    """A member of the consumer protocol joins: the answer's error."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="others", member_id="", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=[TOPIC]
    )
    return int(cluster.ask(broker_id, request, 0).error_code)


def write(cluster: ProcessCluster, value: bytes) -> None:
    leader = cluster.told(TOPIC)[0].leader
    request = produce_request(TOPIC, batch_of([value], timestamp_ms=NOW_MS), acks=-1)
    (answer,) = cluster.ask(leader, request, PRODUCE_VERSION).responses
    assert answer.partition_responses[0].error_code == ErrorCode.NONE, answer


def read_on(cluster: ProcessCluster, protocol: str) -> list[str]:
    """What the group reads from where it was; then it commits and leaves."""
    running = ",".join(cluster.brokers[each].bootstrap for each in cluster.running)
    settings = {"bootstrap.servers": running, "group.id": GROUP, "group.protocol": protocol, "log_level": 2}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    consumer.subscribe([TOPIC])
    found: list[str] = []

    def has_all() -> bool:
        found.extend((each.value() or b"").decode() for each in consumer.consume(100, 0.5) if each.error() is None)
        place = TopicPartition(TOPIC, 0)
        positions = consumer.position([place])
        return bool(found) and positions[0].offset >= consumer.get_watermark_offsets(place, 10)[1]

    wait_until(has_all, TIMEOUT_S, lambda: f"read {found}")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def transact(cluster: ProcessCluster, log: Path, value: str) -> None:
    """By a Java client of 4.3, which goes by what the cluster agrees on."""
    with TransactionalProducers(cluster.brokers[KAVKA], log) as producers:
        producers.open("one", "transactor")
        producers.do("one begin", f"one send {TOPIC} 0 {value}", "one commit", "one close")


def test_features_go_up_without_kafka_and_down_before_it_comes_back(cluster: ProcessCluster, tmp_path: Path) -> None:
    log = tmp_path / "transactor.log"
    assert {heartbeat(cluster, each) for each in cluster.running} == {ErrorCode.UNSUPPORTED_VERSION}
    code, message = agree(cluster, GROUP_VERSION, 1)
    assert (code, f"[{KAFKA}]" in (message or "")) == (ErrorCode.INVALID_UPDATE_VERSION, True)
    transact(cluster, log, "plain")
    write(cluster, b"one")
    assert read_on(cluster, "classic") == ["plain", "one"]

    # Without Kafka.
    cluster.place(ALL, [KAVKA, OTHER])
    cluster.stop(KAFKA)
    assert agree(cluster, GROUP_VERSION, 1)[0] == agree(cluster, TRANSACTION_VERSION, 2)[0] == ErrorCode.NONE
    wait_until(lambda: heartbeat(cluster, OTHER) != ErrorCode.UNSUPPORTED_VERSION, TIMEOUT_S, "not agreed on")
    transact(cluster, log, "newer")
    assert read_on(cluster, "consumer") == ["newer"]
    with pytest.raises(ProcessDiedError):
        cluster.brokers[KAFKA].start()
    said = (tmp_path / str(KAFKA) / "kafka.log").read_text()
    assert GROUP_VERSION in said

    # Kafka comes back, and coordinates.
    assert agree(cluster, GROUP_VERSION, 0, SAFE_DOWNGRADE)[0] == ErrorCode.NONE
    assert agree(cluster, TRANSACTION_VERSION, 0, SAFE_DOWNGRADE)[0] == ErrorCode.NONE
    cluster.start(KAFKA)
    with cluster.client(KAVKA) as client:
        assert (
            client.alter(GROUP_CONFIG, GROUP, [("consumer.session.timeout.ms", "50000")]).error_code == ErrorCode.NONE
        )
    cluster.brokers[KAFKA].process.wait_for_log("ERROR.*config_change", TIMEOUT_S)
    for number, coordinator in enumerate((KAFKA, KAVKA, KAFKA)):
        cluster.lead(ALL, coordinator)
        transact(cluster, log, f"plain.{number}")
        write(cluster, b"more.%d" % number)
        assert read_on(cluster, "classic") == [f"plain.{number}", f"more.{number}"]
    assert read_committed(cluster.brokers[KAFKA], TOPIC)[:3] == ["plain", "one", "newer"]
    cluster.wait_until_identical(TOPIC)
