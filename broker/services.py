"""What handlers may call. Wired by `broker/server.py`, once, by hand."""

from typing import TYPE_CHECKING

from kavka.broker.core_services import CoreServices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.coordination.transactions import TransactionCoordination
    from kavka.broker.log_moves.replica_moves import ReplicaMoves
    from kavka.broker.partitions.local_broker import LocalBroker


class Services(CoreServices):
    """The broker's parts, as handlers see them. Set before the first request, never changed after."""

    __slots__ = ("groups", "local_broker", "replica_moves", "served_versions", "transactions")

    groups: "GroupCoordination"
    local_broker: "LocalBroker"
    """This broker as its controller sees it."""
    replica_moves: "ReplicaMoves"
    served_versions: "Mapping[int, tuple[int, int]]"
    """API key -> the lowest and the highest version that ApiVersions shows."""
    transactions: "TransactionCoordination"
