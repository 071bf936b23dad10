"""Copying from topic to topic while clients and the broker are killed: what went in comes out once, in order."""

import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.java_programs import java_command
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import Process, let_pass, wait_until
from tests.support.producing import REPOSITORY, Producing
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.transactions import READ_UNCOMMITTED, end_offset, read_committed, settle

pytestmark = [pytest.mark.java, pytest.mark.slow]
DRAIN_S = 240.0
# Members that were killed leave their groups soon, and their transactions do not hold up readers for long.
BROKER_SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
CLASSIC = ("session.timeout.ms=3000", "heartbeat.interval.ms=500")
COPIERS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "java-classic": [("kafka-4.3", CLASSIC), ("kafka-3.9", CLASSIC)],
    "java-consumer": [("kafka-4.3", ("group.protocol=consumer",))] * 2,
    "confluent": [("confluent", ())] * 2,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", COPIERS)
def test_copies_are_exact_whoever_is_killed(
    broker: RunningServer, tmp_path: Path, topic: str, kind: str, kills: int
) -> None:
    dice = random.Random(kind)
    victims = ["broker", "copier", "copier"] * (kills // 3)
    dice.shuffle(victims)
    source, target = f"{topic}.in", f"{topic}.out"
    for name in (source, target):
        create_topic(broker, name, partitions=PARTITIONS)
    with ExitStack() as closing:
        copiers = [
            closing.enter_context(_copier(tmp_path, broker, bundle, settings, source, target, number))
            for number, (bundle, settings) in enumerate(COPIERS[kind])
        ]
        producer = closing.enter_context(Producing(tmp_path, broker.bootstrap, source, "n", "confluent", rate=300))
        for copier in copiers:
            copier.process.wait_for_log("COPIED", DRAIN_S)
        for victim in victims:
            let_pass(dice.uniform(0.2, 2.0))
            if victim == "broker":
                broker.process.check_alive()
                broker.kill()
                broker.start()
            else:
                dice.choice(copiers).replace()
        sent = producer.finish()
        assert producer.errors() == []
        _wait_for_all(broker, source, target, copiers)
    settle(broker, target, PARTITIONS)

    copied = {partition: read_committed(broker, target, partition) for partition in range(PARTITIONS)}
    assert sum(map(len, copied.values())) == sent
    for partition, values in copied.items():
        assert values == [f"n:{partition}:{number}!" for number in range(len(values))]


class Copier:
    """A process that copies; `replace` kills it and starts its heir, with the same transactional id."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self.process = self._start()

    def replace(self) -> None:
        self.process.check_alive()
        self.process.kill()
        self.process = self._start()

    def _start(self) -> Process:
        return Process(self._command, self._log, env={"PYTHONPATH": str(REPOSITORY)})


@contextmanager
def _copier(
    directory: Path,
    broker: RunningServer,
    bundle: str,
    settings: tuple[str, ...],
    source: str,
    target: str,
    number: int,
) -> Iterator[Copier]:
    arguments = [broker.bootstrap, source, target, f"group-{source}", f"{source}-{number}"]
    if bundle == "confluent":
        command = [sys.executable, "-m", "tests.support.exactly_once_copier", *arguments]
    else:
        command = java_command("ExactlyOnceCopy", *arguments, *settings, bundle=bundle)
    copier = Copier(command, directory / f"copier-{number}.log")
    try:
        yield copier
    finally:
        copier.process.kill()


def _wait_for_all(broker: RunningServer, source: str, target: str, copiers: list[Copier]) -> None:
    """Until each input partition has been copied to its end."""
    ends = [end_offset(broker, source, READ_UNCOMMITTED, partition) for partition in range(PARTITIONS)]

    def all_copied() -> bool:
        for copier in copiers:
            copier.process.check_alive()
        return all(len(read_committed(broker, target, part)) >= ends[part] for part in range(PARTITIONS))

    wait_until(all_copied, DRAIN_S, lambda: "\n".join(copier.process.log_text()[-2000:] for copier in copiers))
