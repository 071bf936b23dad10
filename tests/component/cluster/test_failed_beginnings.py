"""Terms that cannot begin, elections that fail on the way: somebody is the controller in the end, and nothing spins."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kavka.cluster.broker_registration import BrokerRegistration
from kavka.cluster.controller.candidacy import MAX_PAUSE
from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import NewTopic
from kavka.cluster.registry.base import Operation, RegistryError, RegistryUnavailableError
from kavka.cluster.znodes.controller import ControllerLease
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Stage, wait
from tests.support.fake_brokers import broker_info
from tests.support.processes import wait_until

PATIENCE_S = 60.0


class Failing:
    """A registry of which one call fails as often as asked."""

    def __init__(self, registry: Any, method: str, path: str) -> None:
        self._registry = registry
        self._method = method
        self._path = path
        self.left = 0
        self.error: type[RegistryError] = RegistryUnavailableError

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._registry, name)
        return self._guarded(method) if name == self._method else method

    def _guarded(self, method: Any) -> Any:
        def call(first: Any, *others: Any, **named: Any) -> Any:
            if self.left and self._path in _paths(first):
                self.left -= 1
                raise self.error("as an example")
            return method(first, *others, **named)

        return call


def _paths(argument: str | Sequence[Operation | str]) -> list[str]:
    if isinstance(argument, str):
        return [argument]
    return [each if isinstance(each, str) else each.path for each in argument]


@pytest.fixture
def unreadable(stage: Stage) -> Iterator[Failing]:
    """Nobody can list the notices of disks, whenever `left` says so: a term reads them last."""
    real = stage.registry
    failing = Failing(real, "children", "/log_dir_event_notification")
    stage.registry = failing  # type: ignore[assignment]  # a Registry in all but name
    yield failing
    stage.registry = real


def epoch(stage: Stage) -> int:
    return int(stage.registry.get("/controller_epoch")[0])


def run_until_idle(controller: Controller) -> None:
    """Until the controller's thread has done all that is queued, and what that queued."""
    for _ in range(5):
        wait(controller._candidacy.submit(lambda: None))


def test_a_term_that_cannot_begin_is_given_up_and_its_broker_stands_aside(stage: Stage, unreadable: Failing) -> None:
    stage.brokers(1)
    unreadable.left = 3
    candidate = stage.candidate(1)
    with pytest.raises(BrokerError):
        wait(candidate.start())

    run_until_idle(candidate)
    assert (epoch(stage), stage.registry.exists("/controller")) == (1, None)
    assert not candidate.is_active
    with pytest.raises(BrokerError) as refusal:
        wait(candidate.create_topics([NewTopic("t")]))
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
    assert epoch(stage) == 1

    # Each time it stands aside for longer.
    for attempt in (2, 3):
        for _ in range(attempt - 1):
            candidate.resume()
            run_until_idle(candidate)
        assert epoch(stage) == attempt
    for _ in range(MAX_PAUSE):
        candidate.resume()
        run_until_idle(candidate)
    assert candidate.is_active
    assert epoch(stage) == 4
    assert wait(candidate.create_topics([NewTopic("t")]))[0].error is None


def test_another_broker_becomes_the_controller_where_one_cannot(stage: Stage, unreadable: Failing) -> None:
    stage.brokers(1, 2)
    first = stage.controller(1)
    stage.registry = unreadable._registry
    second = stage.controller(2)
    unreadable.left = 1_000
    first._candidacy._events.notice(lambda: first._candidacy.look_at(_fail))
    first._candidacy.resume()
    wait_until(lambda: not first.is_active or first._candidacy._term is None, PATIENCE_S, "the term goes on")
    first.resume()
    wait_until(lambda: second.is_active, PATIENCE_S, "nobody is the controller")
    wait_until(lambda: first.controller_id == 2, PATIENCE_S, "the first one does not follow")
    assert wait(second.create_topics([NewTopic("t")]))[0].error is None


def _fail(term: object) -> None:
    raise ValueError("as an example")


def test_a_claim_that_fails_once_is_tried_again(stage: Stage) -> None:
    stage.brokers(1, 2)
    first = stage.controller(1)
    real = stage.registry
    failing = Failing(real, "multi", "/controller")
    stage.registry = failing  # type: ignore[assignment]  # a Registry in all but name
    second = stage.candidate(2)
    wait(second.start())
    assert second.controller_id == 1
    failing.left = 1

    first.stop()
    wait_until(lambda: failing.left == 0, PATIENCE_S, "it does not stand")
    second.resume()
    wait_until(lambda: second.is_active, PATIENCE_S, "it does not stand again")
    assert wait(second.create_topics([NewTopic("t")]))[0].error is None
    stage.registry = real


def test_a_request_does_not_trust_in_a_controller_that_was_not_looked_up_since(stage: Stage) -> None:
    stage.brokers(1, 2)
    first = stage.controller(1)
    real = stage.registry
    failing = Failing(real, "exists", "/controller")
    stage.registry = failing  # type: ignore[assignment]  # a Registry in all but name
    second = stage.candidate(2)
    wait(second.start())
    failing.left = 1
    first.stop()
    wait_until(lambda: failing.left == 0, PATIENCE_S, "it does not look")
    assert wait(second.create_topics([NewTopic("t")]))[0].error is None
    stage.registry = real


def test_features_that_could_not_be_read_are_read_again(stage: Stage) -> None:
    stage.brokers(1)
    real = stage.registry
    failing = Failing(real, "get_many", "/feature")
    stage.registry = failing  # type: ignore[assignment]  # a Registry in all but name
    heard: list[int] = []
    candidate = stage.candidate(1, lambda features: heard.append(features.epoch))
    wait(candidate.start())
    assert heard == [0]
    failing.left = 1
    real.set("/feature", real.get("/feature")[0])
    wait_until(lambda: failing.left == 0, PATIENCE_S, "nobody looks")
    run_until_idle(candidate)
    candidate.resume()
    wait_until(lambda: heard == [0, 1], PATIENCE_S, lambda: f"heard {heard}")
    real.set("/feature", real.get("/feature")[0])
    wait_until(lambda: heard == [0, 1, 2], PATIENCE_S, "the watch is lost")
    stage.registry = real


@pytest.mark.parametrize("data", [b"spoilt", b"", b"-7", b"99999999999"])
def test_a_spoilt_epoch_is_made_out_from_what_controllers_have_written(stage: Stage, data: bytes) -> None:
    broker = stage.brokers(1).brokers[1]
    first = stage.controller(1)
    wait(first.create_topics([NewTopic("t", 1)]))
    path = PartitionState.path("t", 0)
    stage.registry.set(path, stage.state()._replace(controller_epoch=70).encode())
    first.stop()
    stage.registry.set("/controller_epoch", data)

    second = stage.controller(1)

    assert second.is_active
    assert epoch(stage) > 70
    assert broker.requests[-1].controller_epoch == epoch(stage)
    assert wait(second.create_topics([NewTopic("u")]))[0].error is None


def test_a_removed_epoch_does_not_begin_anew(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller(1)
    wait(controller.create_topics([NewTopic("t", 1)]))
    stage.registry.set(PartitionState.path("t", 0), stage.state()._replace(controller_epoch=70).encode())
    stage.registry.delete("/controller_epoch")
    # Nothing that is asked of it may wait for what will not be there again.
    with pytest.raises(BrokerError) as refusal:
        wait(controller.allocate_producer_id_block(1))
    assert refusal.value.code is ErrorCode.NOT_CONTROLLER
    wait_until(lambda: controller.stats().is_active, PATIENCE_S, "no other term")
    assert epoch(stage) > 70


@pytest.mark.parametrize("data", [b"spoilt", ControllerLease(7, 1).encode()], ids=["unreadable", "copied"])
def test_a_controller_without_a_session_is_none(stage: Stage, data: bytes) -> None:
    """Put there by hand, or by a tool that copied a tree: it would never go."""
    stage.brokers(1)
    stage.registry.create("/controller", data)
    assert stage.controller(1).is_active


def test_a_quorum_that_took_the_cluster_over_is_not_replaced(stage: Stage) -> None:
    """KIP-866: its node has no session, but an epoch."""
    stage.brokers(1)
    stage.registry.create("/controller", ControllerLease(3000, 1, kraft_epoch=4).encode())
    controller = stage.controller(1)
    assert (controller.is_active, controller.controller_id) == (False, 3000)


def test_a_producer_id_block_that_cannot_be_read_ends_no_term(stage: Stage) -> None:
    stage.brokers(1)
    controller = stage.controller(1)
    stage.registry.create("/latest_producer_id_block", b"broken")
    for _ in range(3):
        with pytest.raises(BrokerError) as refusal:
            wait(controller.allocate_producer_id_block(1))
        assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert epoch(stage) == 1


def test_a_broker_that_cannot_register_again_yet_warns_and_comes_back(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stage.brokers(1)
    stage.registry.delete("/brokers/ids/1")
    failing: Any = Failing(stage.registry, "create", "/brokers/ids/1")
    failing.left = 2
    registration = BrokerRegistration(failing, broker_info(1), stage.clock)
    controller = Controller(stage.registry, 1, stage.cluster, stage.settings, stage.clock, registration=registration)
    stage.controllers.append(controller)
    with pytest.raises(BrokerError):
        wait(controller.start())

    for _ in range(2):
        run_until_idle(controller)
        controller.resume()
    run_until_idle(controller)

    told = [(record.levelname, record.getMessage()) for record in caplog.records if "rejoin" in record.getMessage()]
    assert [level for level, _ in told] == ["WARNING"] * 2
    assert controller.is_active
    assert stage.registry.exists("/brokers/ids/1") is not None
