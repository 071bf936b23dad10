"""`kavka storage dump` and `info`, on a directory that a real Kafka 3.9 wrote, and on broken files."""

import os
import shutil
from pathlib import Path

import pytest

from kavka.cli.main import main
from kavka.protocol.records.batch import Record
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.legacy import build_message_set
from tests.support.kafka_directory import DUMPED, extract_kafka_directory, kafkas_dump

Output = pytest.CaptureFixture[str]
LOG = "00000000000000000000.log"


@pytest.fixture
def kafka_dir(tmp_path: Path) -> Path:
    return extract_kafka_directory(tmp_path / "kafka-logs")


def test_dump_prints_what_kafkas_own_tool_prints(
    kafka_dir: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kafka_dir)
    assert main(["storage", "dump", "--print-data-log", *DUMPED]) == 0
    assert _lines(capsys) == kafkas_dump()


def test_dump_without_records_prints_batches_alone(kafka_dir: Path, capsys: Output) -> None:
    assert main(["storage", "dump", str(kafka_dir / "visits-1" / LOG)]) == 0
    lines = _lines(capsys)
    assert len([line for line in lines if line.startswith("baseOffset: ")]) == 5
    assert not [line for line in lines if line.startswith("|")]


@pytest.mark.parametrize("cut", [1, 60, 77, 78, 79, 200])
def test_dump_counts_what_is_behind_the_last_whole_batch(kafka_dir: Path, capsys: Output, cut: int) -> None:
    path = kafka_dir / "visits-1" / LOG
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    assert main(["storage", "dump", str(path)]) == 0
    ends = [end for end in (174, 251, 329, 404, 482) if end <= len(data) - cut]
    left = len(data) - cut - ends[-1]
    found = [line for line in _lines(capsys) if line.startswith("Found")]
    assert found == ([f"Found {left} invalid bytes at the end of {LOG}"] if left else [])


def test_dump_shows_a_wrong_crc(kafka_dir: Path, capsys: Output) -> None:
    path = kafka_dir / "visits-1" / LOG
    data = bytearray(path.read_bytes())
    data[173] ^= 1
    path.write_bytes(data)
    assert main(["storage", "dump", str(path)]) == 0
    lines = [line for line in _lines(capsys) if line.startswith("baseOffset: ")]
    assert lines[0].endswith("isvalid: false")
    assert lines[1].endswith("isvalid: true")


def test_dump_says_why_records_cannot_be_read(tmp_path: Path, capsys: Output) -> None:
    batch = bytearray(build_batch([Record(0, 1, b"k", b"v")]))
    batch[22] = 7  # a codec that doesn't exist
    (tmp_path / LOG).write_bytes(batch)
    assert main(["storage", "dump", "--print-data-log", str(tmp_path / LOG)]) == 0
    lines = _lines(capsys)
    assert "compresscodec: unknown(7)" in lines[2]
    assert lines[3].startswith("| unreadable: ")


@pytest.mark.parametrize("magic", [0, 1])
def test_dump_reads_the_old_formats(tmp_path: Path, capsys: Output, magic: int) -> None:
    records = [Record(5, 77, b"k", b"v"), Record(6, 78, None, None)]
    (tmp_path / LOG).write_bytes(build_message_set(records, magic, base_offset=5))
    assert main(["storage", "dump", "--print-data-log", str(tmp_path / LOG)]) == 0
    lines = _lines(capsys)
    stamp = "CreateTime: 77" if magic else "NoTimestampType: -1"
    assert lines[2].startswith(f"offset: 5 position: 0 {stamp} size: ")
    assert lines[3] == f"| offset: 5 {stamp} keySize: 1 valueSize: 1 key: k payload: v"
    assert lines[-1].startswith("| offset: 6 ")
    assert lines[-1].endswith("keySize: -1 valueSize: -1")


def test_dump_escapes_what_would_drive_the_terminal(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / LOG).write_bytes(build_batch([Record(0, 1, b"\x1b[2J", b"two\nlines")]))
    assert main(["storage", "dump", "--print-data-log", str(tmp_path / LOG)]) == 0
    assert _lines(capsys)[-1].endswith("key: \\x1b[2J payload: two\\x0alines")


def test_dump_drops_the_zeros_behind_a_preallocated_index(kafka_dir: Path, capsys: Output) -> None:
    path = kafka_dir / "visits-1" / "00000000000000000000.timeindex"
    with path.open("ab") as file:
        file.write(bytes(1200))
    assert main(["storage", "dump", str(path)]) == 0
    assert _lines(capsys)[1:] == ["timestamp: 1795260404755 offset: 10"]


def test_dump_prints_checkpoints_and_metadata(kafka_dir: Path, capsys: Output) -> None:
    paths = [kafka_dir / "cleaner-offset-checkpoint", kafka_dir / "visits-1" / "partition.metadata"]
    assert main(["storage", "dump", *map(str, paths)]) == 0
    assert _lines(capsys) == [
        f"Dumping {paths[0]}",
        "0",
        "1",
        "keyed.table 0 90",
        f"Dumping {paths[1]}",
        "version: 0",
        "topic_id: eCJGIu38RpaXgC4jZdKGbQ",
    ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("00000000000000000001.log", None, "No such file"),
        ("notes.log", b"", "named by its base offset"),
        ("notes.txt", b"", "not a .log"),
        ("00000000000000000001.snapshot", b"torn", "too few"),
        ("00000000000000000001.snapshot", b"\0\1" + bytes(20), "checksum"),
        ("00000000000000000001.log", b"x" * 100, "not a segment"),
        ("00000000000000000001.index", b"\0\0\0\2\0\0\0\1\0\0\0\1\0\0\0\2", "entry 1"),
        ("00000000000000000001.index", b"not an offset index.", "not an offset index"),
        ("00000000000000000001.timeindex", b"\xff" * 24, "not a time index"),
        ("00000000000000000001.txnindex", b"x" * 34, "not a transaction index"),
        ("00000000000000000001.txnindex", b"\0", "1 bytes behind"),
        ("cleaner-offset-checkpoint", b"\xff", "not ASCII text"),
        ("cleaner-offset-checkpoint", b"\0\0\0", "control characters"),
        ("cleaner-offset-checkpoint", b"hello\n", "line 1"),
        ("leader-epoch-checkpoint", b"hello\n", "leader-epoch-checkpoint"),
        ("partition.metadata", b"hello\n", "topic id"),
        ("meta.properties", b"hello\n", "line 1"),
        (".kafka_cleanshutdown", b"hello\n", "Expecting value"),
        ("nowhere.txt", None, "No such file"),
    ],
)
def test_dump_names_a_file_that_it_cannot_read_and_goes_on(
    tmp_path: Path, capsys: Output, name: str, content: bytes | None, reason: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    good = tmp_path / "log-start-offset-checkpoint"
    good.write_text("0\n0\n")
    assert main(["storage", "dump", str(path), str(good)]) == 1
    captured = capsys.readouterr()
    assert f"kavka storage dump: {path}: " in captured.err
    assert reason in captured.err
    assert captured.out.endswith(f"Dumping {good}\n0\n0\n")


def test_dump_names_a_directory_and_a_pipe(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / LOG).mkdir()
    os.mkfifo(tmp_path / "cleaner-offset-checkpoint")
    assert main(["storage", "dump", str(tmp_path / LOG), str(tmp_path / "cleaner-offset-checkpoint")]) == 1
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == ["not a file"] * 2


def test_info_shows_owner_stop_and_topics(kafka_dir: Path, capsys: Output) -> None:
    (kafka_dir / f"visits-3.{'0f6ce1d2' * 4}-delete").mkdir()
    assert main(["storage", "info", "--log-dirs", str(kafka_dir)]) == 0
    lines = _lines(capsys)
    assert lines[0] == str(kafka_dir)
    assert "broker.id=7 cluster.id=kUQyOIRDRHCGZDSoBTOOxA" in lines[1]
    assert lines[2].endswith("clean")
    assert "6 in 3 topics, 1 waiting to be deleted" in lines[3]
    size = sum((kafka_dir / f"visits-{partition}" / LOG).stat().st_size for partition in range(3))
    assert lines[-1].split() == ["visits", "3", "3", f"{size:,}"]


def test_info_names_a_missing_directory_and_shows_the_others(kafka_dir: Path, tmp_path: Path, capsys: Output) -> None:
    assert main(["storage", "info", "--log-dirs", f"{tmp_path / 'none'},{kafka_dir}"]) == 1
    captured = capsys.readouterr()
    assert str(tmp_path / "none") in captured.err
    assert "visits" in captured.out


def test_info_takes_the_directories_from_the_settings(kafka_dir: Path, tmp_path: Path, capsys: Output) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(f"log.dirs={kafka_dir}\n")
    assert main(["storage", "info", str(settings)]) == 0
    assert _lines(capsys)[0] == str(kafka_dir)


def test_info_names_a_wrong_setting(tmp_path: Path, capsys: Output) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text("num.io.threads=none\n")
    assert main(["storage", "info", str(settings)]) == 1
    assert "num.io.threads" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["", " , "])
def test_info_of_no_directory_is_refused(capsys: Output, given: str) -> None:
    assert main(["storage", "info", "--log-dirs", given]) == 1
    assert capsys.readouterr().err == "kavka storage info: --log-dirs names no directory\n"


def test_info_says_why_an_owner_is_unknown(kafka_dir: Path, capsys: Output) -> None:
    shutil.copy(kafka_dir / "cleaner-offset-checkpoint", kafka_dir / "meta.properties")
    assert main(["storage", "info", "--log-dirs", str(kafka_dir)]) == 0
    assert "unknown: " in _lines(capsys)[1]


def _lines(capsys: Output) -> list[str]:
    return capsys.readouterr().out.splitlines()
