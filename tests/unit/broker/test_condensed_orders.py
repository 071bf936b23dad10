"""However few a broker's orders are made, it ends up as if it had been told all of them."""

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.broker.interbroker.control_order import Order, condensed
from kavka.broker.interbroker.control_queue import MAX_WAITING, ControlQueue
from kavka.cluster.ports import ControlRequest
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kavka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

TOPICS = ("a", "b")
PARTITIONS = 2


class Controller:
    """Gives orders about partitions of two topics, which come, go and come again under another id."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._generation = dict.fromkeys(TOPICS, 1)
        self._known: set[tuple[str, int]] = set()
        self._epoch = 0

    def order(self) -> ControlRequest:
        self._epoch += 1
        topic, partition = self._dice.choice(TOPICS), self._dice.randrange(PARTITIONS)
        return self._dice.choice([self.lead, self.lead, self.publish, self.publish, self.stop, self.delete])(
            topic, partition
        )

    def topic_id(self, topic: str) -> bytes:
        return self._generation[topic].to_bytes(16, "big")

    def lead(self, topic: str, partition: int) -> ControlRequest:
        is_new = (topic, partition) not in self._known
        self._known.add((topic, partition))
        leader = self._dice.randrange(1, 4)
        state = LeaderAndIsrPartitionState(
            partition_index=partition,
            controller_epoch=1,
            leader=leader,
            leader_epoch=self._epoch,
            isr=[leader],
            partition_epoch=0,
            replicas=[1, 2, 3],
            is_new=is_new,
        )
        return LeaderAndIsrRequest(
            controller_id=1,
            controller_epoch=1,
            broker_epoch=7,
            topic_states=[
                LeaderAndIsrTopicState(topic_name=topic, topic_id=self.topic_id(topic), partition_states=[state])
            ],
            live_leaders=[LeaderAndIsrLiveLeader(broker_id=leader, host_name="h", port=1)],
        )

    def publish(self, topic: str, partition: int) -> ControlRequest:
        state = UpdateMetadataPartitionState(
            partition_index=partition,
            controller_epoch=1,
            leader=1,
            leader_epoch=self._epoch,
            isr=[1],
            zk_version=0,
            replicas=[1],
        )
        return UpdateMetadataRequest(
            controller_id=1,
            controller_epoch=1,
            broker_epoch=7,
            topic_states=[
                UpdateMetadataTopicState(topic_name=topic, topic_id=self.topic_id(topic), partition_states=[state])
            ],
            live_brokers=[UpdateMetadataBroker(id=each) for each in (1, 2, 3, 100 + self._epoch)],
        )

    def stop(self, topic: str, partition: int) -> ControlRequest:
        return self._stopping(topic, [partition], delete=False)

    def delete(self, topic: str, _partition: int) -> ControlRequest:
        request = self._stopping(topic, list(range(PARTITIONS)), delete=True)
        self._generation[topic] += 1
        self._known -= {(topic, index) for index in range(PARTITIONS)}
        return request

    def _stopping(self, topic: str, partitions: list[int], *, delete: bool) -> ControlRequest:
        states = [
            StopReplicaPartitionState(partition_index=index, leader_epoch=self._epoch, delete_partition=delete)
            for index in partitions
        ]
        return StopReplicaRequest(
            controller_id=1,
            controller_epoch=1,
            broker_epoch=7,
            topic_states=[StopReplicaTopicState(topic_name=topic, partition_states=states)],
        )


class Broker:
    """What a broker makes of orders."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], bytes] = {}
        self.led: dict[tuple[str, int], tuple[int, int]] = {}
        self.leaders: dict[tuple[str, bytes, int], int] = {}
        self.live: list[int] = []

    def obey(self, request: Any) -> None:
        if isinstance(request, LeaderAndIsrRequest):
            self._lead(request)
        elif isinstance(request, StopReplicaRequest):
            for topic in request.topic_states:
                for stop in topic.partition_states:
                    self.led.pop((topic.topic_name, stop.partition_index), None)
                    if stop.delete_partition:
                        self.logs.pop((topic.topic_name, stop.partition_index), None)
        else:
            self.live = [broker.id for broker in request.live_brokers]
            for topic in request.topic_states:
                for state in topic.partition_states:
                    self.leaders[topic.topic_name, topic.topic_id, state.partition_index] = state.leader_epoch

    def _lead(self, request: LeaderAndIsrRequest) -> None:
        for topic in request.topic_states:
            for state in topic.partition_states:
                place = topic.topic_name, state.partition_index
                assert self.logs.get(place, topic.topic_id) == topic.topic_id, "a deleted topic is in the way"
                assert state.is_new or place in self.logs, "a log that is not there is to be made for new ones only"
                assert not self.live or state.leader in self.live
                self.logs[place] = topic.topic_id
                self.led[place] = state.leader, state.leader_epoch


def nobody(_response: object) -> None:
    """Nobody waits for this one."""


@given(st.randoms(use_true_random=False), st.integers(0, 30))
def test_a_broker_ends_up_the_same(dice: random.Random, count: int) -> None:
    controller = Controller(dice)
    orders = [controller.order() for _ in range(count)]
    before = copy.deepcopy([vars(each) for each in orders])
    told_all, told_few = Broker(), Broker()
    for request in orders:
        told_all.obey(request)

    few = condensed([Order(request, (nobody,)) for request in orders])

    for order in few.orders:
        told_few.obey(order.request)
    assert len(few.orders) <= 4
    assert told_few.led == told_all.led
    assert told_few.leaders == told_all.leaders
    assert told_few.live == told_all.live
    # A log that was stopped, not deleted, before the broker heard of it was never made.
    assert told_few.logs.items() <= told_all.logs.items()
    assert told_few.logs.keys() >= told_all.led.keys()
    assert [vars(each) for each in orders] == before, "other brokers are told the same objects"
    stops = sum(isinstance(each, StopReplicaRequest) for each in orders)
    kinds = {type(each) for each in orders} - {StopReplicaRequest}
    assert sum(order.waiting for order in few.orders) == stops + len(kinds)
    assert sum(order.waiting for order in few.superseded) == count - stops - len(kinds)


@pytest.mark.parametrize("is_in_flight", [False, True])
def test_a_queue_stays_short_however_long_a_broker_takes_nothing(is_in_flight: bool) -> None:
    controller, queue = Controller(random.Random(5)), ControlQueue()
    first = controller.lead("a", 0)
    queue.put(first, nobody)
    taken = queue.take() if is_in_flight else None
    superseded = 0
    orders = [first]
    for _ in range(10 * MAX_WAITING):
        # Nothing is stopped: who waits for that is owed an answer.
        order = controller.lead("a", 1) if len(orders) % 2 else controller.publish("b", 1)
        orders.append(order)
        superseded += sum(each.waiting for each in queue.put(order, nobody))
        assert len(queue) <= MAX_WAITING + 20
    told_all, told_few = Broker(), Broker()
    for order in orders:
        told_all.obey(order)
    if taken is not None:
        assert taken.request is first
        told_few.obey(first)
        queue.done()
    answered = 1 if is_in_flight else 0
    while (left := queue.take()) is not None:
        told_few.obey(left.request)
        answered += left.waiting
        queue.done()
    assert told_few.led == told_all.led
    assert told_few.leaders == told_all.leaders
    assert answered + superseded == len(orders)


def test_orders_of_an_earlier_controller_stay_before_those_of_the_next() -> None:
    controller, queue = Controller(random.Random(5)), ControlQueue()
    old = [controller.lead("a", 0), controller.publish("a", 0)]
    for request in old:
        queue.put(request, nobody)
    for index in range(MAX_WAITING):
        request = controller.lead("b", index % 2)
        request.controller_epoch = 2
        queue.put(request, nobody)
    epochs = []
    while (order := queue.take()) is not None:
        epochs.append(order.request.controller_epoch)
        queue.done()
    assert epochs[:2] == [1, 1]
    assert set(epochs[2:]) == {2}
    assert len(epochs) < 10
