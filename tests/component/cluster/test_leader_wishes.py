"""Leadership goes where it is preferred, or wherever it can: on request, by an old tool's node, and by itself."""

from collections.abc import Sequence
from typing import Any

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import ConfigEntity, ElectionType, NewTopic
from kavka.cluster.registry.base import NotPermittedError
from kavka.cluster.znodes.admin import PreferredElections
from kavka.cluster.znodes.topic import RECOVERED, RECOVERING, PartitionState
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from tests.support.controller_stage import Stage, wait

T0 = ("t", 0)
SETTINGS = "/config/topics/t"


@pytest.fixture
def controller(stage: Stage) -> Controller:
    """Of three brokers; t-0 and t-1 prefer the first, t-2 the second."""
    stage.brokers(1, 2, 3)
    controller = stage.controller(3)
    assignments = {0: [1, 2, 3], 1: [1, 2, 3], 2: [2, 3, 1]}
    assert wait(controller.create_topics([NewTopic("t", assignments=assignments)]))[0].error is None
    return controller


def bounce(stage: Stage, controller: Controller, broker: int) -> None:
    """The broker restarts, and its replicas are in sync again."""
    stage.cluster.kill(broker)
    stage.settle(controller)
    stage.cluster.add(broker)
    stage.settle(controller)
    for partition in range(3):
        stage.alter_isr(controller, 1, 2, 3, partition=partition)


def leaders(stage: Stage) -> list[int]:
    return [stage.state("t", partition).leader for partition in range(3)]


def test_leaders_go_back_where_a_broker_leads_too_few(stage: Stage, controller: Controller) -> None:
    bounce(stage, controller, 1)
    assert leaders(stage) == [2, 2, 2]
    controller.balance_leaders()
    stage.settle(controller)
    assert leaders(stage) == [1, 1, 2]


def test_leaders_stay_where_the_imbalance_is_allowed_or_balancing_is_off(stage: Stage, controller: Controller) -> None:
    bounce(stage, controller, 1)
    stage.settings.leader_imbalance_per_broker_percentage = 100
    controller.balance_leaders()
    stage.settle(controller)
    stage.settings.leader_imbalance_per_broker_percentage = 0
    stage.settings.auto_leader_rebalance_enable = False
    controller.balance_leaders()
    stage.settle(controller)
    assert leaders(stage) == [2, 2, 2]


def test_no_leader_goes_back_to_a_replica_that_is_not_in_sync(stage: Stage, controller: Controller) -> None:
    bounce(stage, controller, 1)
    stage.alter_isr(controller, 2, 3, partition=1)
    controller.balance_leaders()
    stage.settle(controller)
    assert leaders(stage) == [1, 2, 2]


def test_leaders_stay_while_partitions_move(stage: Stage, controller: Controller) -> None:
    bounce(stage, controller, 1)
    stage.cluster.add(4)
    stage.settle(controller)
    wait(controller.alter_reassignments({("t", 2): [4]}))
    controller.balance_leaders()
    stage.settle(controller)
    assert leaders(stage) == [2, 2, 2]


def test_a_term_that_begins_is_balanced_before_the_next_check(stage: Stage, controller: Controller) -> None:
    bounce(stage, controller, 1)
    controller.stop()
    second = stage.controller(2)
    assert leaders(stage) == [2, 2, 2]
    second.resume()
    stage.settle(second)
    assert leaders(stage) == [1, 1, 2]


def test_an_old_tool_has_leaders_go_back_and_its_node_goes(stage: Stage, controller: Controller) -> None:
    bounce(stage, controller, 1)
    wish = PreferredElections.encode([T0, ("absent", 0), T0])
    assert wish == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"absent","partition":0},'
        b'{"topic":"t","partition":0}]}'
    )
    stage.registry.create(PreferredElections.PATH, wish)
    stage.settle(controller)
    assert leaders(stage) == [1, 2, 2]
    assert stage.registry.exists(PreferredElections.PATH) is None
    stage.registry.create(PreferredElections.PATH, b"nonsense")
    stage.settle(controller)
    assert stage.registry.exists(PreferredElections.PATH) is None
    controller.stop()
    stage.registry.create(PreferredElections.PATH, PreferredElections.encode([("t", 1)]))
    stage.controller(2)
    assert leaders(stage) == [1, 1, 2]


def test_a_topic_on_its_way_out_has_no_elections(stage: Stage, controller: Controller) -> None:
    stage.cluster.kill(1)
    stage.settle(controller)
    wait(controller.delete_topics(["t"]))
    results = wait(controller.elect_leaders(ElectionType.PREFERRED, [T0]))
    error = results[T0]
    assert error is not None
    assert error.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert wait(controller.elect_leaders(ElectionType.PREFERRED, None)) == {}


# Elections that may lose messages


def strand(stage: Stage, controller: Controller) -> None:
    """The only replica in sync of t-0 dies."""
    assert stage.alter_isr(controller, 1) is ErrorCode.NONE
    stage.cluster.kill(1)
    stage.settle(controller)
    assert (stage.state().leader, stage.state().isr) == (-1, (1,))


@pytest.mark.parametrize("by_topic", ["true", " TRUE", ""])
def test_switching_unclean_elections_on_acts_at_once(stage: Stage, controller: Controller, by_topic: str) -> None:
    strand(stage, controller)
    controller.settings_changed()
    stage.settle(controller)
    assert stage.state().leader == -1
    if by_topic:
        wait(controller.alter_configs(ConfigEntity.topic("t"), {"unclean.leader.election.enable": by_topic}))
    else:
        stage.settings.unclean_leader_election_enable = True
    controller.settings_changed()
    stage.settle(controller)
    assert (stage.state().leader, stage.state().isr) == (2, (2,))


def test_a_topic_that_forbids_them_overrides_the_brokers(stage: Stage, controller: Controller) -> None:
    strand(stage, controller)
    wait(controller.alter_configs(ConfigEntity.topic("t"), {"unclean.leader.election.enable": "false"}))
    stage.settings.unclean_leader_election_enable = True
    controller.settings_changed()
    stage.settle(controller)
    assert stage.state().leader == -1


def test_a_topic_whose_settings_nobody_knows_is_not_led_at_the_price_of_messages(
    stage: Stage, controller: Controller
) -> None:
    """It may forbid what its brokers allow."""
    strand(stage, controller)
    stage.settings.unclean_leader_election_enable = True
    stage.registry.set(SETTINGS, b"neither JSON nor anything")
    controller.settings_changed()
    stage.settle(controller)
    assert stage.state().leader == -1

    stage.registry.set(SETTINGS, b'{"version":1,"config":{}}')
    controller.settings_changed()
    stage.settle(controller)
    assert stage.state().leader == 2


def test_settings_that_may_not_be_read_allow_nothing(
    stage: Stage, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    strand(stage, controller)
    stage.settings.unclean_leader_election_enable = True
    get_many = stage.registry.get_many

    def guarded(paths: Sequence[str], *more: Any) -> Any:
        if SETTINGS in paths:
            raise NotPermittedError("no", SETTINGS)
        return get_many(paths, *more)

    with monkeypatch.context() as patched:
        patched.setattr(stage.registry, "get_many", guarded)
        controller.settings_changed()
        stage.settle(controller)
        assert stage.state().leader == -1
    controller.settings_changed()
    stage.settle(controller)
    assert stage.state().leader == 2


def unclean(stage: Stage, controller: Controller) -> PartitionState:
    strand(stage, controller)
    assert wait(controller.elect_leaders(ElectionType.UNCLEAN, [T0])) == {T0: None}
    return stage.state()


def test_a_leader_that_is_behind_recovers_before_others_are_in_sync(stage: Stage, controller: Controller) -> None:
    now = unclean(stage, controller)
    assert (now.leader, now.isr, now.recovery) == (2, (2,), RECOVERING)
    assert stage.registry.get(PartitionState.path("t", 0))[0] == (
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":2,"isr":[2],'
        b'"leader_recovery_state":1,"leader_broker_epoch":%d}' % stage.cluster.epoch(2)
    )
    told = [
        each.leader_recovery_state
        for request in stage.cluster.brokers[2].requests
        if isinstance(request, LeaderAndIsrRequest)
        for topic in request.topic_states
        for each in topic.partition_states
        if each.partition_index == 0
    ]
    assert told[-1] == RECOVERING
    assert stage.alter_isr(controller, 2, 3, recovery=RECOVERING) is ErrorCode.INVALID_REQUEST
    assert stage.alter_isr(controller, 2, recovery=7) is ErrorCode.INVALID_REQUEST
    assert stage.alter_isr(controller, 2, recovery=RECOVERED) is ErrorCode.NONE
    assert (stage.state().recovery, stage.state().leader_epoch) == (RECOVERED, now.leader_epoch)
    assert stage.alter_isr(controller, 2, recovery=RECOVERING) is ErrorCode.INVALID_REQUEST
    assert stage.alter_isr(controller, 2, 3) is ErrorCode.NONE


def test_what_a_leader_has_not_recovered_its_next_election_does_not_end(stage: Stage, controller: Controller) -> None:
    unclean(stage, controller)
    stage.cluster.kill(2)
    stage.settle(controller)
    stage.cluster.add(2)
    stage.settle(controller)
    assert (stage.state().leader, stage.state().recovery) == (2, RECOVERING)


def test_brokers_before_3_2_are_not_told_of_recovery(stage: Stage) -> None:
    stage.settings.inter_broker_protocol_version = "3.1-IV0"
    stage.brokers(1, 2, 3)
    controller = stage.controller(3)
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2, 3]})]))
    now = unclean(stage, controller)
    assert (now.leader, now.recovery) == (2, RECOVERED)
