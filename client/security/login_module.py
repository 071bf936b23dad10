"""From settings to a mechanism: what the login module in `sasl.jaas.config` says of who the client is."""

from collections.abc import Mapping
from functools import partial
from typing import Final, NoReturn

from kavka.client.security.mechanisms import Mechanism, PlainConversation, ScramConversation
from kavka.config.clients.secure import SecureSettings
from kavka.config.errors import ConfigError
from kavka.config.jaas import JaasEntry, only_entry
from kavka.config.values import HIDDEN
from kavka.protocol.sasl.scram import TOKEN_AUTH, ScramMechanism

JAAS: Final = "sasl.jaas.config"
OAUTHBEARER: Final = "OAUTHBEARER"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_WITH_PASSWORDS: Final = (PLAIN_MODULE, SCRAM_MODULE)


def login_entry(settings: SecureSettings) -> JaasEntry:
    """The login module that fits the mechanism. Raises ConfigError, which shows nothing of the text."""
    if settings.sasl_jaas_config is None:
        raise ConfigError(JAAS, None, f"{settings.sasl_mechanism} needs a login module with its options")
    try:
        entry = only_entry(settings.sasl_jaas_config.value)
    except ValueError as failure:
        raise ConfigError(JAAS, HIDDEN, str(failure)) from None
    fitting = (BEARER_MODULE,) if settings.sasl_mechanism == OAUTHBEARER else _WITH_PASSWORDS
    if not any(map(entry.is_of, fitting)):
        # In Kafka any class may log in. That of another mechanism would have nothing for this one.
        raise ConfigError(
            JAAS, HIDDEN, f"The login module for {settings.sasl_mechanism} must be {' or '.join(fitting)}"
        )
    return entry


def password_mechanism(settings: SecureSettings) -> Mechanism:
    """PLAIN or SCRAM, with the name and the password. Raises ConfigError."""
    name, options = settings.sasl_mechanism, login_entry(settings).options
    user, password = _credential(name, options)
    if name == "PLAIN":
        return Mechanism(name, partial(PlainConversation, user, password))
    if not user.isascii() or any(character < " " for character in user):
        _refuse(f"{name} takes names of ASCII alone")
    is_token = options.get(TOKEN_AUTH, "false").lower() == "true"
    extensions = {TOKEN_AUTH: "true"} if is_token else {}
    return Mechanism(name, partial(ScramConversation, ScramMechanism(name), user, password, extensions))


def _credential(mechanism: str, options: Mapping[str, str]) -> tuple[str, str]:
    user, password = options.get("username", ""), options.get("password", "")
    if not user or not password:
        _refuse(f"The login module for {mechanism} needs the options username and password")
    if "\0" in user + password:
        _refuse("username and password must have no characters of the value 0")
    return user, password


def _refuse(reason: str) -> NoReturn:
    raise ConfigError(JAAS, HIDDEN, reason)
