"""Settings that promise safety which this version cannot give. A start with one of them is refused, and so is a change.

Whoever asks for an authoriser, TLS or a policy must not get a broker without, silently. What such a setting only tunes
(`ssl.keystore.location` without a TLS listener) promises nothing, in Kafka too; it is said to have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.config.errors import ConfigError
from kavka.config.listener_prefix import split_prefix

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

PLAINTEXT: Final = "PLAINTEXT"
KAFKAS_PRINCIPALS: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

_NO_AUTHORISER: Final = "this version has no authoriser, every client may do everything"
_NO_CLASSES: Final = "it names a Java class, which Kavka cannot load, so that nothing would be checked"
_NO_ZOOKEEPER: Final = "this version keeps the cluster's state itself, in a file that it cannot protect so"


def _is_given(text: str) -> bool:
    return bool(text)


def _is_true(text: str) -> bool:
    return text.lower() == "true"


PROMISES: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "authorizer.class.name": (_is_given, f"must be empty: {_NO_AUTHORISER}"),
    "super.users": (_is_given, f"must not be set: {_NO_AUTHORISER}"),
    "allow.everyone.if.no.acl.found": (lambda text: not _is_true(text), f"must be true: {_NO_AUTHORISER}"),
    "security.inter.broker.protocol": (
        lambda text: text.upper() != PLAINTEXT,
        "must be PLAINTEXT: this version has neither TLS nor SASL",
    ),
    "zookeeper.set.acl": (_is_true, f"must be false: {_NO_ZOOKEEPER}"),
    "zookeeper.ssl.client.enable": (_is_true, f"must be false: {_NO_ZOOKEEPER}"),
    "principal.builder.class": (lambda text: text not in ("", KAFKAS_PRINCIPALS), f"must not be set: {_NO_CLASSES}"),
    "alter.config.policy.class.name": (_is_given, f"must not be set: {_NO_CLASSES}"),
    "create.topic.policy.class.name": (_is_given, f"must not be set: {_NO_CLASSES}"),
    "client.quota.callback.class": (_is_given, f"must not be set: {_NO_CLASSES}"),
}
"""Name -> (whether a text promises something, what is expected instead). Names may have a listener's prefix."""

AUTHORISERS_OWN: Final = ("super.users", "allow.everyone.if.no.acl.found")
"""Settings of Kafka's authoriser itself: no rows, but known."""


def check_promises(config: BrokerValues) -> None:
    """Raises ConfigError for the first setting whose promise would not be kept."""
    for name, original in config.originals.items():
        prefixed = split_prefix(name)
        promise = PROMISES.get(name if prefixed is None else prefixed[1])
        if promise is not None and promise[0](original.text.strip()):
            raise ConfigError(name, original.text, promise[1])
    for listener in config.listeners:
        if listener.security_protocol != PLAINTEXT:
            expected = (
                f"listener {listener.name} has the security protocol {listener.security_protocol}, "
                "but this version serves PLAINTEXT only"
            )
            raise ConfigError("listeners", config.value("listeners"), expected)
    if config.zookeeper_connect:
        expected = "must not be set: this version runs single brokers, which keep the cluster's state themselves"
        raise ConfigError("zookeeper.connect", config.zookeeper_connect, expected)
