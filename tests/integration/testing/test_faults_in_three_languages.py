"""Each fault with a client in Python (librdkafka), one in Java and one in Go: they meet just that, and recover."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kavka.broker.faults.control import FaultControl
from kavka.broker.faults.fault import Fault
from kavka.protocol.errors import ErrorCode
from kavka.testing import Broker
from tests.support.faulted_clients import LANGUAGES, FaultedClient, faulted_client
from tests.support.processes import wait_until

TIMEOUT_S = 120.0
SHORT_MS = 300
LONG_MS = 600_000
Ask = Callable[[FaultControl, str], Fault]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        # Whose coordinator there is to lose.
        broker.lag("nobody")
        yield broker


@pytest.fixture(scope="module", params=LANGUAGES)
def client(
    request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultedClient]:
    with faulted_client(request.param, broker.bootstrap_servers, tmp_path_factory.mktemp(request.param)) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest, broker: Broker) -> Iterator[str]:
    yield broker.create_topic("".join(each if each.isalnum() else "-" for each in request.node.name))
    broker.faults.clear()


def test_an_error_that_is_not_tried_again_is_what_the_program_is_told(
    broker: Broker, client: FaultedClient, topic: str
) -> None:
    fault = broker.faults.fail("Produce", error="POLICY_VIOLATION", times=1, topic=topic)

    assert client.ask(f"once {topic} 1") == f"error {int(ErrorCode.POLICY_VIOLATION)}"
    assert client.ask(f"once {topic} 2") == "ok"

    assert (fault.hits, fault.left) == (1, 0)
    broker.assert_records(topic, [b"2"])


PRODUCING: dict[str, tuple[Ask, int]] = {
    "fail": (lambda faults, topic: faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2, topic=topic), 2),
    "no leader": (lambda faults, topic: faults.fail("Metadata", error="LEADER_NOT_AVAILABLE", topic=topic), 1),
    "delay": (lambda faults, topic: faults.delay("Produce", delay_ms=SHORT_MS, topic=topic), 1),
    "drop": (lambda faults, topic: faults.drop("Produce", topic=topic), 1),
    "cut before": (lambda faults, topic: faults.cut("Produce", topic=topic), 1),
    "cut after": (lambda faults, topic: faults.cut("Produce", after_work=True, topic=topic), 1),
    "throttle": (lambda faults, topic: faults.throttle("Produce", throttle_time_ms=SHORT_MS, topic=topic), 1),
    "bounce": (lambda faults, topic: faults.bounce(), 1),
}


@pytest.mark.parametrize("name", PRODUCING)
def test_a_producer_meets_it_and_its_records_are_there_once(
    broker: Broker, client: FaultedClient, topic: str, name: str
) -> None:
    ask, hits = PRODUCING[name]
    fault = ask(broker.faults, topic)

    assert client.ask(f"produce {topic} 1") == "ok"
    assert client.ask(f"produce {topic} 2") == "ok"

    assert fault.hits == hits
    broker.assert_records(topic, [b"1", b"2"])


LASTING: dict[str, Ask] = {
    "move_leader": lambda faults, topic: faults.move_leader(topic, unavailable_ms=LONG_MS),
    "freeze": lambda faults, topic: faults.freeze(),
    "fill_disk": lambda faults, topic: faults.fill_disk(),
}


@pytest.mark.parametrize("name", LASTING)
def test_a_producer_waits_until_it_is_taken_back(broker: Broker, client: FaultedClient, topic: str, name: str) -> None:
    assert client.ask(f"produce {topic} 1") == "ok"
    with LASTING[name](broker.faults, topic) as fault:
        client.tell(f"produce {topic} 2")
        wait_until(lambda: fault.hits > 0, TIMEOUT_S, "it met nothing")

    assert client.answer() == "ok"

    broker.assert_records(topic, [b"1", b"2"])


CONSUMING: dict[str, Ask] = {
    "search": lambda faults, topic: faults.fail("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=2),
    "join": lambda faults, topic: faults.fail("JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", times=2),
    "sync": lambda faults, topic: faults.fail("SyncGroup", error="REBALANCE_IN_PROGRESS"),
    "offsets": lambda faults, topic: faults.fail("OffsetFetch", error="COORDINATOR_LOAD_IN_PROGRESS"),
    "fetch": lambda faults, topic: faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=2, topic=topic),
    "cut fetch": lambda faults, topic: faults.cut("Fetch", after_work=True, topic=topic),
}


@pytest.mark.parametrize("name", CONSUMING)
def test_a_member_meets_it_and_reads_all_once(broker: Broker, client: FaultedClient, topic: str, name: str) -> None:
    broker.produce(topic, [b"1", b"2"])
    fault = CONSUMING[name](broker.faults, topic)

    assert client.ask(f"consume {topic} {topic} 2") == "read 1,2"

    assert fault.hits >= 1
    assert fault.is_spent, "it met all of it"
    assert broker.lag(topic) == {(topic, 0): 0}


def wait_for_more(fault: Fault) -> None:
    """Until it has hit a request from now on."""
    met = fault.hits
    wait_until(lambda: fault.hits > met, TIMEOUT_S, "it met nothing")


def test_a_member_waits_for_a_coordinator_that_is_lost_and_loads(
    broker: Broker, client: FaultedClient, topic: str
) -> None:
    broker.produce(topic, [b"1", b"2"])
    fault = broker.faults.lose_coordinator(topic, unavailable_ms=LONG_MS, loading_ms=LONG_MS)
    client.tell(f"consume {topic} {topic} 2")
    for _ in ("away", "loading"):
        wait_for_more(fault)
        broker.travel(minutes=11)

    assert client.answer() == "read 1,2"

    assert fault.is_cleared
    assert broker.lag(topic) == {(topic, 0): 0}


def test_nothing_is_left_of_them(broker: Broker) -> None:
    assert broker.faults.faults == ()
    server: Any = broker.hosted.server
    timers = server.services.purgatory.timer
    wait_until(lambda: server._sockets.connection_count <= 4, TIMEOUT_S, "connections are left")
    assert timers.pending < 100
