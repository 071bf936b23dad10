"""What handlers may call. Wired by `broker/server.py`, once, by hand."""

from typing import TYPE_CHECKING

from kavka.broker.core_services import CoreServices

if TYPE_CHECKING:
    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.coordination.transactions import TransactionCoordination


class Services(CoreServices):
    """The broker's parts, as handlers see them. Set before the first request, never changed after."""

    __slots__ = ("groups", "transactions")

    groups: "GroupCoordination"
    transactions: "TransactionCoordination"
