"""`kavka perf` tells what Kafka's performance tools tell of the same load: the same columns, records and bytes."""

import re

import pytest

from kavka.cli.main import main
from kavka.client import Admin, TopicPartition
from kavka.client.admin import NewTopic, OffsetSpec
from tests.support.java_tools import JavaTools
from tests.support.kavka_process import KavkaProcess

pytestmark = pytest.mark.java

RECORDS, SIZE = 2_000, 100
NUMBER = re.compile(r"\d+(\.\d+)?")
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.fixture
def made(kavka: KavkaProcess, topic: str) -> str:
    with Admin(bootstrap_servers=kavka.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    return topic


def end_of(kavka: KavkaProcess, topic: str) -> int:
    place = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=kavka.bootstrap) as admin:
        return admin.list_offsets({place: OffsetSpec.LATEST})[place].offset


def test_what_was_produced_and_consumed_is_told_in_the_same_words(
    kavka: KavkaProcess, made: str, tools43: JavaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", kavka.bootstrap, "--topic", made]
    load = ["--num-records", str(RECORDS), "--record-size", str(SIZE), "--throughput", "-1"]
    theirs = tools43.run("org.apache.kafka.tools.ProducerPerformance", *where, *load)
    assert end_of(kavka, made) == RECORDS
    assert main(["perf", "produce", *where, *load]) == 0
    assert end_of(kavka, made) == 2 * RECORDS
    told, shown = (_last(text, "records sent") for text in (theirs, capsys.readouterr().out))
    # Words and places of the numbers are the same; of the numbers the first.
    assert NUMBER.sub("N", shown) == NUMBER.sub("N", told)
    assert shown.split()[0] == told.split()[0] == str(RECORDS)

    wanted = ["--num-records", str(2 * RECORDS)]
    theirs = tools43.run("org.apache.kafka.tools.ConsumerPerformance", *where, *wanted, "--timeout", "60000")
    assert main(["perf", "consume", *where, *wanted, "--timeout", "60000"]) == 0
    tables = []
    for text in (theirs, capsys.readouterr().out):
        head = _last(text, "start.time").split(", ")
        row = re.search(rf"^{MOMENT}, {MOMENT}, .*$", text, re.MULTILINE)
        assert row is not None, text
        tables.append(dict(zip(head, row[0].split(", "), strict=True)))
    told_of, shown_of = tables
    assert list(shown_of) == list(told_of)
    for name in ("data.consumed.in.MB", "data.consumed.in.nMsg"):
        assert shown_of[name] == told_of[name]
    assert shown_of["data.consumed.in.nMsg"] == str(2 * RECORDS)


def _last(text: str, words: str) -> str:
    return [line for line in text.splitlines() if words in line][-1]
