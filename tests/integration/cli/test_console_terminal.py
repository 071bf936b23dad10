"""`kavka produce` and `kavka consume` on a terminal: progress, control characters, Ctrl-C, a reader that leaves."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kavka.client import Admin, Consumer, Producer, TopicPartition
from kavka.client.admin import NewTopic
from tests.support.kavka_process import KAVKA, KavkaProcess
from tests.support.processes import wait_until
from tests.support.terminal import CTRL_C, Terminal

WAIT_S = 300.0


@pytest.fixture
def made(kavka: KavkaProcess, topic: str) -> str:
    """A topic of one partition."""
    with Admin(bootstrap_servers=kavka.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    return topic


def command(kavka: KavkaProcess, *words: str) -> Sequence[str]:
    return [str(KAVKA), *words, "--bootstrap-server", kavka.bootstrap]


def values(kavka: KavkaProcess, topic: str, isolation_level: str = "read_committed") -> list[bytes]:
    with Consumer(bootstrap_servers=kavka.bootstrap, isolation_level=isolation_level) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning()
        found: list[bytes] = []
        while consumer.position(partition) < consumer.end_offsets([partition])[partition]:
            found += [record.value for record in consumer.poll(100)]
        return found


def test_ctrl_c_ends_reading_and_no_record_drives_the_terminal(kavka: KavkaProcess, made: str) -> None:
    with Producer(bootstrap_servers=kavka.bootstrap) as producer:
        producer.send(made, b"\x1b]0;owned\x07 first")
    with Terminal(command(kavka, "consume", made, "--from-beginning")) as terminal:
        terminal.wait_for(r"\x1b]0;owned\x07 first", WAIT_S)
        terminal.press(CTRL_C)
        assert terminal.wait(WAIT_S) == 130
        assert "\x1b]0" not in terminal.shown
        assert "Traceback" not in terminal.shown


def test_what_was_typed_before_ctrl_c_is_delivered(kavka: KavkaProcess, made: str) -> None:
    with Terminal(command(kavka, "produce", made, "--timeout", "60000")) as terminal:
        terminal.wait_for(">", WAIT_S)
        terminal.press(b"one\ntwo\n")
        # A sign for each line that is expected: the third one says that both were read.
        wait_until(lambda: terminal.shows(">", 3), WAIT_S, "no third line is asked for")
        terminal.press(CTRL_C)
        assert terminal.wait(WAIT_S) == 130
        assert "Traceback" not in terminal.shown
    assert values(kavka, made) == [b"one", b"two"]


def test_ctrl_c_aborts_a_transaction(kavka: KavkaProcess, made: str) -> None:
    with Terminal(command(kavka, "produce", made, "--transactional-id", made, "--sync")) as terminal:
        terminal.wait_for(">", WAIT_S)
        terminal.press(b"one\n")
        wait_until(lambda: terminal.shows(">", 2), WAIT_S, "no second line is asked for")
        terminal.press(CTRL_C)
        assert terminal.wait(WAIT_S) == 130
    assert values(kavka, made) == []
    assert values(kavka, made, "read_uncommitted") == [b"one"]
    with Admin(bootstrap_servers=kavka.bootstrap) as admin:
        # By the command, not by its time being over.
        assert admin.describe_transactions([made])[made].state.value in ("PrepareAbort", "CompleteAbort")


def test_progress_is_shown_and_gone_when_all_is_sent(kavka: KavkaProcess, made: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("".join(f"{number}\n" for number in range(20_000)))
    with Terminal(command(kavka, "produce", made, "--file", str(file))) as terminal:
        terminal.wait_for(f"sending to {made}", WAIT_S)
        assert terminal.wait(WAIT_S) == 0
    assert len(values(kavka, made)) == 20_000


def test_progress_of_reading_is_shown_where_the_records_go_elsewhere(
    kavka: KavkaProcess, made: str, tmp_path: Path
) -> None:
    with Producer(bootstrap_servers=kavka.bootstrap) as producer:
        producer.send_many(made, [b"12345"] * 2_000)
    file = tmp_path / "records"
    words = command(kavka, "consume", made, "--from-beginning", "--max-messages", "2001")
    with Terminal(["/bin/sh", "-c", f"exec {shlex.join(words)} > {shlex.quote(str(file))}"]) as terminal:
        # The note of what has come, beside a bar: one record is still to come.
        terminal.wait_for(f"reading {made}", WAIT_S)
        terminal.wait_for("2,000 records, 0.0 MB", WAIT_S)
        with Producer(bootstrap_servers=kavka.bootstrap) as producer:
            producer.send(made, b"last")
        assert terminal.wait(WAIT_S) == 0
        assert "Processed a total of 2001 messages" in terminal.shown
        assert "12345" not in terminal.shown
    assert file.read_bytes() == b"12345\n" * 2_000 + b"last\n"


def test_a_reader_that_leaves_ends_reading_quietly(kavka: KavkaProcess, made: str) -> None:
    with Producer(bootstrap_servers=kavka.bootstrap) as producer:
        producer.send_many(made, [b"x" * 1_000] * 5_000)
    words = command(kavka, "consume", made, "--from-beginning")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"x" * 1_000 + b"\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(WAIT_S) == 141
