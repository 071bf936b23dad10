"""What a listener's SASL settings come to: the mechanisms that it lets clients in by, each with what it needs.

A mechanism's settings are those with its name behind the listener's prefix, where Kafka looks first:

    listener.name.external.sasl.enabled.mechanisms=SCRAM-SHA-512,OAUTHBEARER
    listener.name.external.oauthbearer.sasl.jaas.config=...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kavka.config.errors import ConfigError
from kavka.config.jaas import JaasEntry, only_entry
from kavka.config.listener_prefix import PREFIX
from kavka.config.listeners import SASL
from kavka.config.urls import check_url
from kavka.config.values import Password

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

PLAIN, SCRAM_256, SCRAM_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER, GSSAPI = "OAUTHBEARER", "GSSAPI"
SCRAM: Final = (SCRAM_256, SCRAM_512)
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)

LOGIN_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    SCRAM_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    SCRAM_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    GSSAPI: "com.sun.security.auth.module.Krb5LoginModule",
}
JAAS: Final = "sasl.jaas.config"
_OAUTHBEARER_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
UNSECURED_VALIDATOR: Final = f"{_OAUTHBEARER_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATORS: Final = (
    f"{_OAUTHBEARER_PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{_OAUTHBEARER_PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)
"""Where it was before 3.4, and is."""


class TokenRules(NamedTuple):
    """What an OAUTHBEARER token must be like to be believed. `jwks_url` None: it is not signed at all."""

    jwks_url: str | None
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    clock_skew_s: int
    audiences: tuple[str, ...]
    """One of them, unless there are none."""
    issuer: str | None
    scope_claim: str
    subject_claim: str
    web_options: tuple[tuple[str, Password], ...] = ()
    """`ssl.*` of the login module: whom to trust where the keys are fetched."""


class MechanismSettings(NamedTuple):
    """One enabled mechanism of one listener."""

    name: str
    jaas: JaasEntry | None
    max_reauth_ms: int
    """How long a session lasts at most; 0: no limit."""
    tokens: TokenRules | None
    """OAUTHBEARER's."""
    local_rules: tuple[str, ...]
    """GSSAPI's: how a principal becomes a user's name."""


class ListenerSasl(NamedTuple):
    """One listener's SASL."""

    listener_name: str
    mechanisms: tuple[MechanismSettings, ...]
    max_receive_bytes: int
    failure_delay_ms: int


def sasl_of(config: BrokerValues, listener_name: str) -> ListenerSasl:
    """The listener's SASL. Raises ConfigError for a mechanism that cannot be served as it is set."""
    name = "sasl.enabled.mechanisms"
    enabled: tuple[str, ...] = config.listener_value(listener_name, name)
    if not enabled:
        raise ConfigError(name, "", f"listener {listener_name} needs one of {', '.join(MECHANISMS)}")
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            expected = f"of listener {listener_name} must be some of {', '.join(MECHANISMS)}"
            raise ConfigError(name, ",".join(enabled), expected)
    return ListenerSasl(
        listener_name,
        tuple(_mechanism(config, listener_name, each) for each in dict.fromkeys(enabled)),
        config.listener_value(listener_name, "sasl.server.max.receive.size"),
        config.value("connection.failed.authentication.delay.ms"),
    )


def check_sasl(config: BrokerValues) -> None:
    """Raises ConfigError for the first listener whose SASL cannot be served as it is set."""
    for listener in config.listeners:
        if listener.security_protocol.startswith(SASL):
            sasl_of(config, listener.name)


def _mechanism(config: BrokerValues, listener_name: str, mechanism: str) -> MechanismSettings:
    handler = _given(config, listener_name, mechanism, "sasl.server.callback.handler.class")
    if handler and (mechanism != OAUTHBEARER or handler not in (UNSECURED_VALIDATOR, *VALIDATORS)):
        expected = "it names a Java class, which Kavka cannot load, so that nothing would be checked"
        raise ConfigError("sasl.server.callback.handler.class", handler, f"must not be set: {expected}")
    jaas = _jaas(config, listener_name, mechanism)
    return MechanismSettings(
        mechanism,
        jaas,
        _given(config, listener_name, mechanism, "connections.max.reauth.ms"),
        _token_rules(config, listener_name, handler, jaas) if mechanism == OAUTHBEARER else None,
        _given(config, listener_name, mechanism, "sasl.kerberos.principal.to.local.rules"),
    )


def _jaas(config: BrokerValues, listener_name: str, mechanism: str) -> JaasEntry | None:
    """Only with the listener's and the mechanism's names before it, as in Kafka."""
    rest = f"{mechanism.lower()}.{JAAS}"
    name = f"{PREFIX}{listener_name.lower()}.{rest}"
    text = config.listener_given(listener_name, rest)
    module = LOGIN_MODULES[mechanism]
    if text is None:
        # The other mechanisms find their users elsewhere, and Kafka's text for them says nothing.
        if mechanism in (PLAIN, GSSAPI):
            raise ConfigError(name, None, f"must be set: {module} required ...;")
        return None
    try:
        entry = only_entry(text.value)
    except ValueError as problem:
        raise ConfigError(name, "[hidden]", str(problem)) from None
    if not entry.is_of(module):
        raise ConfigError(name, "[hidden]", f"must be {module} required ...;")
    return entry


def _token_rules(config: BrokerValues, listener_name: str, handler: str | None, jaas: JaasEntry | None) -> TokenRules:
    def given(name: str) -> Any:
        return _given(config, listener_name, OAUTHBEARER, name)

    options = {} if jaas is None else jaas.options
    name = "sasl.oauthbearer.jwks.endpoint.url"
    url = given(name)
    if handler in VALIDATORS and not url:
        raise ConfigError(name, url, f"must be set: listener {listener_name} checks tokens' signatures")
    if handler == UNSECURED_VALIDATOR and url:
        expected = f"must not be set: listener {listener_name} has the handler that takes unsigned tokens"
        raise ConfigError(name, url, expected)
    if url:
        check_url(name, url)
    refresh = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
    if given(refresh) < 1:
        raise ConfigError(refresh, given(refresh), f"listener {listener_name} fetches keys at most once a millisecond")
    return TokenRules(
        url or None,
        given(refresh),
        given("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        given("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        given("sasl.oauthbearer.clock.skew.seconds"),
        given("sasl.oauthbearer.expected.audience") or (),
        given("sasl.oauthbearer.expected.issuer"),
        given("sasl.oauthbearer.scope.claim.name"),
        given("sasl.oauthbearer.sub.claim.name"),
        tuple((name, Password(text)) for name, text in sorted(options.items()) if name.startswith("ssl.")),
    )


def _given(config: BrokerValues, listener_name: str, mechanism: str, name: str) -> Any:
    """A setting as the mechanism has it, else as the listener does, else the broker."""
    own = config.listener_given(listener_name, f"{mechanism.lower()}.{name}")
    return config.listener_value(listener_name, name) if own is None else own
