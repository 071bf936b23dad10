"""What waits for a broker: in order, metadata merged."""

from typing import Any

from kavka.broker.interbroker.control_queue import ControlQueue
from kavka.cluster.ports import ControlRequest
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kavka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)

ID, OTHER_ID = bytes(15) + b"\1", bytes(15) + b"\2"


def metadata(
    leaders: dict[tuple[str, bytes, int], int],
    live: tuple[int, ...] = (1,),
    *,
    controller_epoch: int = 5,
    broker_epoch: int = 77,
    kind: int = 0,
) -> UpdateMetadataRequest:
    """`leaders`: (topic, id, partition) -> leader."""
    topics = [
        UpdateMetadataTopicState(
            topic_name=topic,
            topic_id=topic_id,
            partition_states=[
                UpdateMetadataPartitionState(
                    partition_index=index,
                    controller_epoch=controller_epoch,
                    leader=leader,
                    leader_epoch=leader,
                    isr=[leader],
                    zk_version=0,
                    replicas=[leader],
                )
            ],
        )
        for (topic, topic_id, index), leader in leaders.items()
    ]
    return UpdateMetadataRequest(
        controller_id=1,
        type=kind,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=topics,
        live_brokers=[UpdateMetadataBroker(id=each) for each in live],
    )


def leadership() -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(controller_id=1, controller_epoch=5, broker_epoch=77, topic_states=[], live_leaders=[])


def nobody(_response: object) -> None:
    """Nobody waits for this one."""


def leaders_in(request: Any) -> dict[tuple[str, bytes, int], int]:
    return {
        (topic.topic_name, topic.topic_id, state.partition_index): state.leader
        for topic in request.topic_states
        for state in topic.partition_states
    }


def taken(queue: ControlQueue) -> list[Any]:
    """What is sent, one after the other, each answered."""
    requests = []
    while (order := queue.take()) is not None:
        requests.append(order.request)
        queue.done()
    return requests


def test_one_is_in_flight_at_a_time_and_is_the_first_again_when_it_was_not_delivered() -> None:
    queue = ControlQueue()
    first, second = leadership(), leadership()
    queue.put(first, nobody)
    queue.put(second, nobody)
    order = queue.take()
    assert order is not None
    assert order.request is first
    assert queue.take() is None
    queue.give_back()
    assert taken(queue) == [first, second]


def test_metadata_that_wait_are_one_request_with_the_newest_of_each_partition() -> None:
    queue = ControlQueue()
    answers: list[str] = []
    queue.put(metadata({("t", ID, 0): 1, ("t", ID, 1): 1}), lambda _: answers.append("first"))
    queue.put(metadata({("t", ID, 1): 2, ("u", ID, 0): 2}, live=(1, 2)), lambda _: answers.append("second"))
    queue.put(metadata({("t", OTHER_ID, 1): 3}, live=(2, 3)), lambda _: answers.append("third"))

    order = queue.take()

    assert order is not None
    assert len(queue) == 1
    assert leaders_in(order.request) == {
        ("t", ID, 0): 1,
        ("t", ID, 1): 2,
        ("u", ID, 0): 2,
        ("t", OTHER_ID, 1): 3,
    }
    assert isinstance(order.request, UpdateMetadataRequest)
    assert [broker.id for broker in order.request.live_brokers] == [2, 3]
    assert (order.request.controller_epoch, order.request.broker_epoch) == (5, 77)
    order.answer(UpdateMetadataResponse(error_code=0))
    assert answers == ["first", "second", "third"]


def test_what_was_merged_is_not_changed() -> None:
    queue = ControlQueue()
    shared = metadata({("t", ID, 0): 1})
    queue.put(shared, nobody)
    queue.put(metadata({("t", ID, 0): 2, ("t", ID, 1): 2}), nobody)
    assert leaders_in(taken(queue)[0]) == {("t", ID, 0): 2, ("t", ID, 1): 2}
    assert leaders_in(shared) == {("t", ID, 0): 1}, "other brokers are told the same objects"


def test_nothing_is_merged_into_what_is_in_flight() -> None:
    queue = ControlQueue()
    first, second = metadata({("t", ID, 0): 1}), metadata({("t", ID, 0): 2})
    queue.put(first, nobody)
    queue.take()
    queue.put(second, nobody)
    queue.put(metadata({("t", ID, 1): 3}), nobody)
    queue.give_back()
    requests = taken(queue)
    assert requests[0] is first
    assert leaders_in(requests[1]) == {("t", ID, 0): 2, ("t", ID, 1): 3}
    assert len(requests) == 2


def test_an_order_between_them_keeps_metadata_apart() -> None:
    queue = ControlQueue()
    requests: list[ControlRequest] = [metadata({("t", ID, 0): 1}), leadership(), metadata({("t", ID, 0): 2})]
    for request in requests:
        queue.put(request, nobody)
    assert taken(queue) == requests


def test_metadata_of_other_epochs_or_kinds_are_not_merged() -> None:
    for other in (
        metadata({("t", ID, 0): 2}, controller_epoch=6),
        metadata({("t", ID, 0): 2}, broker_epoch=78),
        metadata({("t", ID, 0): 2}, kind=2),
    ):
        queue = ControlQueue()
        requests = [metadata({("t", ID, 0): 1}), other]
        for request in requests:
            queue.put(request, nobody)
        assert taken(queue) == requests


def test_clearing_leaves_what_is_in_flight() -> None:
    queue = ControlQueue()
    for _ in range(3):
        queue.put(leadership(), nobody)
    queue.take()
    assert [order.waiting for order in queue.clear()] == [1, 1]
    assert len(queue) == 1
    queue.done()
    assert len(queue) == 0
    assert queue.clear() == []
