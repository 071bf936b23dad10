"""Where the cluster's state is kept: in ZooKeeper with `zookeeper.connect`, else in a file of this broker's own."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.metadata.identity import IdentityError
from kavka.cluster.broker_registration import known_cluster_id
from kavka.cluster.registry.base import NoNodeError
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.config.errors import ConfigError

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics
    from kavka.cluster.registry.base import Registry
    from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
    from kavka.config.broker_config import BrokerConfig
    from kavka.storage.meta_properties import MetaProperties

EXPIRY_ALLOWANCE_MS: Final = 3000
"""ZooKeeper ends sessions at its ticks only, and one is two seconds long by default."""


OpenRegistry = Callable[["BrokerConfig", "MetaProperties", "Metrics", Callable[[], int]], "Registry"]
"""Opens a registry for a broker, of which these are the settings, what its directories say, its metrics and its clock.

Whether the registry is one broker's own or a cluster's is said by `zookeeper.connect`, whoever opens it.
"""


def open_registry(
    config: "BrokerConfig", owner: "MetaProperties", metrics: "Metrics", now_ms: Callable[[], int]
) -> "Registry":
    """ZooKeeper with `zookeeper.connect`, else the file. Raises RegistryError, ConfigError, IdentityError."""
    if not config.zookeeper_connect:
        return open_embedded(config, now_ms)
    from kavka.broker.metrics.zookeeper_gauges import register_zookeeper_gauges

    registry = open_zookeeper(config, owner)
    register_zookeeper_gauges(metrics, registry)
    return registry


def open_embedded(config: "BrokerConfig", now_ms: Callable[[], int]) -> EmbeddedRegistry:
    """The registry of a broker that stands alone, in the first of `log.dirs`. Raises RegistryError."""
    return EmbeddedRegistry(config.log_dirs[0] / FILE_NAME, now_ms)


def open_zookeeper(config: "BrokerConfig", owner: "MetaProperties") -> "ZooKeeperRegistry":
    """The cluster's registry in ZooKeeper.

    A broker whose log directories belong to a cluster must find that one: it founds no other, which a mistake in
    `zookeeper.connect` would lead to. Raises RegistryError, ConfigError, IdentityError.
    """
    # A broker that stands alone never imports kazoo.
    from kavka.cluster.registry.connect_string import ConnectString
    from kavka.cluster.registry.zookeeper import ZooKeeperRegistry
    from kavka.cluster.registry.zookeeper_session import SessionSettings

    text = config.zookeeper_connect or ""
    try:
        connect = ConnectString.parse(text)
    except ValueError as error:
        raise ConfigError("zookeeper.connect", text, f"must be host:port[,host:port][/path]: {error}") from None
    digest = config.kavka_zookeeper_digest
    if digest is not None and ":" not in digest.value:
        raise ConfigError("kavka.zookeeper.digest", digest, "must be user:password")
    settings = SessionSettings(
        connect,
        config.zookeeper_session_timeout_ms,
        config.zookeeper_max_in_flight_requests,
        None if digest is None else digest.value,
    )
    try:
        registry = ZooKeeperRegistry(
            settings,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            set_acl=config.zookeeper_set_acl,
            make_root=owner.cluster_id is None,
        )
    except NoNodeError as error:
        raise IdentityError(_not_there(text, owner, f"no node {error.path}")) from None
    try:
        _check_cluster(registry, text, owner)
    except BaseException:
        registry.close()
        raise
    return registry


def registration_patience_s(config: "BrokerConfig") -> float:
    """How long a start waits for a registration under its id to end: a broker that was killed leaves one behind."""
    if not config.zookeeper_connect:
        return 0.0
    return (config.zookeeper_session_timeout_ms + EXPIRY_ALLOWANCE_MS) / 1000


def _check_cluster(registry: "Registry", connect: str, owner: "MetaProperties") -> None:
    if owner.cluster_id is None:
        return
    found = known_cluster_id(registry)
    if found is None:
        raise IdentityError(_not_there(connect, owner, "no cluster"))
    if found != owner.cluster_id:
        raise IdentityError(
            f"zookeeper.connect={connect} leads to cluster {found}, the log directories belong to {owner.cluster_id}"
        )


def _not_there(connect: str, owner: "MetaProperties", found: str) -> str:
    return (
        f"zookeeper.connect={connect} leads to {found}, but the log directories belong to cluster {owner.cluster_id}: "
        "another root path? (kavka registry copy takes a stopped broker's cluster there)"
    )
