"""The requests of a controller elsewhere: what they change here, and whose are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.partitions.local_broker import LocalBroker
from kavka.broker.requests.handling import load_handlers
from kavka.cluster.controller.requests import ProducerIdBlock
from kavka.cluster.promise import Promise
from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kavka.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kavka.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from kavka.protocol.schema import schema_of
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import BROKER_ID, topic_id_of, update_metadata
from tests.support.network_stage import SIZE

CONTROL = ("leader_and_isr", "stop_replica", "update_metadata")
NEWEST = {"leader_and_isr": 7, "stop_replica": 4, "update_metadata": 8}


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    made = BrokerCore(tmp_path)
    made.broker_epoch = 50
    yield made
    made.close()


def ask(core: BrokerCore, request: Any, version: int, *, number: int = 1) -> Any:
    key = schema_of(type(request)).key
    assert key is not None
    received = core.ask(encode_request_header(key, version, number, None) + encode(request, version))
    assert received, "the connection was closed"
    _, start = decode_response_header(key, version, received, SIZE.size)
    return decode(api.spec(key).response_class, version, memoryview(received)[start:])


def lead(
    topic: str = "visits", index: int = 0, *, controller_epoch: int = 5, broker_epoch: int = 50, leader_epoch: int = 3
) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=controller_epoch,
        leader=BROKER_ID,
        leader_epoch=leader_epoch,
        isr=[BROKER_ID],
        partition_epoch=0,
        replicas=[BROKER_ID],
        is_new=True,
    )
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id_of(topic), partition_states=[state])],
        live_leaders=[],
    )


def stop(topic: str = "visits", *, controller_epoch: int = 5, broker_epoch: int = 50) -> StopReplicaRequest:
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=3, delete_partition=True)
    return StopReplicaRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[StopReplicaTopicState(topic_name=topic, partition_states=[state])],
    )


def tell(*, controller_epoch: int = 5, broker_epoch: int = 50) -> Any:
    request = update_metadata({"visits": [BROKER_ID, 9]})
    request.controller_epoch, request.broker_epoch = controller_epoch, broker_epoch
    return request


REQUESTS: dict[str, Any] = {"leader_and_isr": lead, "stop_replica": stop, "update_metadata": tell}


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_partition_is_led_when_another_brokers_controller_says_so(core: BrokerCore, version: int) -> None:
    answer = ask(core, lead(), version)

    assert answer.error_code == ErrorCode.NONE
    assert [(topic.topic_id, [each.error_code for each in topic.partition_errors]) for topic in answer.topics] == [
        (topic_id_of("visits"), [ErrorCode.NONE])
    ]
    assert core.replicas.leader_count == 1


@pytest.mark.parametrize("version", [3, 4])
def test_a_partition_stops_and_its_log_goes_when_the_controller_says_so(core: BrokerCore, version: int) -> None:
    ask(core, lead(), 7)

    answer = ask(core, stop(), version)

    assert (answer.error_code, [each.error_code for each in answer.partition_errors]) == (0, [0])
    assert not core.replicas.partitions
    assert core.rig.manager.get("visits", 0) is None


@pytest.mark.parametrize("version", [7, 8])
def test_the_metadata_are_those_that_the_controller_told(core: BrokerCore, version: int) -> None:
    assert ask(core, tell(), version).error_code == ErrorCode.NONE

    known = core.services.metadata.current
    assert (known.controller_epoch, known.topic_id("visits")) == (5, topic_id_of("visits"))
    assert [each.leader for each in known.topics["visits"]] == [BROKER_ID, 9]


@pytest.mark.parametrize("first", CONTROL)
@pytest.mark.parametrize("second", CONTROL)
def test_whatever_a_controller_asked_its_predecessor_is_heard_no_more(
    core: BrokerCore, first: str, second: str
) -> None:
    assert ask(core, REQUESTS[first](controller_epoch=6), NEWEST[first]).error_code == ErrorCode.NONE
    before = core.services.metadata.current, dict(core.replicas.partitions)

    answer = ask(core, REQUESTS[second](controller_epoch=5), NEWEST[second])

    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert (core.services.metadata.current, core.replicas.partitions) == before


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("latest", CONTROL)
def test_what_was_sent_before_something_that_is_here_already_changes_nothing(
    core: BrokerCore, name: str, latest: str
) -> None:
    """Its connection was given up, and it was sent again on the next one."""
    ask(core, REQUESTS[latest](), NEWEST[latest], number=17)
    core.connect()

    late = ask(core, REQUESTS[name](), NEWEST[name], number=16)

    assert late.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert ask(core, REQUESTS[name](), NEWEST[name], number=18).error_code == ErrorCode.NONE


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("later", [{"controller_epoch": 6}, {"broker_epoch": 51}])
def test_another_controller_or_one_that_met_the_broker_anew_counts_from_nothing(
    core: BrokerCore, name: str, later: dict[str, int]
) -> None:
    ask(core, tell(), NEWEST["update_metadata"], number=17)

    assert ask(core, REQUESTS[name](**later), NEWEST[name], number=0).error_code == ErrorCode.NONE


@pytest.mark.parametrize("name", CONTROL)
def test_a_request_for_an_earlier_start_of_this_broker_changes_nothing(core: BrokerCore, name: str) -> None:
    before = core.services.metadata.current

    answer = ask(core, REQUESTS[name](broker_epoch=49, controller_epoch=9), NEWEST[name])

    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert (core.services.metadata.current, core.replicas.partitions) == (before, {})
    # Nor does it depose anybody: who else would know of this start?
    assert ask(core, REQUESTS[name](controller_epoch=5), NEWEST[name]).error_code == ErrorCode.NONE


@pytest.mark.parametrize("epoch", [-1, 51])
def test_a_request_without_a_brokers_epoch_or_with_one_not_yet_known_here_is_heard(
    core: BrokerCore, epoch: int
) -> None:
    assert ask(core, lead(broker_epoch=epoch), 7).error_code == ErrorCode.NONE
    assert core.replicas.leader_count == 1


@pytest.mark.parametrize(("topic", "index"), [("../../etc", 0), ("", 0), ("visits", -1), ("a" * 300, 0)])
def test_what_cannot_be_a_partition_is_refused_before_a_folder_is_made(
    core: BrokerCore, tmp_path: Path, topic: str, index: int
) -> None:
    before = sorted(tmp_path.rglob("*"))

    assert ask(core, lead(topic, index), 7).error_code == ErrorCode.INVALID_REQUEST

    assert (sorted(tmp_path.rglob("*")), core.replicas.partitions) == (before, {})


def test_a_topic_with_an_odd_name_keeps_no_other_from_being_led(core: BrokerCore) -> None:
    """Kafka's controller has whatever topics somebody has written into ZooKeeper led, all in one request."""
    request = lead("no\u00a0name", 0)
    request.topic_states = [*request.topic_states, *lead("visits", 0).topic_states]

    answer = ask(core, request, 7)

    outcomes = [each.partition_errors[0].error_code for each in answer.topics]
    assert (answer.error_code, sorted(outcomes)) == (ErrorCode.NONE, [ErrorCode.NONE, ErrorCode.INVALID_REQUEST])
    assert list(core.replicas.partitions) == [("visits", 0)]


class TermOfAnotherBroker:
    """A controller as others ask it; where another broker is the controller, everything fails."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.error: BrokerError | None = None

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> Promise[list[tuple[str, int]]]:
        return self._answer((broker_id, broker_epoch), [("visits", 2), ("clicks", 0)])

    def alter_partition(self, request: AlterPartitionRequest) -> Promise[AlterPartitionResponse]:
        return self._answer(request.broker_id, AlterPartitionResponse(error_code=0, topics=[]))

    def allocate_producer_id_block(self, broker_id: int, broker_epoch: int) -> Promise[ProducerIdBlock]:
        return self._answer((broker_id, broker_epoch), ProducerIdBlock(4000, 4999))

    def _answer(self, asked: Any, answer: Any) -> Promise[Any]:
        self.asked.append(asked)
        promise: Promise[Any] = Promise()
        promise.settle(None if self.error else answer, self.error)
        return promise


@pytest.fixture
def controller(core: BrokerCore) -> TermOfAnotherBroker:
    services: Any = core.services
    services.controller = TermOfAnotherBroker()
    made: TermOfAnotherBroker = services.controller
    return made


def test_the_controller_takes_leaderships_from_a_broker_that_stops(
    core: BrokerCore, controller: TermOfAnotherBroker
) -> None:
    for version in range(4):
        answer = ask(core, ControlledShutdownRequest(broker_id=2, broker_epoch=7), version)
        left = [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
        assert (answer.error_code, left) == (0, [("visits", 2), ("clicks", 0)])

    assert controller.asked == [(2, -1), (2, -1), (2, 7), (2, 7)]


def test_the_controller_gives_another_broker_producer_ids(core: BrokerCore, controller: TermOfAnotherBroker) -> None:
    answer = ask(core, AllocateProducerIdsRequest(broker_id=2, broker_epoch=7), 0)

    assert (answer.error_code, answer.producer_id_start, answer.producer_id_len) == (0, 4000, 1000)
    assert controller.asked == [(2, 7)]


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (ControlledShutdownRequest(broker_id=2, broker_epoch=7), 3),
        (AlterPartitionRequest(broker_id=2, broker_epoch=7, topics=[]), 0),
        (AlterPartitionRequest(broker_id=2, broker_epoch=7, topics=[]), 3),
        (AllocateProducerIdsRequest(broker_id=2, broker_epoch=7), 0),
    ],
)
@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_what_the_controller_refuses_is_said_for_the_whole_request(
    core: BrokerCore, controller: TermOfAnotherBroker, request_: Any, version: int, code: ErrorCode
) -> None:
    controller.error = BrokerError(code, "no")

    assert ask(core, request_, version).error_code == code


def test_a_broker_that_stands_alone_takes_orders_from_nobody() -> None:
    everywhere, alone = load_handlers(in_cluster=True), load_handlers()

    assert sorted(everywhere.keys() - alone.keys()) == [4, 5, 6, 7, 56, 67]


@pytest.mark.parametrize("name", CONTROL)
def test_what_comes_before_the_broker_knows_its_epoch_is_judged_when_it_does(core: BrokerCore, name: str) -> None:
    core.broker_epoch = -1
    services: Any = core.services
    services.local_broker = LocalBroker(core.replicas, core.services.metadata, lambda: core.broker_epoch)
    request = REQUESTS[name](broker_epoch=49)
    key = schema_of(type(request)).key
    assert key is not None
    version = NEWEST[name]
    before = core.services.metadata.current

    assert not core.ask(encode_request_header(key, version, 1, None) + encode(request, version))

    core.broker_epoch = 50
    core.services.local_broker.registered()
    core.stage.settle()
    _, start = decode_response_header(key, version, core.socket.taken, SIZE.size)
    answer: Any = decode(api.spec(key).response_class, version, memoryview(core.socket.taken)[start:])
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert (core.services.metadata.current, core.replicas.partitions) == (before, {})


@pytest.mark.parametrize("name", ["leader_and_isr", "update_metadata"])
def test_the_settings_are_read_of_topics_that_are_new_here_or_were_made_anew(core: BrokerCore, name: str) -> None:
    """Whoever was out of touch has not heard of the end of the one before, and would keep its retention."""
    read: list[object] = []
    metadata = core.services.metadata
    local_broker = LocalBroker(core.replicas, metadata, lambda: core.broker_epoch, read.append, read.append)
    request: Any = REQUESTS[name]()
    for topic_id in (None, bytes(16), bytes(15) + b"\2"):
        if topic_id is not None:
            request.topic_states[0].topic_id = topic_id
        getattr(local_broker, name)(request)
        metadata.apply(update_metadata({"visits": [BROKER_ID]}, epoch=5))

    assert read == [["visits"], "visits", ["visits"]]
