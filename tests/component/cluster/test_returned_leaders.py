"""A leader that was away while nobody was the controller, and is there again when somebody is."""

from collections.abc import Sequence
from typing import Any

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.leader_choice import Elected
from kavka.cluster.controller.partition_states import PartitionStateMachine
from kavka.cluster.controller.replica_states import ReplicaStateMachine
from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.controller.store import ControllerMovedError, ControllerStore
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.topic import NO_BROKER_EPOCH, PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Stage, wait

PATH = PartitionState.path("t", 0)


def made(stage: Stage) -> Controller:
    """Topics that broker 1 leads, under broker 2's controller."""
    stage.brokers(1, 2, 3)
    controller = stage.controller(2)
    topics = [NewTopic("t", assignments={0: [1, 2, 3]}), NewTopic("alone", assignments={0: [1]})]
    assert [result.error for result in wait(controller.create_topics(topics))] == [None, None]
    return controller


def expect(stage: Stage, leader: int, leader_epoch: int, isr: tuple[int, ...]) -> None:
    """Of t-0, in the tree and on each broker."""
    now = stage.state()
    assert (now.leader, now.leader_epoch, now.isr) == (leader, leader_epoch, isr)
    assert now.leader_broker_epoch == stage.cluster.epoch(leader)
    for broker in stage.cluster.brokers.values():
        assert broker.hosted["t", 0][:3] == (leader, leader_epoch, isr)


def test_its_last_records_may_be_gone_and_who_is_in_sync_and_stayed_has_them(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.add(1)
    stage.settle(stage.controller(3))
    expect(stage, 2, 1, (2, 3))


def test_who_was_away_as_well_does_not_take_its_place(stage: Stage) -> None:
    made(stage).stop()
    for broker_id in (1, 2):
        stage.cluster.kill(broker_id)
        stage.cluster.add(broker_id)
    stage.settle(stage.controller(3))
    expect(stage, 3, 1, (3,))


def test_its_last_records_are_those_of_who_stayed_also_where_the_controller_and_its_replica_are_gone(
    stage: Stage,
) -> None:
    made(stage).stop()
    stage.cluster.kill(2)
    stage.cluster.kill(1)
    stage.cluster.add(1)
    stage.settle(stage.controller(3))
    expect(stage, 3, 1, (3,))


def test_who_was_away_does_not_follow_a_leader_that_is_gone_while_others_in_sync_stayed(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.kill(2)
    stage.cluster.add(2)
    stage.settle(stage.controller(3))
    expect(stage, 3, 1, (3,))


def test_who_was_away_follows_a_leader_that_is_gone_where_nobody_in_sync_stayed(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    for broker_id in (2, 3):
        stage.cluster.kill(broker_id)
        stage.cluster.add(broker_id)
    stage.settle(stage.controller(3))
    expect(stage, 2, 1, (2, 3))


@pytest.mark.parametrize("isr", [(1,), (1, 2, 3)])
def test_it_leads_under_another_epoch_where_nobody_else_in_sync_has_stayed(stage: Stage, isr: tuple[int, ...]) -> None:
    controller = made(stage)
    if isr != (1, 2, 3):
        assert stage.alter_isr(controller, *isr) == ErrorCode.NONE
    controller.stop()
    for broker_id in (1, 2, 3) if isr == (1, 2, 3) else (1,):
        stage.cluster.kill(broker_id)
        stage.cluster.add(broker_id)
    stage.settle(stage.controller(3))
    expect(stage, 1, 1, isr)


@pytest.mark.parametrize(
    ("gone", "returns", "expected"),
    [
        ((), (1,), (2, 2, (2, 3))),
        ((), (2,), (1, 2, (1, 3))),
        ((1,), (2,), (3, 2, (3,))),
    ],
)
def test_who_was_away_is_told_from_others_also_after_all_were_away_at_once(
    stage: Stage, gone: tuple[int, ...], returns: tuple[int, ...], expected: tuple[int, int, tuple[int, ...]]
) -> None:
    """As when the registry was out of reach: the term that began then has written who is in sync, and nobody since."""
    made(stage).stop()
    for broker_id in (1, 2, 3):
        stage.cluster.kill(broker_id)
        stage.cluster.add(broker_id)
    controller = stage.controller(3)
    stage.settle(controller)
    expect(stage, 1, 1, (1, 2, 3))
    controller.stop()
    for broker_id in (*gone, *returns):
        stage.cluster.kill(broker_id)
    for broker_id in returns:
        stage.cluster.add(broker_id)
    stage.settle(stage.controller(3))
    expect(stage, *expected)


def test_nobody_follows_what_has_one_replica(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.add(1)
    stage.settle(stage.controller(3))
    assert stage.state("alone").leader_epoch == 0


@pytest.mark.parametrize(("returns", "left"), [((2,), (1, 3)), ((3,), (1, 2)), ((2, 3), (1,))])
def test_who_follows_leaves_the_isr_as_when_a_controller_sees_it_go(
    stage: Stage, returns: tuple[int, ...], left: tuple[int, ...]
) -> None:
    """With a power cut it lacks records that were acknowledged, and could be preferred to who has them."""
    made(stage).stop()
    for broker_id in returns:
        stage.cluster.kill(broker_id)
        stage.cluster.add(broker_id)
    controller = stage.controller(3)
    stage.settle(controller)
    expect(stage, 1, len(returns), left)
    for broker_id in returns:
        assert stage.alter_isr(controller, 1, broker_id) == ErrorCode.NONE


def test_who_follows_stays_in_sync_where_the_isr_was_written_since(stage: Stage) -> None:
    controller = made(stage)
    stage.cluster.kill(2)
    stage.cluster.add(2)
    stage.settle(controller)
    assert stage.alter_isr(controller, 1, 3, 2) == ErrorCode.NONE
    controller.stop()
    before = stage.state()
    stage.settle(stage.controller(3))
    assert stage.state() == before


def test_it_gets_another_epoch_once(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.add(1)
    for broker_id in (3, 2):
        controller = stage.controller(broker_id)
        stage.settle(controller)
        controller.stop()
    assert stage.state().leader_epoch == 1


def test_whom_another_registry_knew_that_the_tree_was_copied_from_is_of_no_account(stage: Stage) -> None:
    made(stage).stop()
    assert stage.cluster.epoch(1) < stage.state().latest_broker_epoch < 10**6
    stage.registry.set(PATH, stage.state()._replace(latest_broker_epoch=10**6).encode())
    stage.cluster.kill(3)
    stage.cluster.add(3)
    stage.settle(stage.controller(2))
    expect(stage, 1, 1, (1, 2))


@pytest.fixture
def hears_of_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the controllers that begin now, what is heard of brokers is still on its way."""
    live_brokers = ControllerStore.live_brokers

    def unwatched(self: ControllerStore, watch: object, *known: Any) -> Any:
        return live_brokers(self, None, *known)

    monkeypatch.setattr(ControllerStore, "live_brokers", unwatched)


@pytest.mark.usefixtures("hears_of_no_broker")
@pytest.mark.parametrize(("isr", "leader"), [((1,), 1), ((1, 2), 2)])
def test_what_its_former_run_had_written_after_it_was_back_does_not_hide_that_it_was_away(
    stage: Stage, isr: tuple[int, ...], leader: int
) -> None:
    controller = made(stage)
    former_run = stage.cluster.epoch(1)
    stage.cluster.kill(1)
    stage.cluster.add(1)
    # Asked before the end of that run, and handled by a controller that has not heard of the next one.
    assert stage.alter_isr(controller, *isr, broker_epoch=former_run) == ErrorCode.NONE
    assert (stage.state().leader_epoch, stage.state().isr) == (0, isr)
    controller.stop()

    stage.settle(stage.controller(3))

    expect(stage, leader, 1, (leader,))


def test_whether_it_was_away_is_not_known_where_another_release_has_written_last(stage: Stage) -> None:
    """Kafka's controller drops what it does not know, and takes a former run's word as long as it knows no better."""
    made(stage).stop()
    as_kafka_writes_it = stage.state()._replace(
        leader_broker_epoch=NO_BROKER_EPOCH, latest_broker_epoch=NO_BROKER_EPOCH
    )
    stage.registry.set(PATH, as_kafka_writes_it.encode())
    for broker_id in (3, 2):
        controller = stage.controller(broker_id)
        stage.settle(controller)
        assert (stage.state().leader, stage.state().leader_epoch, stage.state().isr) == (1, 1, (1, 2, 3))
        controller.stop()


def test_an_isr_that_changed_since_it_is_there_is_its_own(stage: Stage) -> None:
    controller = made(stage)
    stage.cluster.kill(1)
    stage.settle(controller)
    stage.cluster.add(1)
    stage.settle(controller)
    assert stage.alter_isr(controller, 2, 3, 1) == ErrorCode.NONE
    before = stage.state()
    assert before.leader == 2
    controller.stop()
    stage.settle(stage.controller(3))
    assert stage.state() == before


@pytest.mark.usefixtures("hears_of_no_broker")
def test_what_its_leader_had_written_after_a_follower_was_back_does_not_hide_that_that_was_away(stage: Stage) -> None:
    controller = made(stage)
    stage.cluster.kill(3)
    stage.cluster.add(3)
    # Asked by the leader when 3 had not fetched again, and handled by a controller that has not heard of its return.
    assert stage.alter_isr(controller, 1, 3) == ErrorCode.NONE
    controller.stop()

    stage.settle(stage.controller(2))

    expect(stage, 1, 1, (1,))


@pytest.mark.usefixtures("hears_of_no_broker")
def test_brokers_that_come_back_while_they_are_read_do_not_pass_for_those_that_stayed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper answers for one broker after the other, maybe with a lost connection in between."""
    made(stage).stop()
    stage.brokers(4)
    get_many = stage.registry.get_many
    last, is_first = BrokerInfo.path(4), True

    def one_by_one(paths: Sequence[str], watch: Any = None) -> Any:
        nonlocal is_first
        if last not in paths or not is_first:
            return get_many(paths, watch)
        is_first = False
        found = get_many([path for path in paths if path != last], watch)
        for broker_id in (3, 4):
            stage.cluster.kill(broker_id)
            stage.cluster.add(broker_id)
        return found + get_many([last], watch)

    monkeypatch.setattr(stage.registry, "get_many", one_by_one)
    controller = stage.controller(2)
    stage.settle(controller)
    # The leader wants one out of the ISR.
    assert stage.alter_isr(controller, *[each for each in stage.state().isr if each != 2]) == ErrorCode.NONE
    controller.stop()

    stage.settle(stage.controller(2))

    assert not is_first
    assert stage.state().isr == (1,)


def test_a_controller_that_falls_as_it_begins_does_not_hide_who_was_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote by then is younger than what it had found out, and had not written yet."""
    made(stage).stop()
    for broker_id in (1, 3):
        stage.cluster.kill(broker_id)
        stage.cluster.add(broker_id)
    leave = ReplicaStateMachine.leave
    left: list[PartitionState] = []

    def fall_once(self: ReplicaStateMachine, returned: Any) -> None:
        left.append(stage.state())
        if len(left) == 1:
            raise ControllerMovedError
        leave(self, returned)

    # Somebody who was away leads for now, so that what it wrote has all of them in sync.
    monkeypatch.setattr(PartitionStateMachine, "_after_absence", lambda self, states: leads_on)
    monkeypatch.setattr(ReplicaStateMachine, "leave", fall_once)
    candidate = stage.candidate(2)
    with pytest.raises(BrokerError, match="NOT_CONTROLLER"):
        wait(candidate.start())
    assert (left[0].leader_epoch, left[0].isr) == (1, (1, 2, 3))

    stage.settle(candidate)

    expect(stage, 1, 2, (1, 2))


def leads_on(_: object, state: PartitionState) -> Elected:
    return Elected(state.leader, state.isr)
