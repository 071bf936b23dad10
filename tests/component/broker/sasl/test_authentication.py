"""A client on a SASL listener: what is read of it before it is known, what it is told, and what lets it in."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kavka.broker.requests.handling import load_handlers
from kavka.broker.security.sasl.ports import Token
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kavka.protocol.sasl.plain import plain_message
from kavka.protocol.sasl.scram import MIN_ITERATIONS, TOKEN_AUTH, ScramClient, ScramMechanism
from kavka.protocol.sasl.scram_messages import ServerFirst, read_server_first
from kavka.protocol.schema import Request
from tests.support.broker_core import NOW_MS
from tests.support.network_stage import SIZE
from tests.support.sasl_core import ALL_MECHANISMS, OneToken, SaslCore, Users, frame_of

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
DELAY_MS = 100
"""connection.failed.authentication.delay.ms"""


@pytest.fixture
def core(tmp_path: Path) -> Iterator[SaslCore]:
    core = SaslCore(tmp_path)
    yield core
    core.core.close()


def scram_log_in(core: SaslCore, client: ScramClient, mechanism: ScramMechanism) -> ErrorCode:
    """By SaslAuthenticate; raises unless the broker proves that it knows the password, too."""
    core.shake_hands(mechanism.value)
    first = core.authenticate(client.first())
    assert first is not None
    final = core.authenticate(client.final(first.auth_bytes))
    if final is None:
        core.advance(DELAY_MS)
        return ErrorCode.SASL_AUTHENTICATION_FAILED
    client.verify(final.auth_bytes)
    return ErrorCode(final.error_code)


def test_a_client_asks_for_versions_chooses_a_mechanism_and_is_let_in(core: SaslCore) -> None:
    assert core.ask(VERSIONS, 3).error_code == ErrorCode.NONE
    shaken = core.shake_hands("PLAIN")
    assert shaken is not None
    assert (shaken.error_code, sorted(shaken.mechanisms)) == (ErrorCode.NONE, sorted(ALL_MECHANISMS.split(",")))
    answer = core.authenticate(plain_message("alice", "alice-secret"))

    assert answer is not None
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (ErrorCode.NONE, "", b"")
    assert answer.session_lifetime_ms == 0
    assert core.session.principal == "User:alice"
    assert core.ask(VERSIONS, 3) is not None


def test_a_client_that_asks_for_versions_in_vain_asks_again(core: SaslCore) -> None:
    answer = core.send(encode_request_header(ApiKey.API_VERSIONS, 99, 1, "c"))
    assert answer[8:10] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")

    assert core.ask(VERSIONS, 3).error_code == ErrorCode.NONE
    assert core.log_in().error_code == ErrorCode.NONE


def test_versions_are_told_once(core: SaslCore) -> None:
    core.ask(VERSIONS, 3)

    assert core.ask(VERSIONS, 3) is None
    assert core.is_closed


@pytest.mark.parametrize("state", ["at first", "with versions", "with a mechanism"])
def test_no_other_api_is_read_of_a_client_that_is_not_known(core: SaslCore, state: str) -> None:
    allowed = {
        "at first": {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
        "with versions": {ApiKey.SASL_HANDSHAKE},
        "with a mechanism": {ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
    }[state]
    keys = [*load_handlers(in_cluster=True), 9999, -1]
    assert len(keys) > 40
    for key in set(keys) - allowed:
        for version in (0, 1, 5, 32767):
            core.connect()
            if state != "at first":
                core.ask(VERSIONS, 3)
            if state == "with a mechanism":
                core.shake_hands("PLAIN")
            answer = core.send(encode_request_header(key, version, 1, "c") + bytes(64))

            assert (answer, core.is_closed) == (b"", True), (key, version)
            assert core.session.principal == "User:ANONYMOUS"


@pytest.mark.parametrize("late", [(VERSIONS, 3), (SaslHandshakeRequest(mechanism="PLAIN"), 1)])
def test_what_comes_in_the_midst_of_tokens_is_told_so(core: SaslCore, late: tuple[Request, int]) -> None:
    core.shake_hands("PLAIN")
    assert core.ask(*late) is None

    answer = core.advance(DELAY_MS)

    assert answer[8:10] == ErrorCode.ILLEGAL_SASL_STATE.to_bytes(2, "big")
    assert core.is_closed


def test_requests_behind_one_that_closes_do_not_run(core: SaslCore) -> None:
    core.send_bytes(
        b"".join(
            SIZE.pack(len(each)) + each
            for each in (
                frame_of(HEARTBEAT, 3),
                frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1),
                frame_of(SaslAuthenticateRequest(auth_bytes=plain_message("alice", "alice-secret")), 2),
            )
        )
    )

    assert bytes(core.socket.taken) == b""
    assert core.session.principal == "User:ANONYMOUS"


def test_what_is_sent_ahead_of_the_answers_is_taken_in_its_turn(core: SaslCore) -> None:
    core.send_bytes(
        b"".join(
            SIZE.pack(len(each)) + each
            for each in (
                frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1),
                frame_of(SaslAuthenticateRequest(auth_bytes=plain_message("alice", "alice-secret")), 2, 2),
                frame_of(VERSIONS, 3, 3),
            )
        )
    )

    assert core.session.principal == "User:alice"
    assert not core.is_closed


@pytest.mark.parametrize(
    ("user", "password"),
    [("alice", "wrong"), ("alice", "alice-secre"), ("alice", "bob-secret"), ("nobody", "alice-secret"), ("", "x")],
)
def test_a_wrong_password_is_told_after_a_while_and_the_connection_closed(
    core: SaslCore, user: str, password: str
) -> None:
    core.shake_hands("PLAIN")
    assert core.authenticate(plain_message(user, password)) is None
    assert not core.is_closed
    assert core.advance(DELAY_MS / 2) == b""

    answer = core.advance(DELAY_MS / 2)

    told = b"Invalid username or password" if user else b"username not specified"
    assert told in answer
    assert core.is_closed
    assert core.session.principal == "User:ANONYMOUS"


def test_nothing_runs_while_a_failure_waits_to_be_told(core: SaslCore) -> None:
    core.shake_hands("PLAIN")
    core.authenticate(plain_message("alice", "wrong"))
    core.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    core.ask(SaslAuthenticateRequest(auth_bytes=plain_message("alice", "alice-secret")), 2)

    core.advance(DELAY_MS)

    assert core.is_closed
    assert core.session.principal == "User:ANONYMOUS"


def test_a_client_that_leaves_while_its_failure_waits_to_be_told_is_forgotten(core: SaslCore) -> None:
    others = core.core.stage.limits.total - 1
    core.shake_hands("PLAIN")
    core.authenticate(plain_message("alice", "wrong"))
    core.core.stage.thread.close_connection(core.core.connection)

    assert core.advance(DELAY_MS) == b""
    assert core.core.stage.limits.total == others


def test_without_a_delay_a_failure_is_told_at_once(core: SaslCore) -> None:
    core.set(connection_failed_authentication_delay_ms="0")
    core.shake_hands("PLAIN")

    answer = core.authenticate(plain_message("alice", "wrong"))

    assert answer is not None
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert core.is_closed


def test_another_authorization_id_is_refused(core: SaslCore) -> None:
    core.shake_hands("PLAIN")
    core.authenticate(plain_message("alice", "alice-secret", "bob"))

    assert b"different from username" in core.advance(DELAY_MS)
    assert core.is_closed


def test_an_unknown_mechanism_is_told_those_that_there_are(core: SaslCore) -> None:
    assert core.shake_hands("CRAM-MD5") is None

    answer = core.advance(DELAY_MS)

    assert ErrorCode.UNSUPPORTED_SASL_MECHANISM.to_bytes(2, "big") == answer[8:10]
    assert all(each.encode() in answer for each in ALL_MECHANISMS.split(","))
    assert core.is_closed


def test_a_mechanism_that_is_not_enabled_lets_nobody_in(core: SaslCore) -> None:
    core.set(sasl_enabled_mechanisms="SCRAM-SHA-256")
    core.connect()

    assert core.shake_hands("PLAIN") is None
    assert core.authenticate(plain_message("alice", "alice-secret")) is None
    core.advance(DELAY_MS)
    assert core.is_closed


def test_after_an_old_handshake_tokens_are_frames_of_their_own(core: SaslCore) -> None:
    core.shake_hands("PLAIN", 0)

    assert core.send(plain_message("bob", "bob-secret")) == SIZE.pack(0)
    assert core.session.principal == "User:bob"
    assert core.ask(VERSIONS, 3) is not None


def test_after_an_old_handshake_a_wrong_password_closes(core: SaslCore) -> None:
    core.shake_hands("PLAIN", 0)

    assert core.send(plain_message("bob", "wrong")) == b""
    assert core.advance(DELAY_MS) == b""
    assert core.is_closed


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("version", [0, 1])
def test_scram_proves_both_sides(core: SaslCore, mechanism: ScramMechanism, version: int) -> None:
    client = ScramClient(mechanism, "carol", "carol-secret")
    if version == 1:
        assert scram_log_in(core, client, mechanism) == ErrorCode.NONE
    else:
        core.shake_hands(mechanism.value, 0)
        client.verify(core.send(client.final(core.send(client.first())[4:]))[4:])

    assert core.session.principal == "User:carol"
    assert not core.session.is_by_token


@pytest.mark.parametrize("user", ["carol", "nobody"])
def test_a_wrong_scram_password_fails_at_the_proof_whether_or_not_the_user_exists(core: SaslCore, user: str) -> None:
    client = ScramClient(ScramMechanism.SHA_256, user, "wrong")

    assert scram_log_in(core, client, ScramMechanism.SHA_256) == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert b"invalid credentials with SASL mechanism SCRAM-SHA-256" in bytes(core.socket.taken)
    assert core.is_closed


def first_answer(core: SaslCore, user: str, extensions: Mapping[str, str] | None = None) -> ServerFirst:
    core.connect()
    core.shake_hands("SCRAM-SHA-256")
    answer = core.authenticate(ScramClient(ScramMechanism.SHA_256, user, "wrong", extensions or {}).first())
    assert answer is not None
    return read_server_first(answer.auth_bytes)


@pytest.mark.parametrize(("iterations", "salt"), [(MIN_ITERATIONS, None), (8192, None), (10_000, bytes(range(17)))])
def test_who_does_not_exist_looks_like_those_who_do(core: SaslCore, iterations: int, salt: bytes | None) -> None:
    core.services.scram_credentials = Users(iterations, salt, carol="carol-secret")
    (carol, *_), others = [[first_answer(core, user) for _ in range(2)] for user in ("carol", "nobody")]

    assert others[0].salt == others[1].salt
    assert {each.iterations for each in others} == {carol.iterations}
    assert {each.salt.isalnum() for each in (carol, *others)} == {salt is None}
    if salt is not None:
        assert len(others[0].salt) == len(salt)


def test_a_tokens_salt_does_not_tell_that_there_is_one(core: SaslCore) -> None:
    core.services.tokens = OneToken("token-1", Token("User:owner", NOW_MS + 5000, "aGVsbG8="))
    for token in ("token-1", "token-2"):
        assert len({first_answer(core, token, {TOKEN_AUTH: "true"}).salt for _ in range(3)}) == 1


def test_a_delegation_token_logs_its_owner_in_for_as_long_as_it_lasts(core: SaslCore) -> None:
    core.services.tokens = OneToken("token-1", Token("User:owner", NOW_MS + 5000, "aGVsbG8="))
    client = ScramClient(ScramMechanism.SHA_512, "token-1", "aGVsbG8=", {TOKEN_AUTH: "true"})
    core.shake_hands("SCRAM-SHA-512")
    first = core.authenticate(client.first())
    assert first is not None
    final = core.authenticate(client.final(first.auth_bytes))

    assert final is not None
    client.verify(final.auth_bytes)
    assert (core.session.principal, core.session.is_by_token) == ("User:owner", True)
    assert final.session_lifetime_ms == 5000


def test_a_tokens_secret_is_no_users_password(core: SaslCore) -> None:
    core.services.tokens = OneToken("token-1", Token("User:owner", NOW_MS + 5000, "aGVsbG8="))
    client = ScramClient(ScramMechanism.SHA_512, "token-1", "aGVsbG8=")

    assert scram_log_in(core, client, ScramMechanism.SHA_512) == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_request_beyond_the_limit_closes_before_it_is_read(core: SaslCore) -> None:
    core.set(sasl_server_max_receive_size="1000")
    core.connect()
    core.shake_hands("PLAIN")

    core.send_bytes(SIZE.pack(1001))

    assert core.is_closed
    assert "more than the 1000 allowed" in core.core.stage.rejected[-1]


def test_the_limit_ends_when_the_client_is_known(core: SaslCore) -> None:
    core.set(sasl_server_max_receive_size="1000")
    core.connect()
    core.log_in()

    assert core.send(frame_of(VERSIONS, 3) + bytes(5000))
    assert not core.is_closed


def test_tokens_may_come_in_pieces(core: SaslCore) -> None:
    frame = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    for byte in (SIZE.pack(len(frame)) + frame)[:-1]:
        assert core.send_bytes(bytes([byte])) == b""
    assert core.send_bytes(frame[-1:])

    frame = frame_of(SaslAuthenticateRequest(auth_bytes=plain_message("alice", "alice-secret")), 0)
    for byte in SIZE.pack(len(frame)) + frame:
        core.send_bytes(bytes([byte]))

    assert core.session.principal == "User:alice"


def test_a_known_client_that_shakes_hands_again_without_a_lifetime_is_told_so(core: SaslCore) -> None:
    core.log_in()

    answer = core.shake_hands("PLAIN")
    assert answer is not None
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    late = core.authenticate(plain_message("bob", "bob-secret"))
    assert late is not None
    assert late.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert late.error_message == "SaslAuthenticate request received after successful authentication"
    assert core.session.principal == "User:alice"


def test_passwords_that_change_count_for_the_next_login(core: SaslCore) -> None:
    core.log_in()
    core.set(
        listener_name_plaintext_plain_sasl_jaas_config=(
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="another";'
        )
    )
    assert core.ask(VERSIONS, 3) is not None

    core.connect()
    core.shake_hands("PLAIN")
    assert core.authenticate(plain_message("alice", "alice-secret")) is None
    core.advance(DELAY_MS)
    core.connect()
    assert core.log_in("alice", "another").error_code == ErrorCode.NONE


def test_a_library_that_fails_costs_its_connection_alone(core: SaslCore) -> None:
    class Broken:
        def find(self, mechanism: ScramMechanism, user: str) -> None:
            raise ZeroDivisionError

    core.services.scram_credentials = Broken()
    core.shake_hands("SCRAM-SHA-256")
    core.authenticate(ScramClient(ScramMechanism.SHA_256, "carol", "carol-secret").first())
    core.advance(DELAY_MS)

    assert core.is_closed
    assert core.core.stage.deaths == []
    core.connect()
    assert core.log_in().error_code == ErrorCode.NONE
