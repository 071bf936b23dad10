"""Clients log in by Kerberos, where there is a KDC and python-gssapi (`kavka[kerberos]`) to try it with."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.java import QUIET, SHORT_LIVED
from tests.support.java_classes import compiled
from tests.support.kavka_process import KAVKA
from tests.support.kdc import SERVICE, Kdc
from tests.support.sasl_broker import LISTENER, SaslBroker

pytest.importorskip("gssapi", reason="the extra kerberos is not installed here")

ALICE, ADMIN = "alice@KAVKA.TEST", "bob/admin@KAVKA.TEST"
PREFIX = f"listener.name.{LISTENER.lower()}"
LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
PYTHON_CLIENT = """
import sys
from kafka import KafkaProducer
settings = dict(security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI", sasl_kerberos_service_name="kafka")
producer = KafkaProducer(bootstrap_servers=sys.argv[1], **settings)
print(producer.send("visits", b"value").get(60).offset)
"""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with Kdc(tmp_path_factory.mktemp("kdc"), ALICE, ADMIN) as kdc:
        yield kdc


@pytest.fixture(scope="module")
def broker(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslBroker]:
    jaas = f'{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="{kdc.keytab(SERVICE)}" principal="{SERVICE}";'
    settings = {
        f"{PREFIX}.gssapi.sasl.jaas.config": jaas,
        f"{PREFIX}.gssapi.sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-$2],DEFAULT",
    }
    directory = tmp_path_factory.mktemp("kerberos")
    with SaslBroker(directory, settings, mechanisms="GSSAPI", env={**kdc.env, "KAVKA_LOG_LEVEL": "DEBUG"}) as broker:
        yield broker


@pytest.mark.parametrize(("principal", "user"), [(ALICE, "User:alice"), (ADMIN, "User:bob-admin")])
def test_a_client_is_who_its_ticket_says(broker: SaslBroker, kdc: Kdc, principal: str, user: str) -> None:
    kdc.log_in(principal)
    command = [sys.executable, "-c", PYTHON_CLIENT, broker.sasl_bootstrap]
    done = subprocess.run(command, env=kdc.env, capture_output=True, text=True, timeout=120, check=False)

    assert done.stdout.strip().isdecimal(), done.stderr
    broker.process.wait_for_log(f"mechanism=GSSAPI principal=.*{user}", 60)


@pytest.mark.java
@pytest.mark.soak
def test_the_java_client_logs_in_by_its_keytab(broker: SaslBroker, kdc: Kdc, tmp_path: Path) -> None:
    text = f'{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="{kdc.keytab(ALICE)}" principal="{ALICE}";'
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"bootstrap.servers={broker.sasl_bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
        f"sasl.kerberos.service.name=kafka\nsasl.jaas.config={text}\n"
    )
    conf = f"-Djava.security.krb5.conf={kdc.env['KRB5_CONFIG']}"
    classes = compiled("SaslRoundTrip", "kafka-3.9")
    command = ["java", *SHORT_LIVED, QUIET, conf, "-cp", classes, "SaslRoundTrip", str(properties), "java", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    assert done.stdout.strip() == "records: 3", done.stderr


def test_a_broker_without_its_key_does_not_start(kdc: Kdc, tmp_path: Path) -> None:
    jaas = f'{LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="{tmp_path}/none" principal="{SERVICE}";'
    broker = SaslBroker(tmp_path, {f"{PREFIX}.gssapi.sasl.jaas.config": jaas}, mechanisms="GSSAPI")
    done = subprocess.run(
        [str(KAVKA), *broker.command()[1:]], env=kdc.env, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 1
    assert "listener.name.sasl_plaintext.gssapi.sasl.jaas.config" in done.stdout + done.stderr
    assert "has no key that can be used" in done.stdout + done.stderr
