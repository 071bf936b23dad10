"""What brokers answer their controller: late, in words that nobody knows, or for an earlier topic of the name."""

from collections.abc import Callable

import pytest

from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.ports import ControlRequest, OnResponse, call
from kavka.cluster.znodes.notifications import LogDirEvent
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataResponse
from tests.support.controller_stage import Stage, wait


def test_an_error_that_nobody_knows_here_ends_no_term(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker of a later release, or one that lies: every controller hears it, again and again."""
    strange = stage.brokers(1, 2).brokers[2]
    for name, answer in (
        ("leader_and_isr", LeaderAndIsrResponse(error_code=9999)),
        ("update_metadata", UpdateMetadataResponse(error_code=9999)),
        ("stop_replica", StopReplicaResponse(error_code=-9999, partition_errors=[])),
    ):
        monkeypatch.setattr(strange, name, lambda request, answer=answer: answer)
    controller = stage.controller(1)

    created = wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    wait(controller.delete_topics(["t"]))
    stage.settle(controller)

    assert created[0].error is None
    assert controller.is_active
    assert stage.registry.get("/controller_epoch")[0] == b"1"


def test_a_broker_that_has_an_earlier_topic_of_the_name_does_not_lead_the_new_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was out of touch when its replica of that went elsewhere: nobody has told it to stop."""
    cluster = stage.brokers(1, 2)
    forgotten = cluster.brokers[2]
    host = forgotten.leader_and_isr

    def refuse(request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        answer = host(request)
        for topic in answer.topics:
            for each in topic.partition_errors:
                each.error_code = ErrorCode.INCONSISTENT_TOPIC_ID
        return answer

    monkeypatch.setattr(forgotten, "leader_and_isr", refuse)
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", assignments={0: [2, 1]})]))
    stage.settle(controller)
    assert (stage.state().leader, stage.state().isr) == (1, (1,))

    # A start finds out what of its logs is nobody's.
    cluster.kill(2)
    cluster.add(2)
    stage.settle(controller)
    assert stage.alter_isr(controller, 1, 2) is ErrorCode.NONE
    wait(controller.delete_topics(["t"]))
    stage.settle(controller)
    assert stage.registry.exists("/brokers/topics/t") is None


def test_what_is_heard_late_of_a_replica_that_went_elsewhere_does_not_count_for_a_later_topic(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = stage.brokers(1, 2)
    slow = cluster.brokers[2]
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", assignments={0: [1, 2]})]))
    deliver = cluster.send
    late: list[Callable[[], None]] = []

    def send(broker_id: int, request: ControlRequest, on_response: OnResponse) -> None:
        if broker_id == 2 and isinstance(request, LeaderAndIsrRequest):
            answer = call(slow, request)
            late.append(lambda: on_response(answer))
        else:
            deliver(broker_id, request, on_response)

    monkeypatch.setattr(cluster, "send", send)
    slow.failing.add(("t", 0))
    stage.registry.create(LogDirEvent.PREFIX, LogDirEvent.encode(2), sequential=True)
    stage.settle(controller)
    wait(controller.alter_reassignments({("t", 0): [1]}))
    assert late
    for tell in late:
        tell()
    stage.settle(controller)
    monkeypatch.undo()
    slow.failing.clear()
    wait(controller.delete_topics(["t"]))
    stage.settle(controller)

    created = wait(controller.create_topics([NewTopic("t", assignments={0: [2]})]))

    assert (created[0].error, stage.state().leader) == (None, 2)
