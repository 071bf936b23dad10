"""Settings that Kafka's authorizer reads by itself: they have no rows, and count where there is an authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kavka.config.errors import ConfigError

if TYPE_CHECKING:
    from kavka.config.broker_values import BrokerValues

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""Of clusters on KRaft. The same rules, so that such a file serves here too."""
AUTHORIZERS: Final = (ACL_AUTHORIZER, STANDARD_AUTHORIZER)

SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
AUTHORIZERS_OWN: Final = (SUPER_USERS, ALLOW_EVERYONE)


def super_users(config: BrokerValues) -> frozenset[str]:
    """The principals, as `User:NAME`, that may do everything. Raises ConfigError."""
    text = _text(config, SUPER_USERS)
    principals = [each.strip() for each in text.rstrip(";").split(";")] if text else []
    for principal in principals:
        if ":" not in principal:
            raise ConfigError(SUPER_USERS, text, f"{principal!r} is no principal in the form User:NAME")
    return frozenset(principals)


def allows_unmentioned(config: BrokerValues) -> bool:
    """Whether everybody may do everything to a resource that no ACL is about. Raises ConfigError."""
    text = _text(config, ALLOW_EVERYONE).lower()
    if text not in ("", "true", "false"):
        raise ConfigError(ALLOW_EVERYONE, text, "must be true or false")
    return text == "true"


def _text(config: BrokerValues, name: str) -> str:
    original = config.originals.get(name)
    return "" if original is None else original.text.strip()
