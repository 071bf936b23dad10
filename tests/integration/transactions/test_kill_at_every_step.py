"""The broker is killed after each step of a transaction, and comes back: what was begun is ended as it was asked."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import let_pass
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.transactions import (
    TransactionalProducers,
    read_committed,
    read_uncommitted,
    settle,
    stable_offset,
)

pytestmark = [pytest.mark.java, pytest.mark.slow]
PARTITIONS = 3
ENDINGS_S = 0.05
"""How long after asking for a commit the broker is killed, at most: before it is logged, or before its markers are."""


@pytest.fixture(params=["kafka-4.3", "kafka-3.9"])
def client(request: pytest.FixtureRequest, broker: RunningServer, tmp_path: Path) -> Iterator[TransactionalProducers]:
    with TransactionalProducers(broker, tmp_path / "client.log", bundle=request.param) as running:
        yield running


def test_a_transaction_goes_on_after_a_kill_at_each_of_its_steps(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    """The producer never learns that the broker was away: no step fails."""
    create_topic(broker, topic, partitions=PARTITIONS)
    group = f"group-{topic}"
    client.open(topic, topic)
    _bounce(broker)
    steps = [
        "begin",
        *(f"send {topic} {partition} v{partition}" for partition in range(PARTITIONS)),
        "flush",
        f"offsets {group} {topic} 0 1",
        f"offsets {group} {topic} 1 2",
        "commit",
    ]
    for step in steps:
        client.do(f"{topic} {step}")
        _bounce(broker)
    settle(broker, topic, PARTITIONS)

    assert [read_committed(broker, topic, partition) for partition in range(PARTITIONS)] == [["v0"], ["v1"], ["v2"]]
    assert [stable_offset(broker, group, topic, partition) for partition in (0, 1)] == [1, 2]


def test_an_aborted_transaction_stays_aborted_after_kills(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    group = f"group-{topic}"
    client.open(topic, topic)
    client.do(f"{topic} begin", f"{topic} send {topic} 0 a", f"{topic} flush", f"{topic} offsets {group} {topic} 0 1")
    _bounce(broker)
    client.do(f"{topic} abort")
    _bounce(broker)
    client.do(f"{topic} begin", f"{topic} send {topic} 0 b", f"{topic} commit")
    _bounce(broker)
    settle(broker, topic, PARTITIONS)

    assert read_committed(broker, topic) == ["b"]
    assert read_uncommitted(broker, topic) == ["a", "b"]
    assert stable_offset(broker, group, topic) == -1


@pytest.mark.parametrize("endings", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_a_kill_while_a_commit_or_an_abort_is_going_on_does_not_undo_it(
    broker: RunningServer, client: TransactionalProducers, topic: str, endings: int
) -> None:
    dice = random.Random(topic)
    create_topic(broker, topic, partitions=PARTITIONS)
    group = f"group-{topic}"
    client.open(topic, topic)
    kept, offset = [], -1
    for number in range(endings):
        ending = "abort" if number % 3 == 2 else "commit"
        client.do(f"{topic} begin")
        client.do(*(f"{topic} send {topic} {partition} {ending}{number}" for partition in range(PARTITIONS)))
        client.do(f"{topic} flush", f"{topic} offsets {group} {topic} 0 {number}")
        client.tell(f"{topic} {ending}")
        let_pass(dice.uniform(0, ENDINGS_S))
        _bounce(broker)
        assert client.answer() == "ok"
        if ending == "commit":
            kept.append(f"commit{number}")
            offset = number
    settle(broker, topic, PARTITIONS)

    assert [read_committed(broker, topic, partition) for partition in range(PARTITIONS)] == [kept] * PARTITIONS
    assert stable_offset(broker, group, topic) == offset


def test_what_a_dead_producer_left_open_is_ended_by_its_heir_after_a_kill(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    zombie, heir = f"{topic}-zombie", f"{topic}-heir"
    client.open(zombie, topic)
    client.do(f"{zombie} begin", f"{zombie} send {topic} 0 lost", f"{zombie} flush")
    _bounce(broker)
    client.open(heir, topic)
    client.do(f"{heir} begin", f"{heir} send {topic} 0 kept")
    _bounce(broker)
    client.do(f"{heir} commit")
    settle(broker, topic, PARTITIONS)

    assert read_committed(broker, topic) == ["kept"]
    assert read_uncommitted(broker, topic) == ["lost", "kept"]


def _bounce(broker: RunningServer) -> None:
    broker.process.check_alive()
    broker.kill()
    broker.start()
