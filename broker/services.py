"""What handlers may call. Wired by `broker/server.py`, once, by hand."""

from typing import TYPE_CHECKING

from kavka.broker.core_services import CoreServices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.coordination.transactions import TransactionCoordination
    from kavka.broker.log_moves.replica_moves import ReplicaMoves
    from kavka.broker.partitions.local_broker import LocalBroker
    from kavka.broker.security.authorizer.kept_acls import KeptAcls
    from kavka.broker.security.credentials.delegation_tokens import DelegationTokens
    from kavka.broker.security.credentials.registry_worker import RegistryWorker
    from kavka.broker.security.credentials.scram_store import ScramStore


class Services(CoreServices):
    """The broker's parts, as handlers see them. See CoreServices."""

    __slots__ = (
        "acls",
        "groups",
        "local_broker",
        "registry_worker",
        "replica_moves",
        "resolver_worker",
        "scram_credentials",
        "served_versions",
        "tokens",
        "transactions",
    )

    acls: "KeptAcls | None"
    """What administrators ask for ACLs; None without an authorizer."""
    groups: "GroupCoordination"
    local_broker: "LocalBroker"
    """This broker as its controller sees it."""
    registry_worker: "Callable[[], RegistryWorker]"
    """Gives who works for requests that read the registry, or write to it, which other threads may not wait for."""
    replica_moves: "ReplicaMoves"
    resolver_worker: "Callable[[], RegistryWorker]"
    """Gives who waits for a resolver, which those that wait for the registry may not."""
    scram_credentials: "ScramStore | None"
    """None while no listener has SASL; set before anybody can connect to the first that has."""
    served_versions: "Mapping[int, tuple[int, int]]"
    """API key -> the lowest and the highest version that ApiVersions shows."""
    tokens: "DelegationTokens | None"
    """None without `delegation.token.secret.key`."""
    transactions: "TransactionCoordination"

    def __init__(self) -> None:
        super().__init__()
        self.acls = None
        self.scram_credentials = None
        self.tokens = None
