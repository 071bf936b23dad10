"""A leader that was away while nobody was the controller, and is there again when somebody is."""

import pytest

from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewTopic
from tests.support.controller_stage import Stage, wait


def made(stage: Stage) -> Controller:
    """Topics that broker 1 leads, under broker 2's controller."""
    stage.brokers(1, 2, 3)
    controller = stage.controller(2)
    topics = [NewTopic("t", assignments={0: [1, 2, 3]}), NewTopic("alone", assignments={0: [1]})]
    assert [result.error for result in wait(controller.create_topics(topics))] == [None, None]
    return controller


def test_it_leads_under_another_epoch_for_its_last_records_may_be_gone(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.add(1)
    stage.settle(stage.controller(3))
    now = stage.state()
    assert (now.leader, now.leader_epoch, now.isr) == (1, 1, (1, 2, 3))
    for broker in stage.cluster.brokers.values():
        assert broker.hosted["t", 0][:3] == (1, 1, (1, 2, 3))


def test_nobody_follows_what_has_one_replica(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.add(1)
    stage.settle(stage.controller(3))
    assert stage.state("alone").leader_epoch == 0


@pytest.mark.parametrize("returns", [2, 3])
def test_other_brokers_return_without_another_epoch(stage: Stage, returns: int) -> None:
    made(stage).stop()
    stage.cluster.kill(returns)
    stage.cluster.add(returns)
    stage.settle(stage.controller(3))
    assert stage.state().leader_epoch == 0


def test_it_gets_another_epoch_once(stage: Stage) -> None:
    made(stage).stop()
    stage.cluster.kill(1)
    stage.cluster.add(1)
    for broker_id in (3, 2):
        controller = stage.controller(broker_id)
        stage.settle(controller)
        controller.stop()
    assert stage.state().leader_epoch == 1
