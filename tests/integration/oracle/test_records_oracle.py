"""Our record batches and Kafka's, each read by the other; one JVM for all cases."""

from pathlib import Path

import pytest

from kavka.protocol.records.batch import (
    Codec,
    ControlType,
    Record,
    TimestampType,
    build_batch,
    build_control_batch,
    control_type_of,
    coordinator_epoch_of,
    exchange_head,
    iter_batch_headers,
    iter_records,
    restamped_head,
    verify_crc,
)
from kavka.protocol.records.legacy import build_message_set, to_legacy
from tests.integration.oracle import records_oracle
from tests.integration.oracle.records_oracle import TYPE_NAMES, Answer, Case

pytestmark = pytest.mark.java

CASES = records_oracle.cases()
DOWN = [(case, magic) for case in CASES for magic in (0, 1) if magic < case.magic and case.codec != Codec.ZSTD]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of batches that Kafka wrote: each case, each down-conversion, two markers."""
    folder = tmp_path_factory.mktemp("theirs")
    commands = [case.command(folder / case.name) for case in CASES]
    commands += [
        f"down {folder / case.name} {folder / _down_name(case, magic)} {magic} {_middle(case)}" for case, magic in DOWN
    ]
    commands += [f"marker {folder / kind} 77 1700000000000 4000 3 9 5 {kind}" for kind in ("commit", "abort")]
    records_oracle.ask(commands)
    return folder


@pytest.fixture(scope="module")
def read_by_kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """What Kafka reads from each case that we wrote, by name."""
    folder = tmp_path_factory.mktemp("ours")
    for case in CASES:
        (folder / case.name).write_bytes(_build(case))
    answers = records_oracle.ask(f"read {folder / case.name}" for case in CASES)
    return {case.name: answer for case, answer in zip(CASES, answers, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reads_what_kafka_wrote(theirs: Path, case: Case) -> None:
    assert _read_all((theirs / case.name).read_bytes()) == case.expected()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kafka_reads_what_we_wrote(read_by_kafka: dict[str, Answer], case: Case) -> None:
    answer = read_by_kafka[case.name]

    assert answer.error is None
    assert answer.records == case.expected()
    magic, _, codec, timestamp_type, max_timestamp, *rest = answer.batches[-1]
    assert (int(magic), Codec[codec.upper()]) == (case.magic, case.codec)
    if case.magic > 0:
        assert TYPE_NAMES[timestamp_type] == case.timestamp_type
    if case.magic == 2:
        last_sequence = (case.base_sequence + len(case.records) - 1) % 2**31 if case.base_sequence >= 0 else -1
        assert int(max_timestamp) == max(record.timestamp_ms for record in case.expected())
        assert rest == [
            str(case.producer_id),
            str(case.producer_epoch),
            str(case.base_sequence),
            str(last_sequence),
            str(case.transactional).lower(),
            "false",
            str(case.leader_epoch),
            str(case.delete_horizon_ms),
        ]


@pytest.mark.parametrize("case", [case for case in CASES if case.codec == Codec.NONE], ids=lambda case: case.name)
def test_uncompressed_batches_have_the_same_bytes(theirs: Path, case: Case) -> None:
    assert _build(case) == (theirs / case.name).read_bytes()


def test_lz4_of_magic_0_has_the_traditional_header_checksum(theirs: Path) -> None:
    case = next(case for case in CASES if case.name == "magic0-lz4")
    frame = b"\x04\x22\x4d\x18"
    ours, their = (data[data.index(frame) :][:7] for data in (_build(case), (theirs / case.name).read_bytes()))
    assert ours == their


@pytest.mark.parametrize(("case", "magic"), DOWN, ids=lambda value: getattr(value, "name", value))
def test_converts_down_to_what_kafka_does(theirs: Path, case: Case, magic: int) -> None:
    their = (theirs / _down_name(case, magic)).read_bytes()

    ours = to_legacy((theirs / case.name).read_bytes(), magic, first_offset=_middle(case))

    assert _read_all(ours) == _read_all(their)
    if case.codec == Codec.NONE:
        assert ours == their


@pytest.mark.parametrize("kind", ["commit", "abort"])
def test_end_markers_have_the_same_bytes(theirs: Path, kind: str) -> None:
    their = (theirs / kind).read_bytes()

    ours = build_control_batch(
        ControlType[kind.upper()],
        base_offset=77,
        timestamp_ms=1_700_000_000_000,
        producer_id=4000,
        producer_epoch=3,
        coordinator_epoch=9,
        leader_epoch=5,
    )

    assert ours == their
    (record,) = iter_records(their)
    assert control_type_of(record) == ControlType[kind.upper()]
    assert coordinator_epoch_of(record) == 9


def _build(case: Case) -> bytes:
    if case.magic < 2:
        return _build_legacy(case)
    batch = bytearray(
        build_batch(
            case.records,
            base_offset=case.records[0].offset,
            codec=case.codec,
            producer_id=case.producer_id,
            producer_epoch=case.producer_epoch,
            base_sequence=case.base_sequence,
            transactional=case.transactional,
            leader_epoch=case.leader_epoch,
            delete_horizon_ms=None if case.delete_horizon_ms < 0 else case.delete_horizon_ms,
        )
    )
    if case.timestamp_type == TimestampType.LOG_APPEND:
        exchange_head(batch, restamped_head(batch, TimestampType.LOG_APPEND, case.log_append_time_ms))
    return bytes(batch)


def _build_legacy(case: Case) -> bytes:
    records = case.records
    if case.timestamp_type == TimestampType.LOG_APPEND:
        records = [record._replace(timestamp_ms=case.log_append_time_ms) for record in records]
    return build_message_set(
        records, case.magic, codec=case.codec, timestamp_type=case.timestamp_type, keep_offsets=True
    )


def _read_all(data: bytes | memoryview) -> list[Record]:
    records: list[Record] = []
    for position, header in iter_batch_headers(data):
        verify_crc(data, position, header)
        records += iter_records(data, position)
    return records


def _down_name(case: Case, magic: int) -> str:
    return f"{case.name}-to-{magic}"


def _middle(case: Case) -> int:
    return case.records[len(case.records) // 2].offset
