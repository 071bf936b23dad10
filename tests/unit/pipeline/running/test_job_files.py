"""Job files: what a mistake in one is told by, and what `kavka pipeline check` says of them and their checkpoints."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kavka.cli.main import main
from kavka.pipeline.running import sink as sinks
from kavka.pipeline.running.checking import (
    CHANGED,
    GOES_ON,
    GONE,
    NEEDS_NEW,
    NEW,
    Finding,
    compared,
    declared,
    remember,
)
from kavka.pipeline.running.job_file import JobFileError, read_job
from kavka.pipeline.running.parts import Parts, load_parts
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.runner import How, RefusedError, run_job
from kavka.pipeline.running.stopping import Stopping
from kavka.pipeline.running.tables import Table
from tests.support.json_documents import assert_golden

JOB = """
[job]
name = "visits"
checkpoint = "state"

[source]
bootstrap.servers = "localhost:9092"
subscribe = "page_visits"

[[sinks]]
kind = "archive"
path = "lake"
"""


class NoSink:
    """A sink that was asked for `path` and takes nothing else."""

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self, run: sinks.RunContext) -> None: ...

    def write(self, batch: object, batch_id: int) -> None: ...

    def close(self) -> None: ...


def no_sink(settings: Mapping[str, object]) -> NoSink:
    table = Table(settings)
    made = NoSink(table.text("path"))
    table.number("target_file_bytes", 1)
    table.close()
    return made


@pytest.fixture(autouse=True)
def _archives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kavka.pipeline.running.parts.named", lambda place: no_sink if "archive" in place else sinks.named(place)
    )


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "visits"', "", "job.name: is missing"),
        ('name = "visits"', "name = 7", "job.name: 7 is not a text"),
        (
            'name = "visits"',
            'name = "visits"\nchekpoint = "x"',
            "job.chekpoint: is no setting here; did you mean",
        ),
        ('checkpoint = "state"', "", "job.checkpoint: is missing"),
        (
            'checkpoint = "state"',
            'checkpoint = "s3a://x/y"',
            "job.checkpoint: s3a://x/y: give a folder on this",
        ),
        ("[source]", "[sorce]", "sorce: is no section; did you mean source?"),
        ('bootstrap.servers = "localhost:9092"', "", "source.bootstrap.servers: is missing"),
        (
            "[source]",
            '[source]\nformat = "kafkka"',
            "source.format: 'kafkka' is none of kavka, kafka; did you mean",
        ),
        ('kind = "archive"', 'kind = "archiv"', "sinks[0].kind: 'archiv' is none of"),
        ('path = "lake"', "", "sinks[0].path: is missing"),
        (
            'path = "lake"',
            'path = "lake"\ntarget_file_byte = 1',
            "sinks[0].target_file_byte: is no setting here; did",
        ),
        ('path = "lake"', 'path = "${env:X}/lake"', "sinks[0].path: is a folder's name as it stands"),
        ('path = "lake"', 'path = "x"\nname = "${var:X}"', "sinks[0].name: "),
        ("[source]", '[source]\nclient.id = "${var:X}"', "source.client.id: ${var:X} is no reference"),
        ('path = "lake"', 'path = "lake"\nname = "_kavka"', "sinks[0].name: '_kavka'"),
        ('path = "lake"', 'path = "lake"\nname = "lock"', "sinks[0].name: 'lock'"),
        (
            'path = "lake"',
            'path = "x"\n[[sinks]]\nkind = "archive"\npath = "y"',
            "sinks[1].name: 'archive' is there",
        ),
        ("[[sinks]]", "[sinks]", "sinks: {'kind'"),
        (
            "[source]",
            '[[transforms]]\nfunction = "nowhere:f"\n[source]',
            "transforms[0].function: there is no module",
        ),
        ("[source]", '[[transforms]]\nfunction = "steps:tidi"\n[source]', "has no function tidi; did you mean tidy?"),
        (
            "[source]",
            '[[transforms]]\nfunction = "steps"\n[source]',
            "transforms[0].function: 'steps' is no 'module",
        ),
        ("[source]", "[[transforms]]\n[source]", "transforms[0]: give either function"),
        ("[source]", '[schema]\nformat = "json"\n[source]', "dead_letters: is missing"),
        ("[source]", "[job.every]\n[source]", "job.every: {} is not a text"),
        ("[source]", "[source", "Expected"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(
    old: str, new: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "steps.py").write_text("def tidy(rows):\n    return rows\n")
    file = tmp_path / "visits.toml"
    file.write_text(JOB.replace(old, new))
    assert main(["pipeline", "check", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka pipeline check: {file}: ")
    assert complaint in line


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "check", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err == f"kavka pipeline check: {tmp_path}/none.toml: No such file or directory\n"


DEEP, LONG = b"x = " + b"[" * 20_000, b"x = " + b"9" * 5000


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"[job]\n" * 2, b"x" * 1_048_577, DEEP, LONG, b"job = 1", b"sinks = 1\n[job]\n"]
)
def test_garbage_is_a_complaint(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_bytes(data)
    with pytest.raises(JobFileError, match=r"job\.toml: "):
        read_job(file)


def test_relative_paths_are_from_the_files_folder_on(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    job = read_job(file)
    assert job.checkpoint == tmp_path / "state"
    ((_, made, _),) = load_parts(job).sinks
    assert isinstance(made, NoSink)
    assert made.path == str(tmp_path / "lake")


def test_a_secret_is_not_looked_up_by_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PASSWORD", "squirrel")
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace('"page_visits"', '"page_visits"\nsasl.jaas.config = "x ${env:PASSWORD}"'))
    assert main(["pipeline", "check", str(file)]) == 0
    assert "squirrel" not in "".join(capsys.readouterr())
    assert "squirrel" not in json.dumps(declared(read_job(file)))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("[source]", '[source]\nssl.keystore.password = "hunter2"', "source.ssl.keystore.password"),
        ("[source]", '[source]\nkafka.sasl.jaas.config = "m required password=hunter2;"', "source.kafka.sasl.jaas"),
        (
            "[source]",
            "[source]\nsasl.jaas.config = 'm required username=${env:U} password=\"hunter2\";'",
            "source.sasl.jaas.config",
        ),
        ('path = "lake"', 'path = "lake"\n[sinks.catalog]\ntoken = "hunter2"', "sinks[0].catalog.token"),
        ("[source]", '[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "hunter2"\n[source]', "spark.conf.spark.hadoop"),
    ],
)
def test_a_secret_that_stands_in_the_file_is_refused_and_not_shown(
    old: str, new: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace(old, new))
    assert main(["pipeline", "check", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert key in line
    assert "a secret does not stand in a job file: write ${env:NAME}" in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    "setting",
    [
        'sasl.jaas.config = \'m required username="u" password="${env:P}";\'',
        'sasl.jaas.config = "org.apache.kafka.OAuthBearerLoginModule required;"',
        'sasl.oauthbearer.token.endpoint.url = "https://id:1/token"',
        'ssl.key.password = "${file:/etc/password}"',
    ],
)
def test_references_and_what_is_no_secret_are_taken(setting: str, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace("[source]", f"[source]\n{setting}"))
    load_parts(read_job(file))


def test_what_a_checkpoint_remembers_is_its_owners_alone_to_read(tmp_path: Path) -> None:
    file = ran(tmp_path, JOB)
    places = Places(tmp_path / "state")
    remember(read_job(file), places, "archive")
    assert places.declared.stat().st_mode & 0o777 == 0o600


def ran(folder: Path, text: str) -> Path:
    """A job file whose job has run: its first sink's query has done batch 4."""
    file = folder / "job.toml"
    file.write_text(text)
    job = read_job(file)
    places = Places(folder / "state")
    query = places.query(job.sinks[0].name)
    for name in ("offsets", "commits"):
        (query / name).mkdir(parents=True)
        (query / name / "4").write_text('v1\n{"batchWatermarkMs":0}\n{"page_visits":{"0":17}}')
        (query / name / ".4.crc").write_text("")
    (query / "metadata").write_text('{"id":"5f0c"}')
    places.notes.mkdir(parents=True)
    places.declared.write_text(json.dumps(declared(job)))
    return file


def test_what_goes_on_and_what_needs_a_new_checkpoint_is_told_by_document_and_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ran(tmp_path, JOB)
    assert main(["pipeline", "check", str(file)]) == 0
    assert "from batch 5 on" in capsys.readouterr().out
    file.write_text(JOB.replace('"page_visits"', '"page_visits"\nstartingOffsets = "latest"').replace("lake", "sea"))
    assert main(["pipeline", "check", str(file), "--output", "json"]) == 1
    assert_golden("pipeline-check", capsys.readouterr().out.replace(str(tmp_path), "/jobs"))


@pytest.mark.parametrize(
    ("old", "new", "findings"),
    [
        ("", "", [("sink archive", GOES_ON)]),
        ('"lake"', '"lake"\ntarget_file_bytes = 7', [("sink archive", CHANGED)]),
        ("[source]", '[source]\nformat = "kafka"', [("source", CHANGED), ("sink archive", GOES_ON)]),
        ('"page_visits"', '"page_visits,orders"', [("source", CHANGED), ("sink archive", GOES_ON)]),
        ('kind = "archive"', 'kind = "archive"\nname = "other"', [("sink other", NEW), ("sink archive", GONE)]),
        *(
            ('kind = "archive"', f'kind = "archive"\n{setting}', [("sink archive", CHANGED)])
            for setting in ('compression = "gzip"', "rows_per_file = 10", "keep_hours = 1", 'partition_by = "topic"')
        ),
        ('kind = "archive"', 'kind = "archive"\ntable = "delta"', [("sink archive", NEEDS_NEW)]),
        ('kind = "archive"', 'kind = "topic"\nname = "archive"', [("sink archive", NEEDS_NEW)]),
        (
            "[source]",
            '[[transforms]]\nsql = "SELECT 1"\n[source]',
            [("transforms", CHANGED), ("sink archive", GOES_ON)],
        ),
    ],
)
def test_each_change_of_a_job_is_judged(old: str, new: str, findings: list[tuple[str, str]], tmp_path: Path) -> None:
    file = ran(tmp_path, JOB)
    file.write_text(JOB.replace(old, new, 1))
    assert [(found.part, found.state) for found in compared(read_job(file))] == findings


def test_a_run_refuses_what_needs_a_new_checkpoint_and_starts_nothing(tmp_path: Path) -> None:
    file = ran(tmp_path, JOB)
    file.write_text(JOB.replace('"lake"', '"sea"'))
    told: list[dict[str, object]] = []
    remembered = Places(tmp_path / "state").declared.read_bytes()
    with pytest.raises(RefusedError, match=r"sink archive needs a new checkpoint: path changed: give it another name"):
        run_job(read_job(file), Parts(()), How(None, False, told.append), Stopping())
    assert told == []
    assert Places(tmp_path / "state").declared.read_bytes() == remembered
    assert not Places(tmp_path / "state").status.exists()


def test_a_sink_is_remembered_by_what_its_query_began_with(tmp_path: Path) -> None:
    second = '\n[[sinks]]\nkind = "archive"\nname = "second"\npath = "pond"\n'
    file = ran(tmp_path, JOB + second)
    file.write_text((JOB + second).replace('"lake"', '"sea"').replace('"pond"', '"well"'))
    job = read_job(file)
    remember(job, Places(tmp_path / "state"), "second")
    known = json.loads(Places(tmp_path / "state").declared.read_text())["sinks"]
    assert {name: known[name]["settings"]["path"] for name in known} == {"archive": "lake", "second": "well"}
    assert compared(job)[0].state == NEEDS_NEW


def test_a_sink_that_was_gone_is_known_when_it_comes_back(tmp_path: Path) -> None:
    file = ran(tmp_path, JOB)
    file.write_text(JOB.replace('kind = "archive"', 'kind = "archive"\nname = "other"'))
    remember(read_job(file), Places(tmp_path / "state"), "other")
    assert [found.state for found in compared(read_job(file))] == [NEW, GONE]
    file.write_text(JOB.replace('"lake"', '"sea"'))
    assert compared(read_job(file))[0].state == NEEDS_NEW


def test_a_job_that_never_ran_is_new(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    assert compared(read_job(file)) == [Finding("sink archive", NEW, "begins where the source says")]


@pytest.mark.parametrize("name", ["metadata", "offsets/4"])
@pytest.mark.parametrize("garbage", ["", "v2\n{}\n{}", "v1\n{}\n[1]", "v1\n{}\n{}{", "\x00\xff"])
def test_a_checkpoint_that_cannot_be_read_is_named(
    name: str, garbage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ran(tmp_path, JOB)
    broken = tmp_path / "state" / "archive" / name
    broken.write_text(garbage)
    assert main(["pipeline", "check", str(file)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(broken) in line


CHECKING = """
import sys
from kavka.cli.main import main
from kavka.pipeline.running import parts
parts.named = lambda place: lambda settings: None
main(["--help"])
main(["pipeline", "check", sys.argv[1]])
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_help_and_check_load_no_spark(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(JOB)
    command = [sys.executable, "-c", CHECKING, str(file)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())
    assert {"kavka.pipeline.running.job_file"} <= loaded
    assert {"pyspark", "pandas"} & loaded == set()
