"""How a broker is a client of the others: by the rows of the listener at which it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kavka.config.clients.loading import secure_settings
from kavka.config.clients.secure import SecureSettings
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import PREFIX

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

_JAAS: Final = "sasl.jaas.config"
_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_OF_LISTENER: Final = (
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
_OF_LOGIN: Final = (
    "sasl.login.callback.handler.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
)
"""They may also be one mechanism's."""


def secure_towards(config: BrokerValues, listener_name: str) -> SecureSettings:
    """How this broker makes connections to others' listeners of that name secure. Raises ConfigError.

    As in Kafka its name and password are in the JAAS text by which the listener knows its users.
    """
    protocol = config.listener_security_protocol_map.get(listener_name, "PLAINTEXT")
    given: dict[str, Any] = {name: config.listener_value(listener_name, name) for name in _OF_LISTENER}
    given["security.protocol"] = protocol
    if protocol.startswith("SASL_"):
        mechanism = given["sasl.mechanism"] = config.value(_MECHANISM)
        for name in _OF_LOGIN:
            own = config.listener_given(listener_name, f"{mechanism.lower()}.{name}")
            given[name] = config.listener_value(listener_name, name) if own is None else own
        given[_JAAS] = config.listener_given(listener_name, f"{mechanism.lower()}.{_JAAS}")
    settings = secure_settings(given)
    if protocol.startswith("SASL_") and settings.sasl_jaas_config is None:
        name = f"{PREFIX}{listener_name.lower()}.{settings.sasl_mechanism.lower()}.{_JAAS}"
        raise ConfigError(name, None, "must be set: by what is in it brokers log in at one another")
    return settings
