"""Client by mechanism by transport: each produces a record by a secure listener and reads it back.

Kavka's own client enters Kavka's broker by every way; the rest of the table, and Apache Kafka's brokers, are for soak.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kavka.client import Admin, Consumer, NewTopic, Producer, TopicPartition, link
from kavka.client.api_errors import AuthenticationError, SaslAuthenticationError, SslAuthenticationError
from tests.support.kavka_process import KavkaProcess
from tests.support.other_clients import ClientFailedError
from tests.support.processes import free_port, wait_until
from tests.support.secure_kafka import SECURE_KAFKAS
from tests.support.secure_listeners import MECHANISMS, SECRET, SecureListeners
from tests.support.secured_clients import CLIENTS, REFUSALS, UNABLE, VALUE, Way
from tests.support.server import RunningServer

WAYS: list[Way] = [("SSL", None), *((p, m) for p in ("SASL_PLAINTEXT", "SASL_SSL") for m in MECHANISMS)]
WITH_PASSWORDS = [way for way in WAYS if way[1] not in (None, "OAUTHBEARER")]
TIMEOUT_MS = 60_000.0
RENEWED = "SCRAM-SHA-256"
SESSION_MS = 20_000


def name_of(way: Way) -> str:
    return "-".join(part for part in way if part is not None)


OTHERS = [
    (client, way) for client in CLIENTS if client != "kavka" for way in WAYS if way[1] not in UNABLE.get(client, ())
]
by_each_way = pytest.mark.parametrize("way", WAYS, ids=name_of)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> SecureListeners:
    return SecureListeners(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def kavka(tmp_path_factory: pytest.TempPathFactory, secure: SecureListeners) -> Iterator[RunningServer]:
    plain = f"PLAINTEXT://{secure.host}:{free_port()}"
    renewed = f"listener.name.sasl_ssl.{RENEWED.lower()}.connections.max.reauth.ms"
    settings = {"listeners": f"{plain},{secure.listeners}", renewed: str(SESSION_MS), **secure.settings()}
    with KavkaProcess(tmp_path_factory.mktemp("kavka"), settings) as broker:
        secure.create_scram_users(plain.rpartition("//")[2])
        yield broker
        log = broker.process.log_text()
    assert SECRET not in log


@pytest.fixture(scope="module", params=SECURE_KAFKAS)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureListeners]:
    """Apache Kafka; its listeners."""
    own = SecureListeners(tmp_path_factory.mktemp("stores"))
    broker = SECURE_KAFKAS[request.param](tmp_path_factory.mktemp("kafka"), own)
    with ExitStack() as stack:
        stack.callback(broker.stop)
        stack.callback(broker.kill)
        broker.start()
        own.create_scram_users(broker.bootstrap)
        yield own


def create(secure: SecureListeners, topic: str) -> None:
    with Admin(secure.client("SASL_PLAINTEXT", "SCRAM-SHA-512")) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])


@by_each_way
@pytest.mark.usefixtures("kavka")
def test_kavkas_own_client_enters_by_every_way(secure: SecureListeners, way: Way, topic: str, tmp_path: Path) -> None:
    create(secure, topic)
    assert CLIENTS["kavka"](secure, way, topic, SECRET, tmp_path) == VALUE


@pytest.mark.parametrize("way", WITH_PASSWORDS, ids=name_of)
@pytest.mark.usefixtures("kavka")
def test_a_wrong_password_is_told_at_once_and_not_shown(secure: SecureListeners, way: Way) -> None:
    settings = secure.client(*way, secret="guessed-0815")
    with Admin(settings) as admin, pytest.raises(SaslAuthenticationError) as caught:
        admin.list_topics(timeout_ms=TIMEOUT_MS)
    assert "guessed-0815" not in str(caught.value)


@pytest.mark.usefixtures("kavka")
def test_producers_and_consumers_hear_of_it_too(secure: SecureListeners) -> None:
    settings = secure.client("SASL_PLAINTEXT", "PLAIN", secret="guessed-0815")
    with Producer(settings) as producer, pytest.raises(SaslAuthenticationError):
        producer.send("anywhere", VALUE).result(TIMEOUT_MS / 1000)
    with Producer(settings, transactional_id="t") as producer, pytest.raises(SaslAuthenticationError):
        producer.init_transactions()
    with Consumer(settings, group_id="g") as consumer:
        consumer.subscribe(["anywhere"])
        with pytest.raises(SaslAuthenticationError):
            consumer.poll(TIMEOUT_MS)
        with pytest.raises(SaslAuthenticationError):
            consumer.committed([TopicPartition("anywhere", 0)], timeout_ms=TIMEOUT_MS)


@pytest.mark.usefixtures("kavka")
def test_sessions_are_renewed_while_records_are_sent(
    secure: SecureListeners, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(secure, topic)
    # Long before a session ends: a busy machine would come too late else, and the connection be lost.
    monkeypatch.setattr(link, "REAUTHENTICATED_AFTER", (0.05, 0.06))
    with Producer(secure.client("SASL_SSL", RENEWED)) as producer:

        def is_renewed() -> bool:
            producer.send(topic, VALUE).result(TIMEOUT_MS / 1000)
            return producer.metrics["successful-reauthentication-total"] >= 2

        wait_until(is_renewed, TIMEOUT_MS / 1000, lambda: "no session was renewed")
        assert producer.metrics["connection-close-total"] == 0


@pytest.mark.usefixtures("kavka")
def test_a_broker_that_is_not_trusted_is_told_at_once(secure: SecureListeners, tmp_path: Path) -> None:
    strangers = SecureListeners(tmp_path / "others").stores("trust", SecureListeners(tmp_path).trust_store)
    with Admin({**secure.client("SSL"), **strangers}) as admin, pytest.raises(SslAuthenticationError):
        admin.list_topics(timeout_ms=TIMEOUT_MS)


@pytest.mark.soak
@pytest.mark.parametrize(("client", "way"), OTHERS, ids=[f"{client}-{name_of(way)}" for client, way in OTHERS])
@pytest.mark.usefixtures("kavka")
def test_others_clients_enter_by_every_way(
    secure: SecureListeners, client: str, way: Way, topic: str, tmp_path: Path
) -> None:
    create(secure, topic)
    assert CLIENTS[client](secure, way, topic, SECRET, tmp_path) == VALUE


@pytest.mark.soak
@pytest.mark.parametrize("way", [("SASL_SSL", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-512")], ids=name_of)
@pytest.mark.parametrize("client", REFUSALS)
@pytest.mark.usefixtures("kavka")
def test_clients_in_other_languages_say_that_a_password_is_wrong(
    secure: SecureListeners, client: str, way: Way, tmp_path: Path
) -> None:
    with pytest.raises(ClientFailedError, match=REFUSALS[client]):
        CLIENTS[client](secure, way, "anywhere", "guessed-0815", tmp_path)


@pytest.mark.soak
@pytest.mark.java
@by_each_way
def test_kavkas_own_client_enters_apache_kafka(kafka: SecureListeners, way: Way, topic: str, tmp_path: Path) -> None:
    create(kafka, topic)
    assert CLIENTS["kavka"](kafka, way, topic, SECRET, tmp_path) == VALUE
    if way in WITH_PASSWORDS:
        with Admin(kafka.client(*way, secret="guessed")) as admin, pytest.raises(AuthenticationError):
            admin.list_topics(timeout_ms=TIMEOUT_MS)
