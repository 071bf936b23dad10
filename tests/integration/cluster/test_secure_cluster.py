"""Three brokers that say to each other who they are, over TLS, and let in nobody who does not."""

from collections.abc import Iterator

import pytest

from kavka.cli.users.without_broker import write_user
from kavka.client import Admin, Consumer, NewTopic, Producer
from kavka.client.api_errors import SaslAuthenticationError, TopicAuthorizationError
from kavka.config.broker_config import BrokerConfig
from tests.support.processes import free_port, wait_until
from tests.support.running_cluster import HOST, RunningCluster
from tests.support.secure_listeners import BROKER_SECRET, BROKER_USER, SECRET, USER, SecureListeners, client_jaas
from tests.support.zookeeper_process import ZooKeeperProcess

IDS = (1, 2, 3)
TIMEOUT_S = 120.0
MECHANISM = "SCRAM-SHA-512"
SETTINGS = {
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,BROKERS:SASL_SSL",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": MECHANISM,
    "sasl.mechanism.inter.broker.protocol": MECHANISM,
    "listener.name.brokers.scram-sha-512.sasl.jaas.config": client_jaas(MECHANISM, BROKER_USER, BROKER_SECRET),
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"User:{BROKER_USER}",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    directory = tmp_path_factory.mktemp("secure")
    stores = SecureListeners(directory / "stores")
    settings = {**SETTINGS, **stores.stores("key", stores.key_store), **stores.stores("trust", stores.trust_store)}
    made = RunningCluster(zookeeper.bootstrap, directory, IDS, settings)
    for own in made.settings.values():
        own["listeners"] = f"CLIENTS://{HOST}:{free_port()},BROKERS://{HOST}:{free_port()}"
    for user, secret in ((BROKER_USER, BROKER_SECRET), (USER, SECRET)):
        write_user(BrokerConfig(made.settings[1]), user, [MECHANISM], secret, 4096)
    with made:
        yield made


def client(cluster: RunningCluster, user: str = BROKER_USER, secret: str = BROKER_SECRET) -> dict[str, str]:
    """Settings by which that user enters."""
    addresses = [own["listeners"].partition(",")[0].rpartition("//")[2] for own in cluster.settings.values()]
    return {
        "bootstrap.servers": ",".join(addresses),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": client_jaas(MECHANISM, user, secret),
    }


def create(cluster: RunningCluster, topic: str) -> None:
    with Admin(client(cluster)) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=3)])


def test_replicas_follow_over_a_secure_listener(cluster: RunningCluster) -> None:
    create(cluster, "followed")
    with Producer(client(cluster)) as producer:
        for partition in range(3):
            producer.send("followed", b"value", partition=partition).result(TIMEOUT_S)
    with Admin(client(cluster)) as admin:
        wait_until(
            lambda: all(len(each.isr) == 3 for each in admin.describe_topics(["followed"])["followed"].partitions),
            TIMEOUT_S,
            lambda: "not all replicas are in sync",
        )


def test_transactions_reach_all_brokers(cluster: RunningCluster) -> None:
    create(cluster, "transacted")
    with Producer(client(cluster), transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for partition in range(3):
            producer.send("transacted", b"value", partition=partition)
        producer.commit_transaction()
    settings = {**client(cluster), "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    with Consumer(settings, group_id="readers") as consumer:
        consumer.subscribe(["transacted"])
        read: list[object] = []

        def has_read() -> bool:
            read.extend(consumer.poll(100))
            return len(read) == 3

        wait_until(has_read, TIMEOUT_S, lambda: f"read: {read}")


def test_who_is_no_broker_may_do_nothing_without_rights(cluster: RunningCluster) -> None:
    create(cluster, "closed")
    ways = client(cluster, USER, SECRET)
    with Producer(ways, enable_idempotence=False) as producer, pytest.raises(TopicAuthorizationError):
        producer.send("closed", b"value").result(TIMEOUT_S)


def test_a_wrong_password_is_told_at_once(cluster: RunningCluster) -> None:
    with Admin(client(cluster, USER, "guessed")) as admin, pytest.raises(SaslAuthenticationError):
        admin.list_topics(timeout_ms=TIMEOUT_S * 1000)
