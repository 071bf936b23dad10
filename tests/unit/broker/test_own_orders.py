"""The controller's own broker does what it is told on a thread of its own, in order."""

import queue
import threading
from collections.abc import Iterator

import pytest

from kavka.broker.interbroker import own_orders
from kavka.broker.interbroker.control_queue import MAX_WAITING
from kavka.broker.interbroker.own_orders import OwnOrders
from kavka.cluster.ports import ControlRequest, ControlResponse
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.fake_brokers import broker_info
from tests.support.logged_errors import LoggedErrors

PATIENCE_S = 60.0
ME, OTHER = 4, 5


class SlowBroker:
    """A `BrokerPort` that does each order when it is let."""

    def __init__(self) -> None:
        self.begun: queue.Queue[ControlRequest] = queue.Queue()
        self.may_go_on = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        self._do(request)
        return LeaderAndIsrResponse(error_code=0)

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self._do(request)
        return StopReplicaResponse(error_code=0, partition_errors=[])

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        self._do(request)
        return UpdateMetadataResponse(error_code=0)

    def _do(self, request: ControlRequest) -> None:
        self.begun.put(request)
        assert self.may_go_on.acquire(timeout=PATIENCE_S)
        if self.failure is not None:
            raise self.failure


class Stage:
    def __init__(self) -> None:
        self.broker = SlowBroker()
        self.deaths: queue.Queue[BaseException] = queue.Queue()
        self.answers: queue.Queue[ControlResponse | BrokerError] = queue.Queue()
        self.orders = OwnOrders(ME, self.broker, self.deaths.put)
        self.live(epoch=1)
        self.orders.start()

    def live(self, epoch: int) -> None:
        """The controller has looked at who lives."""
        self.orders.update_brokers([broker_info(ME)._replace(epoch=epoch), broker_info(OTHER)])

    def stop(self, epoch: int) -> None:
        """Send an order that is never made one with others."""
        request = StopReplicaRequest(controller_id=ME, controller_epoch=epoch, broker_epoch=1, topic_states=[])
        self.orders.send(ME, request, self.answers.put)

    def publish(self, epoch: int) -> None:
        request = UpdateMetadataRequest(
            controller_id=ME, controller_epoch=epoch, broker_epoch=1, topic_states=[], live_brokers=[]
        )
        self.orders.send(ME, request, self.answers.put)

    def begun(self) -> int:
        """The epoch of the next order that was begun."""
        return self.broker.begun.get(timeout=PATIENCE_S).controller_epoch

    def answer(self) -> ControlResponse | BrokerError:
        return self.answers.get(timeout=PATIENCE_S)

    def code(self) -> ErrorCode:
        answer = self.answer()
        assert isinstance(answer, BrokerError)
        return answer.code


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    for _ in range(10):
        stage.broker.may_go_on.release()
    stage.orders.join()


def test_a_stop_waits_no_longer_than_it_must_for_a_disk_that_answers_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage.stop(1)
    assert stage.begun() == 1
    with monkeypatch.context() as brief:
        brief.setattr(own_orders, "STOP_PATIENCE_S", 0.01)
        stage.orders.join()
    assert "the stop goes on without what a disk still holds up" in caplog.text


def test_nobody_waits_for_an_order_and_they_are_done_in_turn(stage: Stage) -> None:
    stage.stop(1)
    stage.stop(2)
    assert stage.begun() == 1
    assert stage.orders.queue_sizes() == {ME: 2}
    assert (stage.broker.begun.empty(), stage.answers.empty()) == (True, True)
    stage.broker.may_go_on.release()
    assert isinstance(stage.answer(), StopReplicaResponse)
    assert stage.begun() == 2


def test_metadata_that_wait_become_one_order_and_all_hear_its_answer(stage: Stage) -> None:
    stage.stop(1)
    assert stage.begun() == 1
    for _ in range(5):
        stage.publish(1)
    assert stage.orders.queue_sizes() == {ME: 2}
    for _ in range(2):
        stage.broker.may_go_on.release()
    assert [type(stage.answer()) for _ in range(6)] == [StopReplicaResponse] + 5 * [UpdateMetadataResponse]


def test_a_disk_that_hangs_for_long_leaves_few_orders(stage: Stage) -> None:
    stage.stop(1)
    assert stage.begun() == 1
    for _ in range(3 * MAX_WAITING):
        stage.publish(1)
        stage.orders.send(
            ME,
            LeaderAndIsrRequest(controller_id=ME, controller_epoch=1, broker_epoch=1, topic_states=[], live_leaders=[]),
            stage.answers.put,
        )
    assert stage.orders.queue_sizes()[ME] <= MAX_WAITING
    assert stage.code() is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("how", ["term", "session"])
def test_what_was_not_begun_is_void_when_the_term_or_the_registration_is_over(stage: Stage, how: str) -> None:
    stage.stop(1)
    assert stage.begun() == 1
    stage.stop(2)
    stage.live(epoch=1)
    assert stage.answers.empty()
    if how == "term":
        stage.orders.update_brokers([])
    else:
        stage.live(epoch=7)
    assert stage.code() is ErrorCode.BROKER_NOT_AVAILABLE
    if how == "term":
        stage.stop(3)
        assert stage.code() is ErrorCode.BROKER_NOT_AVAILABLE
        assert stage.orders.queue_sizes() == {}
        stage.live(epoch=8)
    stage.stop(4)
    stage.broker.may_go_on.release()
    assert isinstance(stage.answer(), StopReplicaResponse)
    assert stage.begun() == 4


def test_who_waits_for_all_so_far_waits_for_no_later_order(stage: Stage) -> None:
    assert stage.orders.done_so_far() is None
    stage.stop(1)
    stage.stop(2)
    both = stage.orders.done_so_far()
    stage.stop(3)
    all_three = stage.orders.done_so_far()
    assert both is not None
    assert all_three is not None
    stage.broker.may_go_on.release()
    assert (stage.begun(), stage.begun()) == (1, 2)
    assert not both.done
    stage.broker.may_go_on.release()
    both.result(PATIENCE_S)
    assert stage.begun() == 3
    assert not all_three.done
    stage.broker.may_go_on.release()
    all_three.result(PATIENCE_S)
    stage.answer()
    assert stage.orders.done_so_far() is None


@pytest.mark.parametrize("how", ["term", "close"])
def test_nobody_waits_for_what_is_void(stage: Stage, how: str) -> None:
    stage.stop(1)
    assert stage.begun() == 1
    waiting = stage.orders.done_so_far()
    assert waiting is not None
    if how == "term":
        stage.orders.update_brokers([])
    else:
        stage.orders.close()
    waiting.result(0)


def test_the_end_waits_for_what_was_begun_and_calls_nobody_back(stage: Stage) -> None:
    stage.stop(1)
    stage.stop(2)
    assert stage.begun() == 1
    stage.orders.close()
    ended = threading.Thread(target=stage.orders.join)
    ended.start()
    assert ended.is_alive()
    stage.broker.may_go_on.release()
    ended.join(PATIENCE_S)
    assert not ended.is_alive()
    assert (stage.broker.begun.empty(), stage.answers.empty()) == (True, True)
    stage.stop(3)
    assert stage.code() is ErrorCode.BROKER_NOT_AVAILABLE


def test_an_order_that_is_refused_or_fails_is_answered_and_the_next_one_is_done(stage: Stage) -> None:
    with LoggedErrors("an order of this broker's controller failed request=StopReplicaRequest"):
        for failure, code in (
            (BrokerError(ErrorCode.INVALID_REQUEST), ErrorCode.INVALID_REQUEST),
            (ValueError("as an example"), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            stage.broker.failure = failure
            stage.stop(1)
            stage.broker.may_go_on.release()
            assert stage.code() is code
    stage.broker.failure = None
    stage.stop(2)
    stage.broker.may_go_on.release()
    assert isinstance(stage.answer(), StopReplicaResponse)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_ends_the_thread_is_told_to_whoever_owns_the_broker(stage: Stage) -> None:
    stage.broker.failure = SystemExit("as an example")
    stage.stop(1)
    stage.broker.may_go_on.release()
    assert isinstance(stage.deaths.get(timeout=PATIENCE_S), SystemExit)
