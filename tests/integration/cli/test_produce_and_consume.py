"""Records go in by `kavka produce` and come out by `kavka consume`, as Kafka's own console tools show them."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.consume import commanding
from kavka.cli.perf import consuming
from kavka.client import Admin, Consumer, OffsetAndMetadata, Producer, TopicPartition, TransactionState
from kavka.client.admin import NewTopic
from tests.integration.cli.conftest import Kavka
from tests.support.java_tools import JavaTools
from tests.support.json_documents import document, line_document
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.transactions import settle

WAIT_S = 300.0
TO_THE_END = ("--from-beginning", "--exit-at-end")


@pytest.fixture
def made(broker: RunningServer, topic: str) -> str:
    """A topic of two partitions that clients know of."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
        wait_until(lambda: topic in admin.list_topics(), WAIT_S, "the topic is not there")
    return topic


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    """Makes a file of this text: its name."""

    def write(text: str) -> str:
        path = tmp_path / "input"
        path.write_text(text)
        return str(path)

    return write


def unhurried(monkeypatch: pytest.MonkeyPatch, command: Any, count: int) -> None:
    """Have the time without a record begin when so many have come: a busy machine may be slow with the first ones."""
    begin_ms, left = command._now_ms(), count

    def counted(poll: Callable[..., Any], size: Callable[[Any], int]) -> Callable[..., Any]:
        def polled(*given: Any) -> Any:
            nonlocal left
            found = poll(*given)
            left -= size(found)
            return found

        return polled

    monkeypatch.setattr(command, "_now_ms", lambda: begin_ms if left > 0 else time.time_ns() // 1_000_000)
    monkeypatch.setattr(Consumer, "poll", counted(Consumer.poll, len))
    monkeypatch.setattr(Consumer, "poll_columns", counted(Consumer.poll_columns, lambda found: sum(map(len, found))))


def test_lines_come_back_with_keys_headers_and_nulls(run: Kavka, made: str, written: Callable[[str], str]) -> None:
    lines = "a:1,b:NIL\tk1\tv1\nno separator\na:2\tk2\tNIL\n"
    flags = ("--headers-delimiter", "\\t", "--key-separator", "\\t", "--null-marker", "NIL", "--partition", "1")
    sent = run("produce", made, "--file", written(lines), *flags, "--compression-codec", "lz4")
    # The line that is no record is said, and the others are sent.
    assert sent.code == 1
    assert sent.err.count("\n") == 1
    assert "line 2: no headers delimiter" in sent.err

    shown = run("consume", made, *TO_THE_END, "--format", "%p %o %k %K %v %S %h")
    assert (shown.code, shown.out) == (0, "1 0 k1 2 v1 2 a=1,b=NULL\n1 1 k2 2  -1 a=2\n")
    parts = ("--print-key", "--print-headers", "--print-offset", "--print-partition")
    assert run("consume", made, *TO_THE_END, *parts).out == (
        "Partition:1\tOffset:0\ta:1,b:null\tk1\tv1\nPartition:1\tOffset:1\ta:2\tk2\tnull\n"
    )


def test_what_consume_prints_as_json_is_sent_again_by_produce(
    run: Kavka, made: str, written: Callable[[str], str]
) -> None:
    lines = [
        {"key": "a", "value": {"x": 1}, "headers": {"h": "1"}, "partition": 0, "timestamp": 1_767_250_800_000},
        {"value_base64": "/wA=", "partition": 1},
        {"partition": 7},
    ]
    sent = run("produce", made, "--json", "--file", written("\n".join(map(json.dumps, lines))))
    assert sent.code == 1
    assert f"line 3: topic {made} has no partition 7, it has 2" in sent.err
    first = run("consume", made, *TO_THE_END, "--output", "json").out
    assert {line_document("consume", line)["timestamp_type"] for line in first.splitlines()} == {"CreateTime"}
    assert run("produce", made, "--json", "--file", written(first)).code == 0
    again = run("consume", made, "--offset", "1", "--exit-at-end", "--output", "json").out
    assert sorted(again.replace('"offset":1', '"offset":0').splitlines()) == sorted(first.splitlines())


def test_reading_begins_and_ends_where_it_is_told(
    run: Kavka, made: str, broker: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_ms = time.time_ns() // 1_000_000 - 3_600_000
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send(made, b"%d" % number, partition=0, timestamp_ms=began_ms + 1_000 * number)

    def read(*flags: str) -> str:
        done = run("consume", made, *flags)
        assert (done.code, done.err) == (0, "")
        return done.out.replace("\n", "")

    assert read("--from-beginning", "-c", "3") == "012"
    assert read("--offset", "-2", "-e") == "89"
    assert read("--offset", "4", "--until-offset", "6", "--partition", "0") == "45"
    assert read("--offset", "99", "-e") == ""
    assert read("--from-time", str(began_ms + 3_000), "--until-time", str(began_ms + 6_001)) == "3456"
    assert read("--from-time", str(began_ms + 3_500), "-e", "--partition", "0") == "456789"
    assert read("-e") == ""
    with monkeypatch.context() as patching:
        unhurried(patching, commanding, 10)
        assert read("--from-beginning", "--timeout-ms", "1000") == "0123456789"
    found = run("consume", "--include", f"nothing,{made[:-1]}.", *TO_THE_END)
    assert found.out.replace("\n", "") == "0123456789"
    assert run("consume", made, "--partition", "5", "-e").err.endswith(f"topic {made} has no partition 5\n")
    assert run("consume", f"{made}-not", "-e").code == 1


def test_a_group_goes_on_where_its_last_member_had_shown_it_all(run: Kavka, made: str, broker: RunningServer) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(5):
            producer.send(made, b"%d" % number, partition=0)
    member = ("consume", made, "--group", made, "--from-beginning")
    assert run(*member, "--max-messages", "2").out == "0\n1\n"
    assert run(*member, "--exit-at-end").out == "2\n3\n4\n"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        committed = admin.list_group_offsets({made: None})[made][TopicPartition(made, 0)]
    assert committed is not None
    assert committed.offset == 5
    assert run("consume", made, "--group", made, "--partition", "0").code == 2


def test_a_transaction_counts_whole_or_not_at_all(
    run: Kavka, made: str, broker: RunningServer, written: Callable[[str], str]
) -> None:
    flags = ("--transactional-id", made, "--key-separator", ":")
    failed = run("produce", made, *flags, "--file", written("a:1\nno key\n"))
    assert failed.code == 1
    assert "the transaction was aborted: no record counts" in failed.err
    assert run("produce", made, *flags, "--file", written("b:2\nc:3\n")).code == 0
    settle(broker, made, partitions=2)
    committed = run("consume", made, *TO_THE_END, "--isolation-level", "read_committed").out
    assert sorted(committed.split()) == ["2", "3"]
    assert sorted(run("consume", made, *TO_THE_END).out.split()) == ["1", "2", "3"]
    # A group has seen the markers too: nothing is left to be read.
    run("consume", made, *TO_THE_END, "--group", made, "--isolation-level", "read_committed")
    assert run("consume", made, "--group", made, "--exit-at-end").out == ""

    (listed,) = (
        row
        for row in document("transactions-list", run("transactions", "list", "--output", "json").out)
        if row["transactional_id"] == made
    )
    (told,) = document("transactions-describe", run("transactions", "describe", made, "--output", "json").out)
    assert listed["coordinator"] == told["coordinator_id"]
    words = run("consume", "__transaction_state", *TO_THE_END).out
    assert f"TransactionLog transactional_id={made}: producer_id={told['producer_id']} " in words
    assert "transaction_status=CompleteAbort" in words


def test_internal_topics_are_told_in_words(run: Kavka, made: str, broker: RunningServer) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=made) as consumer:
        consumer.assign([TopicPartition(made, 0)])
        consumer.commit_sync({TopicPartition(made, 0): OffsetAndMetadata(42)})
    words = run("consume", "__consumer_offsets", *TO_THE_END)
    assert words.code == 0
    assert f'OffsetCommit group={made} topic={made} partition=0: offset=42 leader_epoch=-1 metadata=""' in words.out
    assert "not decoded" not in words.out


def is_complete(admin: Admin, transactional_id: str) -> bool:
    """Whether its markers are written, which comes after its end is acknowledged."""
    return admin.describe_transactions([transactional_id])[transactional_id].state is TransactionState.COMPLETE_COMMIT


@pytest.mark.java
@pytest.mark.parametrize("broker", ["kafka-4.3"], indirect=True)
def test_kafkas_own_tools_say_the_same(
    run: Kavka, made: str, broker: RunningServer, tools43: JavaTools, written: Callable[[str], str]
) -> None:
    at = ("--bootstrap-server", broker.bootstrap)
    run("produce", made, "--partition", "0", "--key-separator", ":", "--header", "h=1", "--file", written("a:1\nb:2\n"))
    run("produce", made, "--partition", "1", "--transactional-id", made, "--file", written("3\n"))
    run("consume", made, *TO_THE_END, "--group", made)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        wait_until(lambda: is_complete(admin, made), WAIT_S, "the transaction is not complete")

    properties = ("print.key=true", "print.headers=true", "print.timestamp=true", "print.partition=true")
    flags = [flag for name in (*properties, "print.offset=true") for flag in ("--formatter-property", name)]
    theirs = tools43.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *at,
        "--topic",
        made,
        "--from-beginning",
        "--max-messages",
        "3",
        *flags,
    )
    ours = run("consume", made, *TO_THE_END, *flags).out
    assert sorted(ours.splitlines()) == sorted(line for line in theirs.splitlines() if line.startswith("CreateTime:"))

    for moment in ("latest", "earliest", "max-timestamp", "0"):
        theirs = tools43.run("org.apache.kafka.tools.GetOffsetShell", *at, "--topic", made, "--time", moment)
        assert run("offsets", "get", "--topic", made, "--time", moment).out == theirs

    theirs = tools43.run("org.apache.kafka.tools.TransactionsCommand", *at, "describe", "--transactional-id", made)
    ours = run("transactions", "describe", made).out
    assert ours.splitlines()[1].split()[:6] == theirs.splitlines()[1].split()[:6]
    theirs = tools43.run("org.apache.kafka.tools.TransactionsCommand", *at, "list")
    ours = run("transactions", "list").out
    assert {tuple(row.split()) for row in ours.splitlines()[1:]} == {
        tuple(row.split()) for row in theirs.splitlines()[1:]
    }
    where = ("--topic", made, "--partition", "1")
    theirs = tools43.run("org.apache.kafka.tools.TransactionsCommand", *at, "describe-producers", *where)
    ours = run("transactions", "describe-producers", *where).out
    assert ours.splitlines()[1].replace("-", "").split()[2:7] == theirs.splitlines()[1].replace("-", "").split()[:5]

    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    ours = run("consume", "__consumer_offsets", *TO_THE_END, "--formatter", formatter).out
    (commit,) = {line for line in ours.splitlines() if f'"group":"{made}","topic":"{made}","partition":0' in line}
    theirs = tools43.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *at,
        "--topic",
        "__consumer_offsets",
        "--from-beginning",
        "--timeout-ms",
        "10000",
        "--formatter",
        formatter,
    )
    # Its formatter puts no line ends between them.
    assert commit in theirs


@pytest.mark.java
@pytest.mark.parametrize("broker", ["kafka-4.3"], indirect=True)
def test_records_are_deleted_as_by_kafkas_tool(
    run: Kavka, made: str, broker: RunningServer, tools43: JavaTools, written: Callable[[str], str], tmp_path: Path
) -> None:
    at = ("--bootstrap-server", broker.bootstrap)
    run("produce", made, "--partition", "0", "--file", written("1\n2\n"))
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": made, "partition": 0, "offset": 1}], "version": 1}))
    theirs = tools43.run("org.apache.kafka.tools.DeleteRecordsCommand", *at, "--offset-json-file", file)
    assert f"partition: {made}-0\tlow_watermark: 1" in theirs
    (row,) = document(
        "records-delete", run("records", "delete", "--offset-json-file", str(file), "--output", "json").out
    )
    assert (row["topic"], row["partition"], row["low_watermark"]) == (made, 0, 1)


def test_figures_are_shown_for_people_and_programs(run: Kavka, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load = ("--topic", made, "--num-records", "500")
    sent = run("perf", "produce", *load, "--record-size", "100", "--warmup-records", "100", "--output", "json")
    total, steady = document("perf-produce", sent.out)
    assert (sent.code, total["records"], total["bytes"], steady["records"]) == (0, 500, 50_000, 400)
    assert 0 < total["p50_ms"] <= total["p999_ms"] <= total["max_latency_ms"]
    read = run("perf", "consume", *load)
    head, line = (row.split(", ") for row in read.out.splitlines())
    assert (read.code, len(head), line[2], line[4]) == (0, len(line), "0.0477", "500")
    unhurried(monkeypatch, consuming, 500)
    late = run("perf", "consume", "--topic", made, "--num-records", "501", "--timeout", "1000", "--output", "json")
    assert (late.code, document("perf-consume", late.out)[0]["data_consumed_in_n_msg"]) == (1, 500)
    monkeypatch.undo()
    (row,) = document(
        "perf-e2e",
        run("perf", "e2e", "--topic", made, "--num-records", "3", "--num-headers", "1", "--output", "json").out,
    )
    assert row["records"] == 3
