"""In which order brokers are told: no Kafka follower follows a leader that it has not heard of."""

from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.ports import ControlRequest
from kavka.cluster.znodes.topic import LEADER_DURING_DELETE
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest
from tests.support.controller_stage import Stage, wait


def partitions_told(request: ControlRequest) -> set[tuple[str, int]]:
    return {
        (topic.topic_name, state.partition_index) for topic in request.topic_states for state in topic.partition_states
    }


def live_brokers(request: ControlRequest) -> set[int]:
    assert isinstance(request, UpdateMetadataRequest), request
    return {broker.id for broker in request.live_brokers}


def test_a_new_controller_tells_of_everything_before_it_orders_anything_and_not_again(stage: Stage) -> None:
    """A broker may have begun just before: it answers clients from the first that it is told."""
    cluster = stage.brokers(1, 2, 3)
    first = stage.controller(1)
    wait(first.create_topics([NewTopic("t", assignments={0: [1, 2, 3]}), NewTopic("elsewhere", assignments={0: [1]})]))
    first.stop()
    for broker in cluster.brokers.values():
        broker.requests.clear()

    stage.controller(2)

    for broker in cluster.brokers.values():
        told, *orders = broker.requests
        assert (live_brokers(told), partitions_told(told)) == ({1, 2, 3}, {("t", 0), ("elsewhere", 0)})
        assert isinstance(orders[0], LeaderAndIsrRequest)
        assert [each for each in orders if isinstance(each, UpdateMetadataRequest) and partitions_told(each)] == []


def test_a_broker_that_comes_is_told_of_all_partitions_before_it_follows_any(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(1)
    wait(
        controller.create_topics(
            [NewTopic("t", assignments={0: [1, 2, 3], 1: [2, 3, 1]}), NewTopic("elsewhere", assignments={0: [1, 2]})]
        )
    )
    cluster.kill(3)
    stage.settle(controller)
    others = [cluster.brokers[1], cluster.brokers[2]]
    for broker in others:
        broker.requests.clear()

    back = cluster.add(3)
    stage.settle(controller)

    told, ordered, *_ = back.requests
    assert (live_brokers(told), partitions_told(told)) == ({1, 2, 3}, {("t", 0), ("t", 1), ("elsewhere", 0)})
    assert isinstance(ordered, LeaderAndIsrRequest)
    assert partitions_told(ordered) == {("t", 0), ("t", 1)}
    for broker in others:
        # Who was there before hears of the broker, and not of everything again.
        assert (live_brokers(broker.requests[0]), partitions_told(broker.requests[0])) == ({1, 2, 3}, set())
        assert all(("elsewhere", 0) not in partitions_told(each) for each in broker.requests)


def test_a_new_controller_tells_nobody_of_a_topic_whose_deletion_waits(stage: Stage) -> None:
    """A client that heard of it once more could write what is deleted at once."""
    cluster = stage.brokers(1, 2, 3)
    first = stage.controller(1)
    wait(
        first.create_topics([NewTopic("t", assignments={0: [1, 3], 1: [3, 2]}), NewTopic("u", assignments={0: [3, 1]})])
    )
    cluster.kill(3)
    stage.settle(first)
    wait(first.alter_reassignments({("t", 0): [2, 1]}))
    wait(first.delete_topics(["t"]))
    first.stop()
    for broker in cluster.brokers.values():
        broker.requests.clear()

    second = stage.controller(2)
    cluster.add(3)
    stage.settle(second)

    for broker in cluster.brokers.values():
        told = [
            (topic.topic_name, state.leader)
            for request in broker.requests
            if isinstance(request, UpdateMetadataRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        assert {leader for name, leader in told if name == "t"} == {LEADER_DURING_DELETE}
        assert ("u", 1) in told
    assert stage.registry.children("/brokers/topics") == ["u"]
