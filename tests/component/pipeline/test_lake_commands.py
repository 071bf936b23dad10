"""The commands that go from a job's lake, or its dead letters, back to topics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.cli.main import main
from kavka.pipeline.jobs.dead_letters import DeadLetter, Retried
from kavka.pipeline.lake.layout import Layout
from kavka.pipeline.lake.manifest import Manifest
from kavka.pipeline.sending.replaying import Replay, Replayed
from kavka.pipeline.sending.target_checks import TargetError
from tests.support.json_documents import assert_golden
from tests.support.lakes import FIRST_DAY_US, written_lake
from tests.support.partition_logs import append, open_log

JOB = """
[job]
name = "visits"
checkpoint = "state"
[source]
bootstrap.servers = "localhost:9092"
sasl.jaas.config = "${env:JAAS}"
subscribe = "page_visits"
[schema]
[[sinks]]
kind = "archive"
path = "lake"
[dead_letters]
topic = "dead"
"""
LETTER = DeadLetter(0, 7, 1_767_225_600_000, "no JSON", "visits", "page_visits", 2, 41, 1, b"k", b"\xff{", ())


class OneTopic:
    """A lake that has rows of one topic."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def next_offsets(self) -> dict[str, dict[int, int]]:
        return {"page_visits": {0: 10, 1: 12}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Replay]:
    """What replays are asked for."""
    found: list[Replay] = []

    def replayed(what: Replay, _told: object) -> Replayed:
        found.append(what)
        if what.target == "narrow":
            raise TargetError("topic 'narrow': it has 1 partition")
        return Replayed(22, {1: 12, 0: 10})

    monkeypatch.setattr("kavka.pipeline.lake.lake.Lake", OneTopic)
    monkeypatch.setattr("kavka.pipeline.sending.replaying.replay", replayed)
    monkeypatch.setattr("kavka.pipeline.sending.replaying.backfill", replayed)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "job.toml"
    made.write_text(JOB)
    return made


def test_a_replay_takes_lake_and_brokers_from_the_job(
    file: Path, asked: list[Replay], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--to-topic", "again", "--from", "1000", "--to", "2000", "--rate", "5", "--output", "json"]
    assert main(["pipeline", "replay", str(file), *flags]) == 0
    assert_golden("pipeline-replay", capsys.readouterr().out)
    (what,) = asked
    assert (what.lake, what.topic, what.target) == (file.parent / "lake", "page_visits", "again")
    assert (what.name, what.from_ms, what.to_ms, what.rows_per_second) == ("visits-replay", 1000, 2000, 5)
    assert (what.from_said, what.to_said) == (None, None)
    assert what.settings == {"bootstrap.servers": "localhost:9092", "sasl.jaas.config": "${env:JAAS}"}


def test_a_time_that_moves_goes_with_how_it_was_said(file: Path, asked: list[Replay]) -> None:
    command = ["pipeline", "replay", str(file), "--to-topic", "again", "--from", "7d", "--to", "2026-01-01"]
    assert main(command) == 0
    assert main([*command[:-2], "--to", "now"]) == 0
    assert [(what.from_said, what.to_said) for what in asked] == [("7d", None), ("7d", "now")]


def test_a_backfill_goes_to_the_topic_itself(file: Path, asked: list[Replay]) -> None:
    assert main(["pipeline", "backfill", str(file)]) == 0
    assert (asked[0].target, asked[0].name) == ("page_visits", "visits-backfill")


def test_what_a_replay_cannot_do_is_a_line(file: Path, asked: list[Replay], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "replay", str(file), "--to-topic", "narrow"]) == 1
    assert capsys.readouterr().err == "kavka pipeline replay: topic 'narrow': it has 1 partition\n"
    assert main(["pipeline", "replay", str(file), "--to-topic", "x", "--topic", "other"]) == 1
    assert "has nothing of topic other; there are page_visits" in capsys.readouterr().err
    assert main(["pipeline", "replay", str(file), "--to-topic", "x", "--sink", "other"]) == 2
    assert "has no archive other; there are archive" in capsys.readouterr().err


def test_a_compaction_is_told_by_document(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pipeline", "compact", str(file), "--output", "json"]
    assert main(command) == 1
    assert "there is no lake" in capsys.readouterr().err
    Manifest(Layout(file.parent / "lake")).create()
    assert main(command) == 0
    assert_golden("pipeline-compact", capsys.readouterr().out.replace(str(file.parent), "/jobs"))


def test_an_audit_is_told_by_document(tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written_lake(file.parent / "lake", [(0, 0, 5), (0, 6, 10)])
    log = open_log(tmp_path / "logs" / "visits-0")
    for offset in range(12):
        append(log, b"%d" % offset, timestamp_ms=FIRST_DAY_US // 1000 + 1000 * offset)
    log.close()
    command = ["pipeline", "audit", str(file), "--log-dir", str(tmp_path / "logs"), "--output", "json"]
    assert main(command) == 1
    assert_golden("pipeline-audit", capsys.readouterr().out.replace(str(file.parent), "/jobs"))


def test_dead_letters_are_shown_with_reason_and_source(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def letters(_settings: object, topic: str) -> Iterator[DeadLetter]:
        assert topic == "dead"
        yield from [LETTER] * 3

    monkeypatch.setattr("kavka.pipeline.jobs.dead_letters.show", letters)
    assert main(["pipeline", "deadletter", "show", str(file), "--limit", "2", "--output", "json"]) == 0
    assert_golden("pipeline-deadletter-show", capsys.readouterr().out)
    assert main(["pipeline", "deadletter", "show", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "no JSON  page_visits-2 at 41" in lines[1]


def test_a_retry_is_told_by_document(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {}

    def retried(_settings: object, _topic: str, **flags: Any) -> Retried:
        given.update(flags)
        return Retried(3, 1)

    monkeypatch.setattr("kavka.pipeline.jobs.dead_letters.retry", retried)
    command = ["pipeline", "deadletter", "retry", str(file), "--reason", "no JSON", "--output", "json"]
    assert main(command) == 0
    assert_golden("pipeline-deadletter-retry", capsys.readouterr().out)
    allows = given.pop("allows")
    assert [topic for topic in ("page_visits", "others", "__consumer_offsets") if allows(topic)] == ["page_visits"]
    assert given == {"reason": "no JSON", "target": None, "most_retries": 3, "marker_topic": "_kavka_pipeline_markers"}


def test_a_job_without_dead_letters_says_so(tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(JOB.replace("[schema]", "").replace('[dead_letters]\ntopic = "dead"', ""))
    assert main(["pipeline", "deadletter", "show", str(file)]) == 2
    assert "dead_letters.topic is missing" in capsys.readouterr().err


def test_a_missing_extra_is_a_line_with_the_command_that_installs_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["pipeline", "deadletter", "show", str(file)]) == 1
    expected = "kavka pipeline deadletter: pyspark is not installed: pip install 'kavka[pipeline]'\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("verb", ["show", "retry"])
def test_dead_letters_name_the_secret_that_is_missing(
    verb: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    file.write_text(JOB.replace('sasl.jaas.config = "${env:JAAS}"', 'client.id = "${env:NOT_THERE}"'))
    assert main(["pipeline", "deadletter", verb, str(file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "${env:NOT_THERE}: there is no variable NOT_THERE" in line
