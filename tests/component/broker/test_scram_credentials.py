"""Users and their passwords on a running broker: written, logged in with, changed, taken away, kept over restarts."""

from __future__ import annotations

import base64
import json
import logging
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.security.acl import Operation, ResourceType
from kavka.broker.security.credentials.scram_store import ScramStore
from kavka.cli.main import main
from kavka.cluster.registry.base import RegistryError, create_path
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.cluster.znodes.scram_credential import Look, credential_text
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kavka.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kavka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kavka.protocol.sasl.scram import ScramMechanism, credential_of
from tests.support.processes import free_port, wait_until
from tests.support.registries import Clock
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker
from tests.support.scram_listener import lets_in, log_in, remove_password, set_password, with_scram_listener
from tests.support.wire import RawClient

SECRET = "alice's secret, ö"
TOKEN_KEY = "of the tokens"
LITERAL, ALLOW = 3, 3
"""As the wire has them."""
JAAS = "listener.name.scram.scram-sha-256.sasl.jaas.config"


class Secured(RunningBroker):
    """A broker with a SCRAM listener at `scram_port`."""

    def __init__(self, directory: Path, **settings: str) -> None:
        super().__init__(directory)
        self.scram_port = free_port()
        self.settings |= with_scram_listener(self.port, self.scram_port)
        self.settings |= {name.replace("__", "."): text for name, text in settings.items()}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    with Secured(directory, delegation__token__secret__key=TOKEN_KEY, password__encoder__secret="encoder's") as running:
        # Of tests beside it, which log in this process, too.
        running.errors.expect("users are not known yet", "a credential cannot be read")
        yield running


@pytest.fixture
def client(shared: Secured) -> Iterator[RawClient]:
    with RawClient(HOST, shared.port) as connected:
        yield connected


def test_a_user_logs_in_with_the_password_until_it_is_changed_or_taken_away(shared: Secured, client: RawClient) -> None:
    port = shared.scram_port
    assert not lets_in(port, "alice", SECRET)

    assert set_password(client, "alice", SECRET).error_code == ErrorCode.NONE
    assert lets_in(port, "alice", SECRET)
    assert not lets_in(port, "alice", "another")
    assert not lets_in(port, "alice", SECRET, ScramMechanism.SHA_512)
    set_password(client, "alice", "another")
    assert (lets_in(port, "alice", SECRET), lets_in(port, "alice", "another")) == (False, True)
    assert remove_password(client, "alice").error_code == ErrorCode.NONE
    assert not lets_in(port, "alice", "another")
    assert remove_password(client, "alice").error_code == ErrorCode.RESOURCE_NOT_FOUND


def test_a_change_is_logged_with_who_made_it_and_without_the_password(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kavka"):
        set_password(client, "new\nuser", SECRET)
        remove_password(client, "new\nuser")

    lines = [line for line in caplog.messages if "SCRAM credentials changed" in line]
    assert [line.partition(" by=")[0] for line in lines] == [
        "SCRAM credentials changed user='new\\nuser' set=SCRAM-SHA-256 removed=-",
        "SCRAM credentials changed user='new\\nuser' set=- removed=SCRAM-SHA-256",
    ]
    assert all("User:ANONYMOUS from host = 127.0.0.1" in line for line in lines)
    assert SECRET not in caplog.text


def test_what_else_is_set_for_a_user_stays(shared: Secured, client: RawClient) -> None:
    registry = shared.broker.services.registry
    quotas = {"producer_byte_rate": "1024", "unknown": "kept"}
    create_path(registry, "/config/users/carol")
    registry.set("/config/users/carol", json.dumps({"version": 1, "config": quotas}).encode())

    set_password(client, "carol", SECRET)
    stored = json.loads(registry.get("/config/users/carol")[0])["config"]
    assert stored.keys() == {*quotas, "SCRAM-SHA-256"}
    remove_password(client, "carol")

    assert json.loads(registry.get("/config/users/carol")[0])["config"] == quotas


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"version":1,"config":{"SCRAM-SHA-256":7}}', b"[" * 200_000])
def test_a_broken_node_locks_out_its_user_alone(shared: Secured, client: RawClient, data: bytes) -> None:
    registry = shared.broker.services.registry
    set_password(client, "dave", SECRET)
    set_password(client, "eve", SECRET)
    shared.errors.expect("/config/users/dave", "the old configuration stays")
    registry.set("/config/users/dave", data)
    registry.create("/config/changes/config_change_", b'{"version":2,"entity_path":"users/dave"}', sequential=True)

    assert set_password(client, "eve", "new").error_code == ErrorCode.NONE
    assert lets_in(shared.scram_port, "eve", "new")
    assert not lets_in(shared.scram_port, "dave", SECRET)
    registry.delete("/config/users/dave")


def test_a_token_logs_in_as_its_owner_who_gets_no_other_by_it(shared: Secured, client: RawClient) -> None:
    set_password(client, "bob", SECRET)
    with RawClient(HOST, shared.scram_port) as bobs:
        assert log_in(bobs, "bob", SECRET)
        token = bobs.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        assert token.error_code == ErrorCode.NONE
        assert (token.principal_type, token.principal_name) == ("User", "bob")
        assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "bob")
    password = _base64(bytes(token.hmac))
    with RawClient(HOST, shared.scram_port) as by_token:
        assert not lets_in(shared.scram_port, token.token_id, password)
        assert log_in(by_token, token.token_id, password, ScramMechanism.SHA_512, by_token=True)
        assert by_token.ask(MetadataRequest(topics=[]), 9).cluster_id
        another = by_token.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 3)
        assert another.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        described = by_token.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert described.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert not lets_in(shared.scram_port, token.token_id, password[:-4] + "AAA=", by_token=True)
    assert not lets_in(shared.scram_port, "bob", SECRET, by_token=True)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_password_among_the_settings_is_stored_encrypted_and_shown_nowhere(
    shared: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    text = f'org.apache.kafka.common.security.scram.ScramLoginModule required user="x" password="{TOKEN_KEY} hidden";'
    with caplog.at_level(logging.DEBUG):
        assert shared.alter({JAAS: text}).error_code == ErrorCode.NONE
        wrong = shared.alter({"listener.name.scram.scram-sha-256.sasl.jaas.config": f"{text} rubbish {{"})
        read_only = shared.alter({"password.encoder.secret": "hidden"})

    stored = shared.broker.services.registry.get(f"/config/brokers/{BROKER_ID}")[0].decode()
    assert "encryptedPassword" in stored
    shown = [caplog.text, str(shared.described()), str(wrong), str(read_only), stored]
    assert "hidden" not in "".join(shown).replace("[hidden]", "")
    assert shared.broker.services.config.current.listener_given("SCRAM", "scram-sha-256.sasl.jaas.config").value == text
    assert shared.alter({JAAS: None}).error_code == ErrorCode.NONE


def test_users_tokens_and_passwords_are_kept_over_a_restart_with_another_secret(tmp_path: Path) -> None:
    text = "org.apache.kafka.common.security.scram.ScramLoginModule required kept=yes;"
    secured = Secured(tmp_path, delegation__token__master__key=TOKEN_KEY, password__encoder__secret="the old one")
    with secured:
        with RawClient(HOST, secured.port) as client:
            set_password(client, "alice", SECRET)
        with RawClient(HOST, secured.scram_port) as alices:
            assert log_in(alices, "alice", SECRET)
            token = alices.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), 2)
        secured.alter({JAAS: text})
        before = secured.broker.services.registry.get(f"/config/brokers/{BROKER_ID}")[0]
        secured.settings["password.encoder.old.secret"] = secured.settings["password.encoder.secret"]
        secured.settings["password.encoder.secret"] = "the new one"
        secured.restart()

        assert lets_in(secured.scram_port, "alice", SECRET)
        assert lets_in(secured.scram_port, token.token_id, _base64(bytes(token.hmac)), by_token=True)
        assert secured.broker.services.registry.get(f"/config/brokers/{BROKER_ID}")[0] != before
        del secured.settings["password.encoder.old.secret"]
        secured.restart()

        given = secured.broker.services.config.current.listener_given("SCRAM", "scram-sha-256.sasl.jaas.config")
        assert given.value == text
    for file in tmp_path.glob(f"{FILE_NAME}*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_the_first_user_is_written_before_any_broker_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    password = tmp_path / "password"
    password.write_text(f"{SECRET}\n")
    data = tmp_path / "data"
    words = ["storage", "add-user", "--override", f"log.dirs={data}", "--password-file", str(password)]

    assert main([*words, "--user", "admin", "--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512"]) == 0

    printed = capsys.readouterr()
    assert "admin" in printed.out
    assert SECRET not in printed.out + printed.err
    with Secured(data) as running:
        assert lets_in(running.scram_port, "admin", SECRET)
        assert lets_in(running.scram_port, "admin", SECRET, ScramMechanism.SHA_512)
        assert main([*words, "--user", "other"]) == 1
        assert "in use" in capsys.readouterr().err
        assert not lets_in(running.scram_port, "other", SECRET, ScramMechanism.SHA_512)


def test_a_file_that_an_older_version_made_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    EmbeddedRegistry(path, Clock()).close()
    path.chmod(0o644)

    registry = EmbeddedRegistry(path, Clock())
    registry.create("/a")

    assert [stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()] == [0o600] * len(list(tmp_path.iterdir()))
    registry.close()


def test_nobody_is_let_in_while_the_users_are_not_known(caplog: pytest.LogCaptureFixture) -> None:
    ensemble = MemoryEnsemble(Clock())
    writer, registry = MemoryRegistry(ensemble), MemoryRegistry(ensemble)
    create_path(writer, "/config/users/alice")
    text = credential_text(credential_of(ScramMechanism.SHA_256, SECRET))
    writer.set("/config/users/alice", json.dumps({"version": 1, "config": {"SCRAM-SHA-256": text}}).encode())
    known, store = ScramStore(writer), ScramStore(registry)
    registry.lose()
    with pytest.raises(RegistryError):
        store.load()
    assert store.find(ScramMechanism.SHA_256, "alice") is None
    known.load()
    assert known.find(ScramMechanism.SHA_256, "alice") is not None
    known.node_changed("alice", {"SCRAM-SHA-256": "salt=no,rubbish"})
    assert known.find(ScramMechanism.SHA_256, "alice") is None
    assert "rubbish" not in caplog.text


def test_nobody_logs_in_by_what_cannot_be_read_any_more_and_quotas_stay(shared: Secured, client: RawClient) -> None:
    set_password(client, "erin", SECRET)
    registry = shared.broker.services.registry
    stored = json.loads(registry.get("/config/users/erin")[0])
    stored["config"]["producer_byte_rate"] = "7"
    write(shared, "erin", json.dumps(stored).encode())
    assert lets_in(shared.scram_port, "erin", SECRET)

    shared.errors.expect("the old configuration stays entity=users/erin")
    write(shared, "erin", b"{")
    assert not lets_in(shared.scram_port, "erin", SECRET)
    quotas = shared.broker.services.quotas
    assert quotas is not None
    meter = quotas.account("User:erin", "c").produce
    assert meter is not None
    assert meter.limit == 7
    write(shared, "erin", json.dumps(stored).encode())
    assert lets_in(shared.scram_port, "erin", SECRET)
    remove_password(client, "erin")


def write(running: Secured, user: str, data: bytes) -> None:
    """As another broker's tool; returns once this one has read it."""
    running.broker.services.registry.set(f"/config/users/{user}", data)
    running.broker._config_notifications.refresh([f"users/{user}"])


@pytest.mark.parametrize("first", [struct.pack(">i", 1 << 30), struct.pack(">i", -5), struct.pack(">ihhi", 8, 3, 0, 1)])
def test_who_sends_no_login_but_something_else_has_failed_to_authenticate(shared: Secured, first: bytes) -> None:
    def failed() -> float:
        gauges = shared.broker.metrics.gauges()
        (counter,) = [
            each for each in gauges if each.name == "kafka_server_socket_server_metrics_failed_authentication"
        ]
        return sum(value for _, value in counter.read())

    before = failed()
    with RawClient(HOST, shared.scram_port) as client:
        client.socket.sendall(first)
        assert client.closed_by_peer()
    assert failed() == before + 1


def test_the_defaults_of_all_users_are_no_user() -> None:
    registry = MemoryRegistry(MemoryEnsemble(Clock()))
    text = credential_text(credential_of(ScramMechanism.SHA_256, SECRET))
    store = ScramStore(registry)
    store.load()

    for name in ("<default>", "alice/clients/c", "not%zznormal"):
        store.node_changed(name, {"SCRAM-SHA-256": text})

    for user in ("<default>", "alice", "alice/clients/c", "not%zznormal"):
        assert store.find(ScramMechanism.SHA_256, user) is None


def test_how_credentials_look_follows_what_is_stored() -> None:
    store = ScramStore(MemoryRegistry(MemoryEnsemble(Clock())))
    store.load()
    assert list(store.looks(ScramMechanism.SHA_256)) == []

    for user, iterations, salt in (("a", 8192, b"digits36"), ("b", 4096, bytes(16)), ("c", 1000, b"too few")):
        credential = credential_of(ScramMechanism.SHA_256, SECRET, iterations, salt)
        store.node_changed(user, {"SCRAM-SHA-256": credential_text(credential)})
    store.node_changed("d", {"SCRAM-SHA-256": "salt=no,rubbish"})
    assert list(store.looks(ScramMechanism.SHA_256)) == [Look(4096, 16, False), Look(8192, 8, True)]
    assert list(store.looks(ScramMechanism.SHA_512)) == []

    store.node_changed("b", {})
    assert list(store.looks(ScramMechanism.SHA_256)) == [Look(8192, 8, True)]


def allow(client: RawClient, kind: ResourceType, name: str, operation: Operation, principal: str) -> None:
    acl = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )
    (result,) = client.ask(CreateAclsRequest(creations=[acl]), 3).results
    assert result.error_code == ErrorCode.NONE, result


def seen_by(port: int, user: str, owner: str | None = None) -> list[str]:
    """The ids of the tokens that a user is shown, of all owners or of one."""
    owners = None if owner is None else [DescribeDelegationTokenOwner(principal_type="User", principal_name=owner)]
    with RawClient(HOST, port) as client:
        assert log_in(client, user, SECRET)
        answer = client.ask(DescribeDelegationTokenRequest(owners=owners), 3)
    assert answer.error_code == ErrorCode.NONE
    return [each.token_id for each in answer.tokens]


def test_rights_say_who_gets_tokens_for_others_and_who_sees_them(tmp_path: Path) -> None:
    settings = {
        "delegation__token__secret__key": TOKEN_KEY,
        "authorizer__class__name": "kafka.security.authorizer.AclAuthorizer",
        "super__users": "User:ANONYMOUS",
    }
    with Secured(tmp_path, **settings) as secured, RawClient(HOST, secured.port) as admin:
        port = secured.scram_port
        for user in ("alice", "bob", "carol", "dan", "erin"):
            set_password(admin, user, SECRET)
        renewers = [CreatableRenewers(principal_type="User", principal_name="carol")]
        request = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1)
        request.owner_principal_type, request.owner_principal_name = "User", "alice"
        with RawClient(HOST, port) as bobs:
            assert log_in(bobs, "bob", SECRET)
            denied = bobs.ask(request, 3)
            assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
            assert (denied.principal_name, denied.token_requester_principal_name) == ("alice", "bob")
            allow(admin, ResourceType.USER, "User:alice", Operation.CREATE_TOKENS, "User:bob")
            token = bobs.ask(request, 3)
            assert (token.error_code, token.principal_name) == (ErrorCode.NONE, "alice")
            request.renewers[0].principal_type = "Group"
            assert bobs.ask(request, 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
            mismatch = bobs.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), 2)
            assert mismatch.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        token_id = token.token_id
        seen = {user: seen_by(port, user) for user in ("alice", "bob", "carol", "dan", "erin")}
        # Its owner, who asked for it, and who may renew it.
        assert seen == {"alice": [token_id], "bob": [token_id], "carol": [token_id], "dan": [], "erin": []}
        assert seen_by(port, "alice", "dan") == []
        assert seen_by(port, "alice", "carol") == [token_id]

        allow(admin, ResourceType.USER, "User:alice", Operation.DESCRIBE_TOKENS, "User:erin")
        allow(admin, ResourceType.DELEGATION_TOKEN, token_id, Operation.DESCRIBE, "User:dan")

        assert (seen_by(port, "erin"), seen_by(port, "dan")) == ([token_id], [token_id])


def test_a_broker_removes_tokens_that_have_expired_and_serves_a_listener_that_comes_later(tmp_path: Path) -> None:
    settings = {"delegation__token__secret__key": TOKEN_KEY, "delegation__token__expiry__check__interval__ms": "1"}
    with Secured(tmp_path, **settings) as secured, RawClient(HOST, secured.port) as client:
        set_password(client, "alice", SECRET)
        with RawClient(HOST, secured.scram_port) as alices:
            assert log_in(alices, "alice", SECRET)
            assert alices.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=1), 3).error_code == 0
        registry = secured.broker.services.registry
        wait_until(lambda: registry.children("/delegation_token/tokens") == [], 60, "an expired token stays")
    plain = RunningBroker(tmp_path, {"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    later = with_scram_listener(plain.port, free_port())
    plain.settings["listener.security.protocol.map"] = later["listener.security.protocol.map"]
    plain.settings["listener.name.scram.scram-sha-256.sasl.jaas.config"] = later[JAAS]
    with plain:
        port = int(later["listeners"].rpartition(":")[2])
        added = plain.alter({"listeners": later["listeners"]})
        assert added.error_code == ErrorCode.NONE, added
        assert lets_in(port, "alice", SECRET)
