"""Several brokers: elections of leaders and of the controller, ISR changes, failures, orderly stops."""

import threading
from functools import partial

import pytest

from kavka.cluster.controller.requests import ConfigEntity, ElectionType, NewTopic, ProducerIdBlock
from kavka.cluster.topic_ids import ZERO_ID
from kavka.cluster.znodes.controller import ControllerLease
from kavka.cluster.znodes.notifications import IsrChange, LogDirEvent
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
)
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import Known


def three_replicas(name: str = "t") -> NewTopic:
    return NewTopic(name, assignments={0: [1, 2, 3]})


def state(stage: Stage, name: str = "t", partition: int = 0) -> PartitionState:
    data, stat = stage.registry.get(PartitionState.path(name, partition))
    return PartitionState.decode(name, partition, data, stat.version)


def leader_and_isr(stage: Stage) -> tuple[int, tuple[int, ...]]:
    now = state(stage)
    return now.leader, now.isr


def test_replicas_on_all_brokers_are_told_the_same(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    wait(stage.controller().create_topics([three_replicas()]))
    for broker in cluster.brokers.values():
        assert broker.hosted == {("t", 0): Known(1, 0, (1, 2, 3), 0)}
        assert broker.metadata == {("t", 0): 1}
        assert broker.live_brokers == {1, 2, 3}


def test_partitions_of_a_dead_broker_are_led_by_the_next_in_sync(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(2)
    wait(controller.create_topics([three_replicas(), NewTopic("alone", assignments={0: [1]})]))
    cluster.kill(1)
    stage.settle(controller)
    assert state(stage)[:3] == (2, 1, (2, 3))
    assert state(stage, "alone")[:3] == (-1, 1, (1,))
    assert cluster.brokers[3].hosted == {("t", 0): Known(2, 1, (2, 3), state(stage).version)}
    assert cluster.brokers[3].metadata == {("t", 0): 2, ("alone", 0): -1}
    assert cluster.brokers[3].live_brokers == {2, 3}
    assert controller.stats().offline_partitions == 1


def test_a_broker_that_returns_leads_what_waited_for_it_and_follows_the_rest(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(2)
    wait(controller.create_topics([three_replicas(), NewTopic("alone", assignments={0: [1]})]))
    cluster.kill(1)
    stage.settle(controller)
    broker = cluster.add(1)
    stage.settle(controller)
    assert broker.hosted == {
        ("t", 0): Known(2, 1, (2, 3), state(stage).version),
        ("alone", 0): Known(1, 2, (1,), state(stage, "alone").version),
    }
    assert broker.metadata == cluster.brokers[3].metadata == {("t", 0): 2, ("alone", 0): 1}
    assert controller.stats().offline_partitions == 0


def test_a_broker_that_bounced_unseen_is_told_everything_again(stage: Stage) -> None:
    cluster = stage.brokers(1, 2)
    controller = stage.controller(2)
    wait(controller.create_topics([NewTopic("t", assignments={0: [1]})]))
    seen = threading.Event()
    held = threading.Event()

    def hold(broker: int, request: object) -> None:
        seen.set()
        held.wait(60)

    cluster.on_send = hold
    growing = controller.create_topics([NewTopic("other", assignments={0: [2]})])
    assert seen.wait(60)
    cluster.kill(1)
    broker = cluster.add(1)
    held.set()
    wait(growing)
    stage.settle(controller)
    assert broker.hosted == {("t", 0): Known(1, 2, (1,), state(stage).version)}
    assert broker.metadata == {("t", 0): 1, ("other", 0): 2}


@pytest.mark.parametrize("by_topic", [True, False])
def test_a_replica_behind_leads_only_where_it_is_allowed(stage: Stage, by_topic: bool) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(3)
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    stage.registry.set(PartitionState.path("t", 0), PartitionState(1, 0, (1,), 1).encode())
    cluster.kill(1)
    stage.settle(controller)
    assert state(stage).leader == -1
    if by_topic:
        wait(controller.alter_configs(ConfigEntity.topic("t"), {"unclean.leader.election.enable": "true"}))
    else:
        stage.settings.unclean_leader_election_enable = True
    cluster.add(4)
    stage.settle(controller)
    assert leader_and_isr(stage) == (2, (2,))
    assert controller.stats().unclean_elections == 1
    stage.registry.delete("/controller")
    wait(controller.create_topics([three_replicas()], validate_only=True))
    assert controller.stats().unclean_elections == 1, "a counter, which outlives the term"


def test_a_stopping_broker_hands_over_what_others_can_lead(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(2)
    followed = NewTopic("followed", assignments={0: [2, 1]})
    wait(controller.create_topics([three_replicas(), followed, NewTopic("alone", assignments={0: [1]})]))
    assert wait(controller.controlled_shutdown(1, cluster.epoch(1))) == []
    assert leader_and_isr(stage) == (2, (2, 3))
    assert (state(stage, "followed").leader, state(stage, "followed").isr) == (2, (2,))
    assert state(stage, "alone").leader == 1
    assert cluster.brokers[1].hosted[("t", 0)].leader == 2, "it can tell clients where to go"
    assert ("followed", 0) not in cluster.brokers[1].hosted
    assert wait(controller.controlled_shutdown(2, -1)) == [("followed", 0)]
    assert wait(controller.controlled_shutdown(3, -1)) == [("t", 0)]
    for broker_id, epoch, error in ((1, 5, ErrorCode.STALE_BROKER_EPOCH), (9, -1, ErrorCode.BROKER_NOT_AVAILABLE)):
        with pytest.raises(BrokerError) as raised:
            wait(controller.controlled_shutdown(broker_id, epoch))
        assert raised.value.code is error


def test_leadership_goes_back_to_the_preferred_replica_on_request(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(2)
    wait(controller.create_topics([three_replicas()]))
    partition = ("t", 0)
    cluster.kill(1)
    cluster.add(1)
    stage.settle(controller)
    error = wait(controller.elect_leaders(ElectionType.PREFERRED, [partition]))[partition]
    assert error is not None
    assert error.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    now = state(stage)
    alter(stage, leader=2, isr=[1, 2, 3], leader_epoch=now.leader_epoch, version=now.version)
    assert wait(controller.elect_leaders(ElectionType.PREFERRED, None)) == {partition: None}
    assert state(stage).leader == 1
    results = wait(controller.elect_leaders(ElectionType.UNCLEAN, [partition, ("absent", 0)]))
    codes = {each: error.code for each, error in results.items() if error is not None}
    assert codes == {
        partition: ErrorCode.ELECTION_NOT_NEEDED,
        ("absent", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def alter(
    stage: Stage, *, leader: int, isr: list[int], leader_epoch: int, version: int, topic_id: bytes = ZERO_ID
) -> AlterPartitionResponsePartitionData:
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=stage.cluster.epoch(leader),
        topics=[
            AlterPartitionRequestTopicData(
                topic_name="t",
                topic_id=topic_id,
                partitions=[
                    AlterPartitionRequestPartitionData(
                        partition_index=0, leader_epoch=leader_epoch, new_isr=isr, partition_epoch=version
                    )
                ],
            )
        ],
    )
    response = wait(stage.controllers[0].alter_partition(request))
    return response.topics[0].partitions[0]


def test_a_leader_changes_the_isr_and_everyone_hears_of_it(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller()
    wait(controller.create_topics([three_replicas()]))
    answer = alter(stage, leader=1, isr=[1, 3], leader_epoch=0, version=0)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (ErrorCode.NONE, [1, 3], 1)
    epochs = [stage.cluster.epoch(broker) for broker in (1, 2, 3)]
    assert state(stage) == PartitionState(
        1, 0, (1, 3), 1, version=1, leader_broker_epoch=epochs[0], latest_broker_epoch=max(epochs)
    )
    again = alter(stage, leader=1, isr=[1, 3], leader_epoch=0, version=0)
    assert (again.error_code, again.partition_epoch) == (ErrorCode.NONE, 1)
    assert cluster.brokers[2].metadata == {("t", 0): 1}


@pytest.mark.parametrize(
    ("leader", "isr", "leader_epoch", "version", "error"),
    [
        (1, [1, 2], 0, 5, ErrorCode.NOT_CONTROLLER),
        (1, [1, 2], 5, 0, ErrorCode.NOT_CONTROLLER),
        (2, [1, 2], 0, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, [2], 0, 0, ErrorCode.INVALID_REQUEST),
        (1, [1, 4], 0, 0, ErrorCode.INVALID_REQUEST),
        (1, [1, 1], 0, 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_isr_that_cannot_be_is_refused(
    stage: Stage, leader: int, isr: list[int], leader_epoch: int, version: int, error: ErrorCode
) -> None:
    stage.brokers(1, 2, 3, 4)
    controller = stage.controller()
    wait(controller.create_topics([three_replicas()]))
    answer = alter(stage, leader=leader, isr=isr, leader_epoch=leader_epoch, version=version)
    assert answer.error_code == error
    assert state(stage).version == 0


def test_a_dead_replica_may_not_join_the_isr_and_a_dead_leader_may_not_ask(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller()
    topic_id = wait(controller.create_topics([three_replicas()]))[0].topic_id
    cluster.kill(3)
    stage.settle(controller)
    now = state(stage)
    ask = partial(alter, stage, leader=1, isr=[1, 2, 3], leader_epoch=now.leader_epoch, version=now.version)
    assert ask(topic_id=topic_id).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert ask().error_code == ErrorCode.OPERATION_NOT_ATTEMPTED, "versions 0 and 1 name the topic"
    for broker, epoch in ((3, 1), (1, -1), (1, cluster.epoch(1) - 1)):
        with pytest.raises(BrokerError) as raised:
            wait(controller.alter_partition(AlterPartitionRequest(broker_id=broker, broker_epoch=epoch, topics=[])))
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_an_isr_written_past_the_controller_is_read_and_published(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller()
    wait(controller.create_topics([three_replicas()]))
    stage.registry.set(PartitionState.path("t", 0), PartitionState(1, 0, (1,), 1).encode())
    sent = len(cluster.brokers[2].requests)
    stage.registry.create(IsrChange.PREFIX, IsrChange.encode([("t", 0), ("absent", 9)]), sequential=True)
    stage.registry.create(IsrChange.PREFIX, b"nonsense", sequential=True)
    stage.settle(controller)
    assert stage.registry.children(IsrChange.PARENT) == []
    assert len(cluster.brokers[2].requests) > sent


def test_replicas_of_a_lost_directory_are_led_elsewhere(stage: Stage) -> None:
    cluster = stage.brokers(1, 2, 3)
    controller = stage.controller(3)
    wait(controller.create_topics([three_replicas(), three_replicas("u")]))
    cluster.brokers[1].failing.add(("t", 0))
    stage.registry.create(LogDirEvent.PREFIX, LogDirEvent.encode(1), sequential=True)
    stage.settle(controller)
    assert leader_and_isr(stage) == (2, (2, 3))
    assert state(stage, "u").leader == 1
    cluster.kill(1)
    cluster.add(1)
    stage.settle(controller)
    assert cluster.brokers[1].hosted[("t", 0)].leader == 2


def test_one_of_several_candidates_is_the_controller_and_the_next_takes_over(stage: Stage) -> None:
    cluster = stage.brokers(1, 2)
    first, second = stage.controller(1), stage.controller(2)
    assert (first.is_active, second.is_active, second.controller_id) == (True, False, 1)
    with pytest.raises(BrokerError) as raised:
        wait(second.create_topics([NewTopic("t")]))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    wait(first.create_topics([NewTopic("t", 1)]))
    first.stop()
    cluster.known = {1, 2}
    # The watch came before the deletion was answered: this queues behind the election.
    assert wait(second.create_topics([NewTopic("u", 1)]))[0].error is None
    assert (second.is_active, second.controller_id) == (True, 2)
    assert stage.registry.get("/controller_epoch")[0] == b"2"
    assert set(cluster.brokers[1].metadata) == {("t", 0), ("u", 0)}


def test_writes_are_fenced_by_the_controller_epoch(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller(1)
    stage.registry.set("/controller_epoch", b"9")
    with pytest.raises(BrokerError) as raised:
        wait(controller.create_topics([NewTopic("t")]))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    assert stage.registry.children("/brokers/topics") == []
    assert wait(controller.create_topics([NewTopic("t")]))[0].error is None
    assert stage.registry.get("/controller_epoch")[0] == b"10"


def test_a_deposed_controller_writes_nothing_and_tells_nobody_anything_more(stage: Stage) -> None:
    cluster = stage.brokers(1)
    controller = stage.controller(1)
    cluster.was_let_go = False
    stage.registry.set("/controller_epoch", b"9")
    stage.registry.set("/controller", ControllerLease(2, 5).encode())
    with pytest.raises(BrokerError) as raised:
        wait(controller.create_topics([NewTopic("t")]))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    assert stage.registry.children("/brokers/topics") == []
    assert not controller.is_active
    assert controller.controller_id == 2
    assert cluster.was_let_go


def test_a_term_that_failed_half_way_starts_over_with_the_next_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = stage.brokers(1).brokers[1]
    controller = stage.controller(1)

    def fail(*arguments: object) -> None:
        raise MemoryError("as an example")

    with monkeypatch.context() as patched:
        patched.setattr(type(broker), "leader_and_isr", fail)
        with pytest.raises(BrokerError) as raised:
            wait(controller.create_topics([NewTopic("t", 1)]))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert controller.is_active
    assert wait(controller.create_topics([NewTopic("u", 1)]))[0].error is None
    assert broker.metadata == {("t", 0): 1, ("u", 0): 1}
    assert stage.registry.get("/controller_epoch")[0] == b"2"


def test_producer_id_blocks_are_given_once_over_restarts(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    assert wait(controller.allocate_producer_id_block(1)) == ProducerIdBlock(0, 999)
    assert wait(controller.allocate_producer_id_block(1)) == ProducerIdBlock(1000, 1999)
    stage.restart()
    stage.brokers(1)
    controller = stage.controller()
    assert wait(controller.allocate_producer_id_block(1)) == ProducerIdBlock(2000, 2999)
    assert stage.registry.get("/latest_producer_id_block")[0] == (
        b'{"version":1,"broker":1,"block_start":"2000","block_end":"2999"}'
    )
    stage.registry.set("/latest_producer_id_block", b"broken")
    with pytest.raises(BrokerError):
        wait(controller.allocate_producer_id_block(1))


def test_after_the_stop_requests_fail_and_the_seat_is_free(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    controller.stop()
    with pytest.raises(BrokerError) as raised:
        wait(controller.create_topics([NewTopic("t")]))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    assert stage.registry.exists("/controller") is None


def test_a_controller_that_nobody_can_read_is_another_one(stage: Stage) -> None:
    stage.brokers(1)
    stage.registry.create("/controller", b"no lease", ephemeral=True)
    controller = stage.controller()
    assert controller.controller_id == -1
    with pytest.raises(BrokerError) as raised:
        wait(controller.create_topics([NewTopic("t")]))
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
    stage.registry.delete("/controller")
    assert wait(controller.create_topics([NewTopic("t")]))[0].error is None


def test_what_a_node_cannot_hold_is_refused_to_its_asker_and_ends_no_term(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller()
    large = {"follower.replication.throttled.replicas": ("0:1," * 3_000_000)[:-1]}
    (result,) = wait(controller.create_topics([NewTopic("large", configs=large), NewTopic("t")]))[:1]
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_CONFIG
    with pytest.raises(BrokerError) as raised:
        wait(controller.alter_configs(ConfigEntity("topics", "t"), large))
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert controller.stats().topics == 1
    assert stage.registry.get("/controller_epoch")[0] == b"1"
