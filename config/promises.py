"""Settings that promise safety which this version cannot give. A start with one of them is refused, and so is a change.

Whoever asks for an authoriser, TLS or a policy must not get a broker without, silently. What such a setting only tunes
(`ssl.keystore.location` without a TLS listener) promises nothing, in Kafka too; it is said to have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.config.authorizer import (
    ACL_AUTHORIZER,
    ALLOW_EVERYONE,
    AUTHORIZERS,
    STANDARD_AUTHORIZER,
    SUPER_USERS,
    allows_unmentioned,
    super_users,
)
from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import split_prefix
from kavka.config.listeners import SASL
from kavka.config.values import without_values

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
KAFKAS_ENGINES: Final = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
KAFKAS_PRINCIPALS: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

_NO_AUTHORIZER: Final = "without authorizer.class.name every client may do everything"
_NO_CLASSES: Final = "it names a Java class, which Kavka cannot load, so that nothing would be checked"
_NO_LOGIN: Final = "it names a Java class, which Kavka cannot load, so that brokers would log in otherwise"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def _is_given(text: str) -> bool:
    return bool(text)


def _is_true(text: str) -> bool:
    return text.lower() == "true"


PROMISES: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "authorizer.class.name": (
        lambda text: text not in ("", *AUTHORIZERS),
        f"must be {ACL_AUTHORIZER}, its alias {STANDARD_AUTHORIZER}, or empty: {_NO_CLASSES}",
    ),
    "authorizer.zookeeper.url": (_is_given, "must not be set: ACLs are kept where the cluster's state is"),
    "zookeeper.ssl.client.enable": (_is_true, "must be false: this version talks to ZooKeeper without TLS"),
    "ssl.engine.factory.class": (lambda text: text not in ("", KAFKAS_ENGINES), f"must not be set: {_NO_CLASSES}"),
    "security.providers": (_is_given, f"must not be set: {_NO_CLASSES}"),
    "sasl.client.callback.handler.class": (_is_given, f"must not be set: {_NO_LOGIN}"),
    "sasl.login.class": (_is_given, f"must not be set: {_NO_LOGIN}"),
    "principal.builder.class": (lambda text: text not in ("", KAFKAS_PRINCIPALS), f"must not be set: {_NO_CLASSES}"),
    "alter.config.policy.class.name": (_is_given, f"must not be set: {_NO_CLASSES}"),
    "create.topic.policy.class.name": (_is_given, f"must not be set: {_NO_CLASSES}"),
    "replica.selector.class": (
        lambda text: text not in ("", RACK_AWARE_SELECTOR),
        f"must be {RACK_AWARE_SELECTOR}, or not be set: {_NO_CLASSES}",
    ),
    "client.quota.callback.class": (_is_given, f"must not be set: {_NO_CLASSES}"),
}
"""Name -> (whether a text promises something, what is expected instead). Names may have a listener's prefix, and behind
it a mechanism's."""


def promise_of(name: str) -> tuple[Callable[[str], bool], str] | None:
    """The entry in PROMISES that a setting falls under."""
    prefixed = split_prefix(name)
    if prefixed is None:
        return PROMISES.get(name)
    _mechanism, _, rest = prefixed[1].partition(".")
    return PROMISES.get(prefixed[1]) or (PROMISES.get(rest) if rest.startswith("sasl.") else None)


def check_promises(config: BrokerValues) -> None:
    """Raises ConfigError for the first setting whose promise would not be kept."""
    try:
        _check_promises(config)
    except ConfigError as error:
        raise without_values(error, config.given) from None


def _check_promises(config: BrokerValues) -> None:
    for name, original in config.originals.items():
        promise = promise_of(name)
        if promise is not None and promise[0](original.text.strip()):
            raise ConfigError(name, original.text, promise[1])
    _check_authorizer(config)
    for listener in config.listeners:
        if listener.security_protocol.endswith(SSL) and not any(
            config.listener_value(listener.name, name) for name in ("ssl.keystore.location", "ssl.keystore.key")
        ):
            expected = f"listener {listener.name} needs a key: ssl.keystore.location, or ssl.keystore.key as PEM"
            raise ConfigError("listeners", config.value("listeners"), expected)
    if any(listener.security_protocol.startswith(SASL) for listener in config.listeners):
        # Nobody else needs to load it.
        from kavka.config.sasl_settings import check_sasl

        check_sasl(config)
    between = config.listener_security_protocol_map.get(config.inter_broker_listener_name, PLAINTEXT)
    if config.zookeeper_connect and between != PLAINTEXT:
        # As above.
        from kavka.config.clients.towards_brokers import secure_towards

        secure_towards(config, config.inter_broker_listener_name)
    if config.zookeeper_set_acl and not config.zookeeper_connect:
        expected = (
            "must be false without zookeeper.connect: the cluster's state is in a file, which has no such protection"
        )
        raise ConfigError("zookeeper.set.acl", "true", expected)
    if config.zookeeper_set_acl and config.kavka_zookeeper_digest is None:
        expected = "needs a login at ZooKeeper, kavka.zookeeper.digest=user:password, which the nodes then belong to"
        raise ConfigError("zookeeper.set.acl", "true", expected)


def _check_authorizer(config: BrokerValues) -> None:
    principals, is_open = super_users(config), allows_unmentioned(config)
    if config.authorizer_class_name.strip():
        return
    # Kafka takes these without an authorizer, and nobody sets them who wants everybody to be one.
    if principals:
        raise ConfigError(SUPER_USERS, ";".join(sorted(principals)), f"must not be set: {_NO_AUTHORIZER}")
    if ALLOW_EVERYONE in config.originals and not is_open:
        raise ConfigError(ALLOW_EVERYONE, config.originals[ALLOW_EVERYONE].text, f"must be true: {_NO_AUTHORIZER}")
