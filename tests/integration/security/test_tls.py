"""A broker with TLS as its clients meet it: librdkafka, Java, openssl; certificates that change under them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.support.certificates import PASSWORD, SERVER, Authority, Issued
from tests.support.java_tools import JavaTools
from tests.support.metrics_page import metric, wait_for_metric
from tests.support.processes import wait_until
from tests.support.tls_broker import Stores, TlsBroker

TIMEOUT_S = 120.0
RECORDS = 500


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, stores: Stores) -> Iterator[TlsBroker]:
    with TlsBroker(tmp_path_factory.mktemp("broker"), stores) as broker:
        yield broker


def test_librdkafka_produces_and_consumes(broker: TlsBroker, stores: Stores, topic: str) -> None:
    settings = {"bootstrap.servers": f"localhost:{broker.tls_port}", **stores.librdkafka}
    producer = Producer({**settings, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(topic, str(number).encode() * 300)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []

    def consumed() -> bool:
        for message in consumer.consume(RECORDS, 1.0):
            assert message.error() is None
            values.append(message.value() or b"")
        return len(values) >= RECORDS

    wait_until(consumed, TIMEOUT_S, lambda: f"{len(values)} records came")
    consumer.close()
    assert values == [str(number).encode() * 300 for number in range(RECORDS)]


@pytest.mark.java
def test_javas_client_produces_consumes_and_lists(broker: TlsBroker, stores: Stores, topic: str) -> None:
    server = f"localhost:{broker.tls_port}"
    with JavaTools("kafka-3.9") as java:
        java.run(
            *("org.apache.kafka.tools.ProducerPerformance", "--producer.config", stores.java, "--topic", topic),
            *("--num-records", "2000", "--record-size", "1000", "--throughput", "-1"),
            *("--producer-props", f"bootstrap.servers={server}"),
        )
        listed = java.run(
            "org.apache.kafka.tools.TopicCommand",
            "--bootstrap-server",
            server,
            "--command-config",
            stores.java,
            "--list",
        )
        assert topic in listed.split()
        told = java.run(
            *("org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", server, "--topic", topic),
            *("--consumer.config", stores.java, "--messages", "2000", "--timeout", "60000"),
        )
        assert re.search(r", 2000, ", told)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_finds_nothing_to_complain_of(broker: TlsBroker, stores: Stores, version: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{broker.tls_port}", "-servername", "localhost"]
    command += ["-CAfile", str(stores.trust_pem), "-verify_hostname", "localhost", "-verify_return_error", version]
    command += ["-cert", str(stores.user_chain), "-key", str(stores.user_key), "-pass", f"pass:{PASSWORD}"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=TIMEOUT_S, check=False)
    text = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0, text
    assert "Verify return code: 0 (ok)" in text
    assert "Secure Renegotiation IS supported" in text or version == "-tls1_3"


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (lambda stores: None, "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        (lambda stores: Authority("stranger").issue("user"), "CERTIFICATE_VERIFY_FAILED"),
        (lambda stores: stores.authority.issue("user", ends=timedelta(minutes=-1)), "CERTIFICATE_VERIFY_FAILED"),
        (lambda stores: stores.authority.issue("user", purposes=[SERVER]), "CERTIFICATE_VERIFY_FAILED"),
    ],
    ids=["none", "foreign", "expired", "for servers"],
)
def test_a_client_whose_certificate_is_not_good_reads_why(
    broker: TlsBroker, stores: Stores, own: Callable[[Stores], Issued | None], told: str
) -> None:
    failed_before = metric(broker, "kavka_tls_failed_handshakes_total")
    with pytest.raises(ssl.SSLError, match=r"ALERT"), broker.connect(stores.client(own(stores))) as client:
        # In TLS 1.3 the client is through before the server has looked.
        client.recv(1)
    wait_for_metric(broker, "kavka_tls_failed_handshakes_total", lambda now: now == failed_before + 1)
    # It is counted first, and said then.
    broker.process.wait_for_log(f"reason='{told}'", TIMEOUT_S)


def test_librdkafka_says_that_its_certificate_is_missing(broker: TlsBroker, stores: Stores) -> None:
    reasons: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": f"localhost:{broker.tls_port}",
        "security.protocol": "ssl",
        "ssl.ca.location": str(stores.trust_pem),
        "error_cb": lambda error: reasons.append(str(error)),
    }
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)
    wait_until(
        lambda: (admin.poll(0.1), any("SSL" in each or "ssl" in each for each in reasons))[1], TIMEOUT_S, "nothing"
    )


@pytest.mark.parametrize(
    ("is_tls", "first", "told"),
    [
        (True, b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP"),
        (True, b"\0\0\0\x20" + bytes(32), "the client speaks Kafka's protocol without it"),
        (False, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS, which nobody understands here"),
        (False, b"GET / HTTP/1.1\r\n\r\n", "speaks HTTP, which nobody understands here"),
    ],
)
def test_who_speaks_something_else_is_named_in_the_log(
    broker: TlsBroker, is_tls: bool, first: bytes, told: str
) -> None:
    before = broker.process.log_text().count(told)
    port = broker.tls_port if is_tls else broker.port
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as client:
        client.sendall(first)
        assert client.recv(1) == b""
    wait_until(lambda: broker.process.log_text().count(told) == before + 1, TIMEOUT_S, "not one line of it")


def test_renewed_files_count_when_asked_for_and_a_bad_one_leaves_the_old(broker: TlsBroker, stores: Stores) -> None:
    with broker.connect(stores.client(stores.user)) as old:
        renewed = stores.authority.issue("broker")
        stores.put(renewed)
        os.kill(broker.process.pid, signal.SIGHUP)
        wait_until(lambda: broker.shown(stores) == renewed.der, TIMEOUT_S, "the certificate stays")

        failed_before = metric(broker, "kavka_tls_failed_reloads_total")
        broker.expect_errors("certificates are not renewed")
        stores.keys.write_bytes(b"half a file")
        os.kill(broker.process.pid, signal.SIGHUP)
        wait_for_metric(broker, "kavka_tls_failed_reloads_total", lambda now: now > failed_before)
        assert broker.shown(stores) == renewed.der

        # Nobody asks: the file is looked at every ten seconds.
        stores.put(stores.broker)
        wait_until(lambda: broker.shown(stores) == stores.broker.der, TIMEOUT_S, "the certificate stays")
        old.sendall(b"\0\0\0\x0e\0\x12\0\0\0\0\0\x07\0\4test")
        assert old.recv(8)[4:] == b"\0\0\0\x07"
    assert PASSWORD not in broker.process.log_text()


@pytest.mark.java
def test_kafka_configs_renews_and_is_told_of_what_cannot_be(broker: TlsBroker, stores: Stores) -> None:
    renewed = stores.authority.issue("broker")
    elsewhere = renewed.write_pkcs12(stores.directory / "elsewhere.p12")
    with JavaTools("kafka-3.9") as java:

        def alter(location: Path) -> str:
            changes = f"listener.name.ssl.ssl.keystore.location={location}"
            entity = ("--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config", changes)
            return java.run("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap, *entity)

        alter(elsewhere)
        assert broker.shown(stores) == renewed.der
        again = stores.authority.issue("broker")
        again.write_pkcs12(elsewhere)
        alter(elsewhere)
        assert broker.shown(stores) == again.der
        stores.authority.issue("somebody else").write_pkcs12(stores.directory / "other.p12")
        with pytest.raises(Exception, match=r"DistinguishedName does not match"):
            alter(stores.directory / "other.p12")
        assert broker.shown(stores) == again.der
        alter(stores.keys)
    assert broker.shown(stores) == stores.broker.der
