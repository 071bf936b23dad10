"""Sessions with a lifetime (KIP-368): renewed by the same principal and mechanism, or closed at the next request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.network.connection import Connection
from kavka.broker.security.sasl.ports import Token
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.sasl.plain import plain_message
from kavka.protocol.sasl.scram import TOKEN_AUTH, ScramClient, ScramMechanism
from tests.support.broker_core import NOW_MS, produce_frame
from tests.support.partition_logs import batch_of
from tests.support.sasl_core import OneToken, SaslCore, frame_of

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
LIFETIME_MS = 10_000
DELAY_MS = 100
TOPIC = "visits"
PRODUCE = 0


@pytest.fixture
def core(tmp_path: Path) -> Iterator[SaslCore]:
    core = SaslCore(tmp_path, connections_max_reauth_ms=str(LIFETIME_MS))
    yield core
    core.core.close()


def readings(core: SaslCore) -> dict[str, float]:
    prefix = "kafka_server_socket_server_metrics_"
    gauges = core.services.metrics.gauges()
    return {
        gauge.name.removeprefix(prefix): value
        for gauge in gauges
        if gauge.name.startswith(prefix)
        for _, value in gauge.read()
    }


def produce(core: SaslCore, correlation_id: int = 3) -> bytes:
    batch: Any = bytes(batch_of(b"a"))
    return core.send(produce_frame(9, correlation_id, {(TOPIC, 0): batch}))


def test_the_lifetime_is_told_and_renewed(core: SaslCore) -> None:
    assert core.log_in().session_lifetime_ms == LIFETIME_MS
    core.advance(LIFETIME_MS - 1)
    assert core.ask(VERSIONS, 3) is not None

    assert core.log_in().session_lifetime_ms == LIFETIME_MS
    core.advance(LIFETIME_MS - 1)

    assert core.ask(VERSIONS, 3) is not None
    assert not core.is_closed


def test_an_old_client_is_not_told_the_lifetime(core: SaslCore) -> None:
    core.shake_hands("PLAIN")
    answer = core.authenticate(plain_message("alice", "alice-secret"), 0)

    assert answer is not None
    core.advance(LIFETIME_MS)
    assert core.ask(VERSIONS, 3) is None
    assert core.is_closed
    assert readings(core)["successful_authentication_no_reauth"] == 1


def test_an_expired_session_is_closed_at_its_next_request(core: SaslCore) -> None:
    core.log_in()
    core.advance(LIFETIME_MS)
    assert not core.is_closed

    assert core.ask(VERSIONS, 3) is None

    assert core.is_closed
    assert readings(core)["expired_connections_killed_count"] == 1


def test_an_expired_session_is_closed_on_the_short_ways_too(core: SaslCore) -> None:
    core.core.create(TOPIC)
    core.log_in()
    assert produce(core)
    assert PRODUCE in core.session.prepared, "produce is to go the short way here"
    assert produce(core)
    end_offset = core.core.log(TOPIC).log_end_offset
    core.advance(LIFETIME_MS)

    assert produce(core) == b""

    assert core.is_closed
    assert core.core.log(TOPIC).log_end_offset == end_offset


def test_a_session_that_expires_while_something_is_learnt_of_it_is_closed(core: SaslCore) -> None:
    core.log_in()
    session = core.session
    core.timer.advance(LIFETIME_MS)

    session.prepare(PRODUCE, None)
    session.prepare(PRODUCE, object())

    assert PRODUCE not in session.prepared
    assert core.ask(VERSIONS, 3) is None


@pytest.mark.parametrize("next_lifetime_ms", [LIFETIME_MS, 0])
def test_a_session_that_is_shut_late_for_the_one_before_it_goes_on(core: SaslCore, next_lifetime_ms: int) -> None:
    core.core.create(TOPIC)
    core.log_in()
    core.set(connections_max_reauth_ms=str(next_lifetime_ms))
    core.log_in()
    core.advance(0 if next_lifetime_ms else 2 * LIFETIME_MS)

    core.session.shut()

    assert produce(core)
    assert PRODUCE in core.session.prepared
    assert core.ask(VERSIONS, 3) is not None


def test_an_expired_session_may_still_be_renewed(core: SaslCore) -> None:
    core.log_in()
    core.advance(2 * LIFETIME_MS)

    assert core.log_in().error_code == ErrorCode.NONE
    assert core.ask(VERSIONS, 3) is not None


def test_nothing_else_is_answered_until_it_is_renewed(core: SaslCore) -> None:
    core.log_in()
    core.advance(5000)
    core.shake_hands("PLAIN")

    assert core.ask(MetadataRequest(topics=[]), 1) is None
    assert core.is_closed


def test_short_ways_are_open_again_once_it_is_renewed(core: SaslCore) -> None:
    core.core.create(TOPIC)
    core.log_in()
    produce(core)
    core.advance(5000)
    core.log_in()

    assert produce(core)
    assert produce(core)
    assert PRODUCE in core.session.prepared


def test_it_is_renewed_at_most_once_a_second(core: SaslCore) -> None:
    core.log_in()
    core.log_in()
    core.advance(999)
    answer = core.shake_hands("PLAIN")
    assert answer is not None
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE

    core.advance(1)
    assert core.log_in().error_code == ErrorCode.NONE


def test_another_principal_is_refused(core: SaslCore) -> None:
    core.log_in()
    core.shake_hands("PLAIN")
    assert core.authenticate(plain_message("bob", "bob-secret")) is None

    answer = core.advance(DELAY_MS)

    assert b"Cannot change principals during re-authentication from User.alice: User.bob" in answer
    assert core.is_closed
    assert core.session.principal == "User:alice"
    assert readings(core)["failed_reauthentication"] == 1


def test_another_mechanism_is_refused(core: SaslCore) -> None:
    core.log_in()
    answer = core.shake_hands("SCRAM-SHA-256")
    assert answer is not None
    assert answer.error_code == ErrorCode.NONE
    assert core.authenticate(ScramClient(ScramMechanism.SHA_256, "alice", "alice-secret").first()) is None

    told = core.advance(DELAY_MS)

    assert b"'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'" in told
    assert core.is_closed


def test_an_unknown_mechanism_ends_it(core: SaslCore) -> None:
    core.log_in()
    assert core.shake_hands("CRAM-MD5") is None

    answer = core.advance(DELAY_MS)

    assert answer[8:10] == ErrorCode.UNSUPPORTED_SASL_MECHANISM.to_bytes(2, "big")
    assert core.is_closed


def test_a_wrong_password_ends_it(core: SaslCore) -> None:
    core.log_in()
    core.shake_hands("PLAIN")
    core.authenticate(plain_message("alice", "wrong"))

    assert b"Invalid username or password" in core.advance(DELAY_MS)
    assert core.is_closed


def test_a_user_that_was_removed_is_not_renewed(core: SaslCore) -> None:
    core.log_in()
    core.set(
        connections_max_reauth_ms=str(LIFETIME_MS),
        listener_name_plaintext_plain_sasl_jaas_config=(
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="bob-secret";'
        ),
    )
    core.shake_hands("PLAIN")
    core.authenticate(plain_message("alice", "alice-secret"))
    core.advance(DELAY_MS)

    assert core.is_closed


@pytest.mark.parametrize(("token_ms", "told_ms"), [(4000, 4000), (60_000, LIFETIME_MS), (0, 0)])
def test_the_shorter_of_the_settings_and_the_credentials_lifetime_counts(
    core: SaslCore, token_ms: int, told_ms: int
) -> None:
    core.services.tokens = OneToken("token-1", Token("User:owner", NOW_MS + token_ms, "aGVsbG8="))
    client = ScramClient(ScramMechanism.SHA_256, "token-1", "aGVsbG8=", {TOKEN_AUTH: "true"})
    core.shake_hands("SCRAM-SHA-256")
    first = core.authenticate(client.first())
    assert first is not None
    final = core.authenticate(client.final(first.auth_bytes))

    assert final is not None
    assert final.session_lifetime_ms == told_ms
    core.advance(told_ms)
    assert core.ask(VERSIONS, 3) is None


def test_a_mechanism_may_have_a_lifetime_of_its_own(core: SaslCore) -> None:
    core.set(connections_max_reauth_ms=str(LIFETIME_MS), listener_name_plaintext_plain_connections_max_reauth_ms="3000")
    core.connect()
    assert core.log_in().session_lifetime_ms == 3000


def test_a_closed_connections_lifetime_is_forgotten(core: SaslCore) -> None:
    core.log_in()
    assert core.timer.entries
    connection: Connection = core.core.connection
    core.core.stage.thread.close_connection(connection)

    assert core.timer.entries == []


def test_while_it_is_renewed_requests_are_as_short_as_at_first(core: SaslCore) -> None:
    core.set(connections_max_reauth_ms=str(LIFETIME_MS), sasl_server_max_receive_size="1000")
    core.connect()
    core.log_in()
    core.shake_hands("PLAIN")
    core.send(frame_of(SaslAuthenticateRequest(auth_bytes=bytes(1001)), 2))

    assert core.is_closed


def test_how_it_went_is_counted(core: SaslCore) -> None:
    core.log_in()
    core.shake_hands("PLAIN")
    core.timer.advance(7)
    core.authenticate(plain_message("alice", "alice-secret"))
    core.connect()
    core.shake_hands("PLAIN")
    core.authenticate(plain_message("alice", "wrong"))

    found = readings(core)

    assert found["successful_authentication"] == 1
    assert found["successful_reauthentication"] == 1
    assert found["failed_authentication"] == 1
    assert found["reauthentication_latency_max"] == 7
    assert found["reauthentication_latency_avg"] == 7


def test_metadata_is_no_sign_of_life_for_an_expired_session(core: SaslCore) -> None:
    core.log_in()
    core.advance(LIFETIME_MS)

    assert core.ask(MetadataRequest(topics=[]), 1) is None
    assert core.is_closed
