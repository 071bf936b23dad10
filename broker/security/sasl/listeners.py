"""Makes listeners' SASL from their settings, and keeps what outlives a change of them: the keys that sign tokens."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kavka.broker.security.authentication_counts import counts_of
from kavka.broker.security.credentials.keeping import users_of
from kavka.broker.security.sasl.gate import SaslGate, Surroundings
from kavka.broker.security.sasl.plain import Plain
from kavka.broker.security.sasl.sasl_listener import SaslListener
from kavka.broker.security.sasl.scram import Scram, StandIns
from kavka.cluster.registry.base import RegistryError
from kavka.config.errors import ConfigError
from kavka.config.sasl_settings import GSSAPI, OAUTHBEARER, PLAIN, sasl_of
from kavka.protocol.sasl.scram import ScramMechanism

if TYPE_CHECKING:
    from kavka.broker.security.sasl.key_sets import KeySets
    from kavka.broker.security.sasl.mechanisms import Mechanism
    from kavka.broker.services import Services
    from kavka.broker.waiting.timer import Timer
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.sasl_settings import MechanismSettings

SHARED_SECRETS: Final = ("delegation.token.secret.key", "delegation.token.master.key", "password.encoder.secret")
"""What all brokers of a cluster share: by one of them they tell the same of users that do not exist."""

log = logging.getLogger(__name__)


class SaslListeners:
    """Those of one broker. Threads: `gate` by any; the others by one at a time."""

    def __init__(self, services: "Services", timer: "Timer", now_ns: Callable[[], int]) -> None:
        """Raises ConfigError where the users cannot be read: who logs in must not wait for the registry."""
        self._services = services
        try:
            users_of(services).load()
        except RegistryError as failure:
            raise ConfigError(None, None, f"nobody could log in by SASL: {failure}") from failure
        self._around = Surroundings(timer, counts_of(services.metrics), now_ns)
        self._key_sets: KeySets | None = None
        secrets = (services.config.current.value(name) for name in SHARED_SECRETS)
        self._stand_ins = StandIns(next((each.value.encode() for each in secrets if each is not None), None))

    def made(self, config: "BrokerConfig", listener_name: str) -> SaslListener:
        """One listener's. Raises ConfigError for a mechanism that cannot be served."""
        settings = sasl_of(config, listener_name)
        mechanisms = {each.name: self._mechanism(each, listener_name) for each in settings.mechanisms}
        return SaslListener(settings, mechanisms, self._services.now_ms)

    def gate(self, listener: Callable[[], SaslListener]) -> SaslGate:
        """What stands before a new connection to a listener, which `listener()` gives as it is set at the time."""
        return SaslGate(listener, self._around)

    def keep_only(self, listeners: Sequence[SaslListener]) -> None:
        """End what none of these needs."""
        if self._key_sets is not None:
            self._key_sets.keep_only([each for listener in listeners for each in listener.mechanisms.values()])

    def _mechanism(self, settings: "MechanismSettings", listener_name: str) -> "Mechanism":
        """Raises ConfigError."""
        if settings.name == PLAIN:
            return Plain({} if settings.jaas is None else settings.jaas.options)
        if settings.name == OAUTHBEARER:
            return self._oauthbearer(settings, listener_name)
        if settings.name == GSSAPI:
            return _kerberos(settings, listener_name)
        return Scram(ScramMechanism(settings.name), self._services, self._stand_ins)

    def _oauthbearer(self, settings: "MechanismSettings", listener_name: str) -> "Mechanism":
        from kavka.broker.security.sasl.oauthbearer import OAuthBearer

        rules = settings.tokens
        if rules is not None and rules.jwks_url is not None:
            if self._key_sets is None:
                from kavka.broker.security.sasl.key_sets import KeySets

                self._key_sets = KeySets(self._services.now_ms)
            return OAuthBearer(self._key_sets.tokens(rules))
        from kavka.broker.security.sasl.unsigned_tokens import UnsignedTokens

        options = {} if settings.jaas is None else settings.jaas.options
        try:
            tokens = UnsignedTokens(options, self._services.now_ms)
        except ValueError as problem:
            name = f"listener.name.{listener_name.lower()}.oauthbearer.sasl.jaas.config"
            raise ConfigError(name, "[hidden]", str(problem)) from None
        log.warning("tokens are believed that nobody has signed listener=%s", listener_name)
        return OAuthBearer(tokens)


def _kerberos(settings: "MechanismSettings", listener_name: str) -> "Mechanism":
    try:
        from kavka.broker.security.sasl.kerberos import Kerberos, KerberosError
    except ImportError as problem:
        expected = f"of listener {listener_name} needs kavka[kerberos] and the system's krb5: {problem}"
        raise ConfigError("sasl.enabled.mechanisms", GSSAPI, expected) from problem
    options = {} if settings.jaas is None else settings.jaas.options
    try:
        return Kerberos(options, settings.local_rules)
    except KerberosError as problem:
        name = f"listener.name.{listener_name.lower()}.gssapi.sasl.jaas.config"
        raise ConfigError(name, "[hidden]", str(problem)) from problem
    except ValueError as problem:
        name = "sasl.kerberos.principal.to.local.rules"
        raise ConfigError(name, ",".join(settings.local_rules), str(problem)) from problem
