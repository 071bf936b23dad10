"""All scenarios, and a Kavka that is told what Kafka's test processes are told."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.oracle.answers.stage import SCENARIOS
from tests.support.kavka_process import KavkaProcess
from tests.support.wire import Wire

for _module in (
    "cluster",
    "configs",
    "connection",
    "coordinator_aborts",
    "credentials",
    "fetch",
    "groups",
    "late_members",
    "offsets",
    "produce",
    "quotas",
    "reading",
    "topics",
    "transactions",
):
    importlib.import_module(f"tests.integration.oracle.answers.{_module}")

SAME_AS_KAFKAS = {
    "broker.id": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
}


def scenarios_for(oracle: str) -> list[object]:
    """The parameters of a test: each scenario that is played beside this Kafka."""
    return [pytest.param(each, id=each.name) for each in SCENARIOS if oracle in each.oracles]


@contextmanager
def comparable_kavka(directory: Path) -> Iterator[Wire]:
    """A connection to a fresh Kavka."""
    with KavkaProcess(directory, SAME_AS_KAFKAS) as process, Wire(process.host, process.port) as client:
        yield client
