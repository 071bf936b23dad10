"""What docs/client.md and docstrings show of reading, of groups and of metrics runs as it stands."""

import inspect
import itertools
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy
import prometheus_client
import pytest

from kavka import client
from kavka.client import Admin, Consumer, NewTopic, Producer
from tests.support.console_blocks import ROOT
from tests.support.kavka_process import KavkaProcess
from tests.support.shown_code import GIVEN, blocks, examples, needs_broker, public_names

PAGE = (ROOT / "docs" / "client.md").read_text()
SHOWN = "localhost:9092"
SECTIONS = ("Reading records", "Groups", "Metrics")
ENDING = (
    ("    for record in consumer:", "    for record in itertools.islice(consumer, 3):"),
    ("while True:", "while futures or consumer.position(('visits', 0)) < 20:"),
    ("timeout_ms=1000", "timeout_ms=60_000"),
)
"""Loops that nobody ends, and a wait that a slow machine may need longer for; and what is run in their place."""
OF_READERS = (
    "Cluster",
    "Consumer",
    "ConsumerGroupMetadata",
    "Deserializer",
    "GroupMembershipOperation",
    "Metrics",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionAssignor",
    "PartitionInfo",
    "RebalanceListener",
    "RecordColumns",
    "RecordMetadata",
    "Serializer",
    "SubscriptionPattern",
    "TopicInfo",
    "TopicPartition",
)
"""Whose docstrings no other test runs."""


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker where topic `visits` has records on its first two partitions."""
    settings = {"group.initial.rebalance.delay.ms": "0", "broker.id": "1"}
    with KavkaProcess(tmp_path_factory.mktemp("broker"), settings) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("visits", 2, 1), NewTopic("visits-of-birds", 1, 1)])
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(40):
                producer.send("visits", b"/start", key=b"%d" % number, partition=number % 2)
        yield broker.bootstrap


@pytest.fixture
def namespace(bootstrap: str) -> Iterator[dict[str, Any]]:
    """All public names, and open clients: a consumer that reads partition 0 of `visits` from its beginning."""
    with ExitStack() as stack:
        opened = {name: getattr(client, GIVEN[name]) for name in ("admin", "producer")}
        clients = {name: stack.enter_context(made(bootstrap_servers=bootstrap)) for name, made in opened.items()}
        settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
        consumer = stack.enter_context(Consumer(settings, group_id="shown"))
        pool = stack.enter_context(ThreadPoolExecutor(2))
        more = {
            "itertools": itertools,
            "pool": pool,
            "work": len,
            "numpy": numpy,
            "re": re,
            "prometheus_client": prometheus_client,
        }
        yield {**public_names(), **more, **clients, "consumer": consumer}


def run(code: str, bootstrap: str, namespace: dict[str, Any]) -> None:
    for shown, ending in ENDING:
        code = code.replace(shown, ending)
    exec(compile(code.replace(SHOWN, bootstrap), "example", "exec"), namespace)


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0] + "\n"


def test_reading_runs_as_shown(bootstrap: str, namespace: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    first, columns, workers = blocks(section(SECTIONS[0]))
    run(first, bootstrap, dict(namespace))
    assert "b'/start'" in capsys.readouterr().out

    consumer = namespace["consumer"]
    consumer.assign([("visits", 0)])
    run(columns, bootstrap, dict(namespace))
    assert "visits-0" in capsys.readouterr().out

    consumer.seek_to_beginning()
    run(workers, bootstrap, dict(namespace))
    assert consumer.paused() == frozenset()
    consumer.commit_sync()
    assert consumer.committed([("visits", 0)])[("visits", 0)].offset == 20


def test_groups_run_as_shown(bootstrap: str, namespace: dict[str, Any]) -> None:
    (program,) = blocks(section(SECTIONS[1]))
    consumer = namespace["consumer"]
    *lines, by_pattern = program.rstrip().splitlines()
    run("\n".join(lines), bootstrap, dict(namespace))
    while not consumer.assignment():
        consumer.poll(1_000)
    consumer.unsubscribe()
    settings = {"bootstrap.servers": bootstrap, "group.protocol": "consumer"}
    with Consumer(settings, group_id="by-pattern") as newer:
        run("\n".join([lines[0], by_pattern]), bootstrap, {**namespace, "consumer": newer})
        while not newer.assignment():
            newer.poll(1_000)


def test_metrics_are_read_as_shown(bootstrap: str, namespace: dict[str, Any]) -> None:
    consumer, producer = namespace["consumer"], namespace["producer"]
    consumer.assign([("visits", 0)])
    consumer.seek_to_beginning()
    assert consumer.poll(60_000)
    assert producer.send("visits", b"/start", partition=1).result(timeout=60).offset >= 0
    for program in blocks(section(SECTIONS[2])):
        run(program, bootstrap, dict(namespace))


@pytest.mark.parametrize("name", OF_READERS)
def test_docstrings_run(name: str, bootstrap: str, namespace: dict[str, Any]) -> None:
    # There are records to be read, whatever the group has committed.
    namespace["consumer"].assign([("visits", 0)])
    namespace["consumer"].seek_to_beginning()
    programs = examples(inspect.getdoc(getattr(client, name)))
    assert programs
    for program in programs:
        run(program, bootstrap, dict(namespace))


def test_every_docstring_that_users_see_is_run_by_some_test() -> None:
    """Those of the administrator's are by its own; SendFuture's awaits, as a test of the producer's does."""
    here = Path(__file__).parent
    texts = "".join(path.read_text() for path in here.glob("test_*_examples.py"))
    others = [name for name in client._LATER if name not in {*client.admin.__all__, "SendFuture"}]
    unrun = [
        name
        for name in others
        if name not in texts and any(map(needs_broker, examples_of_prompts_apart(getattr(client, name))))
    ]
    assert unrun == []


def examples_of_prompts_apart(shown: type) -> list[str]:
    """Those with prompts are doctests."""
    return [program for program in examples(inspect.getdoc(shown)) if ">>> " not in program]
