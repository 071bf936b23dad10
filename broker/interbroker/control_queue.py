"""What one broker is still to be told by the controller, in order. No network, no clock, no lock."""

from collections import deque
from typing import Final

from kavka.broker.interbroker.control_order import Order, condensed, sender_of
from kavka.cluster.ports import ControlRequest, OnResponse
from kavka.protocol.messages.update_metadata import INCREMENTAL

MAX_WAITING: Final = 1_000
"""So many orders may wait for a broker that does not answer: then they are made few again."""


class ControlQueue:
    """Orders, oldest first. The first one may be in flight: it is not changed any more then.

    It is bounded by the partitions that the broker is told of, not by how long it does not answer.
    """

    __slots__ = ("_in_flight", "_limit", "_orders", "_waiting")

    def __init__(self) -> None:
        self._orders: deque[Order] = deque()
        self._in_flight = False
        self._waiting = 0
        self._limit = MAX_WAITING

    def __len__(self) -> int:
        return len(self._orders)

    def put(self, request: ControlRequest, on_response: OnResponse) -> list[Order]:
        """Append, or merge with the last one. Gives the orders whose place newer ones took: they get no answer."""
        is_taken = self._in_flight and len(self._orders) == 1
        if not self._orders or is_taken or not self._orders[-1].merge(request, on_response):
            self._orders.append(Order(request, (on_response,)))
        self._waiting += 1
        return self._condense() if self._waiting > self._limit else []

    def take(self) -> Order | None:
        """The first one, to be sent; None when there is none, or it is in flight already."""
        if self._in_flight or not self._orders:
            return None
        self._in_flight = True
        return self._orders[0]

    def give_back(self) -> None:
        """The first one could not be delivered: it is still the first one."""
        self._in_flight = False

    def done(self) -> None:
        """The first one was answered."""
        self._waiting -= self._orders.popleft().waiting
        self._in_flight = False

    def clear(self) -> list[Order]:
        """Give up all but the one in flight."""
        orders = list(self._orders)
        taken = int(self._in_flight)
        self._orders = deque(orders[:taken])
        self._waiting = sum(order.waiting for order in self._orders)
        return orders[taken:]

    def _condense(self) -> list[Order]:
        """Those of the last sender, but for what is in flight."""
        orders = list(self._orders)
        sender = sender_of(orders[-1].request)
        begin = len(orders)
        while begin > int(self._in_flight) and _may_be_condensed(orders[begin - 1], sender):
            begin -= 1
        made, superseded = condensed(orders[begin:])
        self._orders = deque([*orders[:begin], *made])
        self._waiting = sum(order.waiting for order in self._orders)
        self._limit = MAX_WAITING + 2 * self._waiting
        return superseded


def _may_be_condensed(order: Order, sender: tuple[int, int, int]) -> bool:
    request = order.request
    return sender_of(request) == sender and getattr(request, "type", INCREMENTAL) == INCREMENTAL
