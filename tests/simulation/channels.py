"""What a simulated broker's controller has to say, and what of it waits."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from kavka.broker.interbroker.control_order import Order
from kavka.broker.interbroker.control_queue import ControlQueue
from kavka.broker.interbroker.own_orders import OwnOrders
from kavka.cluster.ports import ControlRequest, OnResponse
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker


class Way:
    """From a controller to one incarnation of a broker."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.queue = ControlQueue()


class Channels:
    """The `BrokerChannels` of a simulated broker: what is sent waits in `ways` to be delivered."""

    def __init__(self, own: SimulatedBroker) -> None:
        self._own = own
        self._own_orders = OwnOrders(own.broker_id, own.port, _died)
        self._begun: Order | None = None
        self.is_slow = False
        self.ways: dict[int, Way] = {}
        self.numbers = count()
        """Of requests, whatever connection they are sent over."""

    def update_brokers(self, brokers: Iterable[BrokerInfo]) -> None:
        brokers = list(brokers)
        self._own_orders.update_brokers(brokers)
        live = {info.broker_id: info.epoch for info in brokers if info.broker_id != self._own.broker_id}
        for broker_id, way in list(self.ways.items()):
            if live.get(broker_id) != way.epoch:
                del self.ways[broker_id]
                for order in way.queue.clear():
                    order.answer(_gone())
        for broker_id, epoch in live.items():
            self.ways.setdefault(broker_id, Way(epoch))

    def send(self, broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        if broker_id == self._own.broker_id:
            self._own_orders.send(broker_id, request, on_response)
            self.obey_own()
        elif (way := self.ways.get(broker_id)) is not None:
            way.queue.put(request, on_response)
        else:
            on_response(_gone())

    def done_so_far(self) -> None:
        """No action waits for an answer."""

    def obey_own(self) -> None:
        """What the `kavka-own-orders` thread does; while the disk `is_slow`, one order is begun and none done."""
        while (order := self._begun or self._own_orders.take()) is not None:
            self._begun = order
            if self.is_slow:
                return
            self._begun = None
            self._own_orders.do(order)

    def close(self) -> None:
        self.ways.clear()


def _died(failure: BaseException) -> None:
    raise failure


def _gone() -> BrokerError:
    return BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "gone")
