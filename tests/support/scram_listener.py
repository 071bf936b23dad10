"""A listener that asks for SCRAM beside a plain one, and a client of it that logs in by hand."""

import hashlib
import re
from typing import Any, Final

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kavka.protocol.sasl.scram import TOKEN_AUTH, ScramClient, ScramMechanism
from kavka.protocol.sasl.scram_messages import ScramError
from tests.support.wire import RawClient

HOST: Final = "127.0.0.1"
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def with_scram_listener(port: int, scram_port: int) -> dict[str, str]:
    """Settings: the listener PLAINTEXT, and SCRAM by SASL_PLAINTEXT, for Kavka and Kafka alike."""
    listeners = f"PLAINTEXT://{HOST}:{port},SCRAM://{HOST}:{scram_port}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SCRAM:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.scram.{each.lower()}.sasl.jaas.config": f"{MODULE};" for each in MECHANISMS},
    }


def log_in(
    client: RawClient,
    user: str,
    password: str,
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    *,
    by_token: bool = False,
) -> bool:
    """Whether the broker lets `user` in, and proves itself that it knows the password."""
    assert client.ask(SaslHandshakeRequest(mechanism=mechanism.value), 1).error_code == ErrorCode.NONE
    machine = ScramClient(mechanism, user, password, {TOKEN_AUTH: "true"} if by_token else {})
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=machine.first()), 2)
    if answer.error_code != ErrorCode.NONE:
        return False
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=machine.final(bytes(answer.auth_bytes))), 2)
    if answer.error_code != ErrorCode.NONE:
        return False
    try:
        machine.verify(bytes(answer.auth_bytes))
    except ScramError:
        return False
    return True


def lets_in(
    port: int,
    user: str,
    password: str,
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    *,
    by_token: bool = False,
) -> bool:
    """As `log_in`, over a connection of its own."""
    with RawClient(HOST, port) as client:
        return log_in(client, user, password, mechanism, by_token=by_token)


def set_password(
    client: RawClient, user: str, password: str, mechanism: ScramMechanism = ScramMechanism.SHA_256
) -> Any:
    """The answer for the user."""
    salt = hashlib.sha256(user.encode()).digest()
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, 4096)
    upsertion = ScramCredentialUpsertion(
        name=user, mechanism=mechanism.number, iterations=4096, salt=salt, salted_password=salted
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
    (result,) = client.ask(request, 0).results
    return result


def remove_password(client: RawClient, user: str, mechanism: ScramMechanism = ScramMechanism.SHA_256) -> Any:
    """The answer for the user."""
    deletion = ScramCredentialDeletion(name=user, mechanism=mechanism.number)
    (result,) = client.ask(AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[]), 0).results
    return result


def jaas(user: str, password: str, *, by_token: bool = False) -> str:
    """A Java client's sasl.jaas.config."""
    quoted = [re.sub(r'(["\\])', r"\\\1", text) for text in (user, password)]
    token = " tokenauth=true" if by_token else ""
    return f'{MODULE} username="{quoted[0]}" password="{quoted[1]}"{token};'
