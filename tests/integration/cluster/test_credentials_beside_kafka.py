"""Kavka and Apache Kafka 3.9 on one ZooKeeper: users, tokens and passwords that one stored, or a tool, serve both."""

import base64
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kavka.broker.settings.password_encoder import encoder_of
from kavka.cli.main import main
from kavka.cluster.entity_configs import read_config
from kavka.cluster.registry.base import create_path
from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
from kavka.cluster.znodes.config import EntityConfig
from kavka.config import BrokerConfig
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kavka.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kavka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kavka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kavka.protocol.schema import Request
from tests.support.java_tools import JavaTools
from tests.support.kafka_process import JoiningKafka
from tests.support.processes import free_port, wait_until
from tests.support.registries import new_root, open_zookeeper
from tests.support.running_broker import BROKER_ID, RunningBroker
from tests.support.scram_listener import HOST, lets_in, log_in, set_password, with_scram_listener
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
TIMEOUT_S = 120.0
CONFIGS = "kafka.admin.ConfigCommand"
SECRETS = {"delegation.token.secret.key": "the cluster's", "password.encoder.secret": "the encoder's"}
ENCODER = encoder_of(BrokerConfig(SECRETS))
KAFKAS_JAAS = "listener.name.scram.plain.sasl.jaas.config"
KAVKAS_JAAS = "listener.name.scram.scram-sha-256.sasl.jaas.config"
BY_TOOL = "org.apache.kafka.common.security.scram.ScramLoginModule required by=tool;"


class Both(NamedTuple):
    """The two brokers, and the tree that they share."""

    kafka_port: int
    kavka: RunningBroker
    kavka_port: int
    tree: ZooKeeperRegistry

    @property
    def scram_ports(self) -> tuple[int, int]:
        return self.kafka_port, self.kavka_port


@pytest.fixture(scope="module")
def both(zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Kavka is the controller; before it a tool, Kavka's verb and Kavka's encoder have written what they serve."""
    directory = tmp_path_factory.mktemp("beside")
    root = new_root()
    connect = zookeeper.bootstrap + root
    tree = open_zookeeper(connect, "")
    _written_by_tools(connect, directory)
    _written_for_kafka(tree)
    kavka_port, kafka_port = free_port(), free_port()
    kavka = RunningBroker(
        directory / "kavka", {"zookeeper.connect": connect, "inter.broker.protocol.version": "3.9", **SECRETS}
    )
    kavka.settings |= with_scram_listener(kavka.port, kavka_port)
    kafka = JoiningKafka(directory / "kafka", 1, zookeeper, root)
    kafka.overrides = {**with_scram_listener(kafka.port, kafka_port), **SECRETS}
    kafka.overrides["sasl.enabled.mechanisms"] += ",PLAIN"
    with kavka, kafka:
        yield Both(kafka_port, kavka, kavka_port, tree)
    tree.close()


def _written_by_tools(connect: str, directory: Path) -> None:
    with JavaTools("kafka-3.9") as tools:
        alter = (CONFIGS, "--zookeeper", connect, "--alter", "--add-config")
        scram = "SCRAM-SHA-256=[iterations=8192,password=by-tool],SCRAM-SHA-512=[password=by-tool]"
        tools.run(*alter, scram, "--entity-type", "users", "--entity-name", "to ol*")
        password = f"{KAVKAS_JAAS}=[{BY_TOOL}],password.encoder.secret={SECRETS['password.encoder.secret']}"
        tools.run(*alter, password, "--entity-type", "brokers", "--entity-name", BROKER_ID)
    secret = directory / "secret"
    secret.write_text("by-verb")
    overrides = {"zookeeper.connect": connect, "log.dirs": str(directory / "kavka")}
    words = [word for each in overrides.items() for word in ("--override", "=".join(each))]
    mechanism = ("--mechanism", "SCRAM-SHA-256", "--iterations", "5000")
    assert main(["storage", "add-user", "--user", "ver/b", "--password-file", str(secret), *mechanism, *words]) == 0


def _written_for_kafka(tree: ZooKeeperRegistry) -> None:
    assert ENCODER is not None
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    encoded = ENCODER.encode(f'{module} username="x" password="y" user_peter="encoded";')
    create_path(tree, "/config/brokers")
    tree.create("/config/brokers/1", EntityConfig.encode({KAFKAS_JAAS: encoded}))


def test_users_that_a_tool_a_verb_or_an_api_wrote_log_in_at_both(both: Both) -> None:
    for port in both.scram_ports:
        assert lets_in(port, "to ol*", "by-tool")
        assert lets_in(port, "ver/b", "by-verb")
        assert not lets_in(port, "to ol*", "by-verb")
    with RawClient(HOST, both.kavka.port) as controller:
        assert set_password(controller, "carol", "by-api").error_code == ErrorCode.NONE
    # Who stored it hears of it as the other one does: by ZooKeeper's notification.
    for port in both.scram_ports:
        wait_until(partial(lets_in, port, "carol", "by-api"), TIMEOUT_S, f"{port} hears of no user")


def test_passwords_among_the_settings_are_read_by_the_other_one(both: Both) -> None:
    assert (
        both.kavka.broker.services.config.current.listener_given("SCRAM", "scram-sha-256.sasl.jaas.config").value
        == BY_TOOL
    )
    with RawClient(HOST, both.kafka_port) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.NONE
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\0peter\0encoded"), 2)
    assert answer.error_code == ErrorCode.NONE, answer
    assert both.kavka.alter({KAVKAS_JAAS: f"{BY_TOOL} "}).error_code == ErrorCode.NONE
    stored = read_config(both.tree, f"brokers/{BROKER_ID}")[KAVKAS_JAAS]
    assert ENCODER is not None
    assert ENCODER.decode(stored).strip() == BY_TOOL


def ask(port: int, request: Request, version: int) -> Any:
    """As the tool's user."""
    with RawClient(HOST, port) as client:
        assert log_in(client, "to ol*", "by-tool")
        return client.ask(request, version)


def described(port: int) -> dict[str, int]:
    """Of the user's tokens: id and expiry."""
    answer = ask(port, DescribeDelegationTokenRequest(owners=None), 3)
    assert answer.error_code == ErrorCode.NONE
    return {each.token_id: each.expiry_timestamp for each in answer.tokens}


@pytest.mark.parametrize("makes", ["kafka", "kavka"])
def test_tokens_of_one_log_in_at_the_other_which_renews_and_ends_them(both: Both, makes: str) -> None:
    maker, other = both.scram_ports if makes == "kafka" else reversed(both.scram_ports)
    renewers = [CreatableRenewers(principal_type="User", principal_name="ver/b")]
    token = ask(maker, CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1), 3)
    assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "to ol*")
    password = base64.b64encode(token.hmac).decode()

    assert lets_in(maker, token.token_id, password, by_token=True)
    wait_until(
        lambda: lets_in(other, token.token_id, password, by_token=True), TIMEOUT_S, "the other hears of no token"
    )
    renewed = ask(other, RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=1_000_000), 2)
    assert renewed.error_code == ErrorCode.NONE
    wait_until(
        lambda: described(maker)[token.token_id] == renewed.expiry_timestamp_ms, TIMEOUT_S, "no renewal is heard of"
    )
    stored = json.loads(both.tree.get(f"/delegation_token/tokens/{token.token_id}")[0])
    assert list(stored) == [
        "issueTimestamp",
        "renewers",
        "tokenRequester",
        "tokenId",
        "owner",
        "expiryTimestamp",
        "maxTimestamp",
        "version",
    ]
    assert (stored["owner"], stored["renewers"], stored["version"]) == ("User%3Ato%20ol%2A", ["User%3Aver%2Fb"], 3)
    ended = ask(other, ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
    assert ended.error_code == ErrorCode.NONE
    wait_until(lambda: token.token_id not in described(maker), TIMEOUT_S, "no end is heard of")
    assert not lets_in(maker, token.token_id, password, by_token=True)
