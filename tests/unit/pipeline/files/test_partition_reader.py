"""A partition read from its files: every record of the range once, whatever a broker does to the files meanwhile."""

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.pipeline.arrow.decoding import CorruptInputError
from kavka.pipeline.files.bounds import bounds
from kavka.pipeline.files.errors import LogEndsError, OffsetsGoneError, PartitionMissingError, TopicChangedError
from kavka.pipeline.files.folders import partitions
from kavka.pipeline.files.isolation import READ_COMMITTED, READ_UNCOMMITTED
from kavka.pipeline.files.partition_reader import read
from kavka.protocol.records.batch import build_batch, iter_batch_headers, iter_records
from kavka.protocol.records.compression import Codec
from kavka.storage.offset_checkpoint import encode_offsets
from kavka.storage.partition_log import PartitionLog
from tests.support.kafka_directory import extract_kafka_directory
from tests.support.partition_logs import append, end_transaction, open_files_in, open_log, spoil

Value = tuple[int, bytes | None]


def values_of(batches: Iterator[Any]) -> list[Value]:
    return [(row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()]


def stream(directory: Path, start: int, end: int, isolation: str = READ_UNCOMMITTED) -> Iterator[Any]:
    return read([str(directory)], "visits", 0, start, end, isolation, ["offset", "value"])


def values(directory: Path, start: int, end: int, isolation: str = READ_UNCOMMITTED) -> list[Value]:
    return values_of(stream(directory, start, end, isolation))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "visits-0"


@pytest.fixture
def log(folder: Path) -> Iterator[PartitionLog]:
    """Each segment has three batches of two records; the last one has just one."""
    log = open_log(folder, segment_bytes=300, index_interval_bytes=1, topic_id=bytes(range(16)))
    for number in range(10):
        append(log, b"%d" % (2 * number), b"%d" % (2 * number + 1))
    assert len(segment_files(folder)) > 2
    yield log
    log.close()


def segment_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def expected(start: int, end: int) -> list[Value]:
    return [(number, b"%d" % number) for number in range(start, end)]


def test_every_range_has_its_records(log: PartitionLog, tmp_path: Path) -> None:
    for start, end in itertools.combinations_with_replacement(range(21), 2):
        assert values(tmp_path, start, end) == expected(start, end)


def test_indexes_that_lie_cost_time_and_no_records(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    log.flush()
    for index in folder.glob("*.index"):
        index.write_bytes(os.urandom(8) + bytes((0, 0, 0, 1, 0, 0, 0, 30)) + bytes(64))
    assert [values(tmp_path, start, 20) for start in range(20)] == [expected(start, 20) for start in range(20)]


def test_a_batch_larger_than_a_piece_is_read(tmp_path: Path, folder: Path) -> None:
    log = open_log(folder, max_message_bytes=1 << 24)
    large = os.urandom(6 << 20)
    append(log, b"before")
    append(log, large)
    append(log, b"behind")
    assert values(tmp_path, 0, 3) == [(0, b"before"), (1, large), (2, b"behind")]
    log.close()


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_compressed_batches_are_unpacked(tmp_path: Path, folder: Path, codec: Codec) -> None:
    log = open_log(folder)
    append(log, b"0", b"1", codec=codec)
    append(log, b"2")
    assert values(tmp_path, 1, 3) == expected(1, 3)
    log.close()


def test_room_that_kafka_keeps_behind_the_log_is_no_corruption(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    with segment_files(folder)[-1].open("ab") as file:
        file.write(bytes(5000))
    assert values(tmp_path, 0, 20) == expected(0, 20)
    assert bounds([str(tmp_path)], "visits", 0, READ_UNCOMMITTED) == range(20)
    with pytest.raises(LogEndsError, match=r"ends with offset 20 .*before 21"):
        values(tmp_path, 0, 21)


def test_a_corrupt_segment_names_itself_and_the_position(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    path = segment_files(folder)[1]
    second = [position for position, _ in iter_batch_headers(path.read_bytes())][1]
    spoil(path, second + 61)
    first_offset = int(path.stem)
    with pytest.raises(CorruptInputError, match=rf"{path} is corrupt at position {second}: "):
        values(tmp_path, 0, 20)
    assert values(tmp_path, 0, first_offset + 2) == expected(0, first_offset + 2)
    assert values(tmp_path, first_offset + 4, 20) == expected(first_offset + 4, 20)


def test_a_sealed_segment_that_ends_in_a_batch_is_corrupt(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    path = segment_files(folder)[0]
    last = [position for position, _ in iter_batch_headers(path.read_bytes())][-1]
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(CorruptInputError, match=rf"{path} is corrupt at position {last}: it ends in a batch"):
        values(tmp_path, 0, 20)


def test_files_that_end_before_the_range_are_no_answer(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    path = segment_files(folder)[-1]
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(LogEndsError, match=r"with offset 18 at position \d+, with \d+ bytes that are no whole"):
        values(tmp_path, 0, 20)


# While a broker works ------------------------------------------------------------------------------------------------


def replace_all_but_last(folder: Path, kept: set[int]) -> tuple[Path, Path]:
    """What a cleaner makes of the sealed segments: one, with these records; (its name on the way, and then)."""
    *sealed, _ = segment_files(folder)
    cleaned = bytearray()
    for path in sealed:
        data = path.read_bytes()
        for position, header in iter_batch_headers(data):
            records = [record for record in iter_records(data, position) if record.offset in kept]
            if records:
                piece = bytearray(build_batch([record._replace(offset=0) for record in records]))
                # Offsets keep their gaps: deltas of one byte each lie behind length, attributes and time.
                left = records[0].offset - header.base_offset
                assert len(records) == 2 or left in (0, 1)
                cleaned += (header.base_offset + left).to_bytes(8, "big") + piece[8:]
    swap = sealed[0].with_suffix(".log.swap")
    swap.write_bytes(cleaned)
    return swap, sealed[0]


@pytest.mark.parametrize("is_half_done", [True, False])
def test_segments_replaced_under_the_reader_are_found_again_by_offset(
    log: PartitionLog, folder: Path, tmp_path: Path, is_half_done: bool
) -> None:
    reading = stream(tmp_path, 0, 20)
    found = values_of(iter([next(reading)]))
    read_to = found[-1][0]
    kept = set(range(20)) - {read_to + 1, read_to + 4}
    swap, name = replace_all_but_last(folder, kept)
    for path in segment_files(folder)[:-1]:
        path.rename(path.with_suffix(".log.deleted"))
    if not is_half_done:
        swap.rename(name)
    found += values_of(reading)
    assert found == [(offset, b"%d" % offset) for offset in range(20) if offset <= read_to or offset in kept]


def test_a_range_whose_last_records_were_compacted_away_ends_where_the_log_goes_on(
    log: PartitionLog, folder: Path, tmp_path: Path
) -> None:
    end = int(segment_files(folder)[-1].stem)
    swap, name = replace_all_but_last(folder, {0, 1, 2, 3})
    for path in segment_files(folder)[:-1]:
        path.unlink()
    swap.rename(name)
    assert values(tmp_path, 0, end) == expected(0, 4)
    assert values(tmp_path, 5, end) == []
    assert values(tmp_path, 2, end + 1) == [*expected(2, 4), (end, b"%d" % end)]


def test_records_that_retention_took_meanwhile_are_told_by_offset(
    log: PartitionLog, folder: Path, tmp_path: Path
) -> None:
    reading = stream(tmp_path, 0, 20)
    found = values_of(iter([next(reading)]))
    paths = segment_files(folder)
    for path in paths[:2]:
        path.unlink()
    with pytest.raises(OffsetsGoneError) as failure:
        values_of(reading)
    assert (failure.value.offset, failure.value.first_offset) == (int(paths[1].stem), int(paths[2].stem))
    assert found[-1][0] == failure.value.offset - 1
    with pytest.raises(OffsetsGoneError, match="has no offset 0 any more: it begins with"):
        values(tmp_path, 0, 20)


def test_a_segment_that_retention_takes_while_it_is_read_is_read_to_its_end(
    log: PartitionLog, folder: Path, tmp_path: Path
) -> None:
    first, second, *_ = segment_files(folder)
    reading = stream(tmp_path, 0, int(second.stem))
    next(reading)
    first.unlink()
    assert values_of(reading) == []


def test_a_topic_made_anew_is_another_one(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    kept = open_files_in(folder)
    reading = stream(tmp_path, 0, 20)
    next(reading)
    metadata = folder / "partition.metadata"
    assert metadata.exists()
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    with pytest.raises(TopicChangedError):
        values_of(reading)
    assert sorted(open_files_in(folder)) == sorted(kept)


def test_a_log_that_moves_to_another_directory_is_found_there(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    reading = read([str(tmp_path), str(other)], "visits", 0, 0, 20, READ_UNCOMMITTED, ["offset", "value"])
    found = values_of(iter([next(reading)]))
    shutil.move(folder, other / folder.name)
    assert found + values_of(reading) == expected(0, 20)
    shutil.move(other / folder.name, folder)


def test_a_partition_that_no_directory_has_says_so(tmp_path: Path) -> None:
    (tmp_path / "visits-0").mkdir()
    with pytest.raises(PartitionMissingError, match="every machine that reads must see that path"):
        values(tmp_path, 0, 1)
    with pytest.raises(ValueError, match="isolation"):
        values(tmp_path, 0, 1, "serializable")


# Transactions --------------------------------------------------------------------------------------------------------


def test_outcomes_that_cannot_be_read_leave_nothing_open(log: PartitionLog, folder: Path, tmp_path: Path) -> None:
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    kept = open_files_in(folder)
    # All segments are looked through, and the last one cannot be opened.
    last = segment_files(folder)[-1]
    last.rename(tmp_path / "aside")
    last.symlink_to(last)
    with pytest.raises(OSError, match="symbolic links"):
        values(tmp_path, 0, 20, READ_COMMITTED)
    assert len(open_files_in(folder)) == len(kept) - 1
    last.unlink()
    (tmp_path / "aside").rename(last)


def write(log: PartitionLog, value: bytes, producer_id: int, sequence: int) -> None:
    append(log, value, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_aborted_records_are_left_out_wherever_the_marker_lies(tmp_path: Path, folder: Path) -> None:
    log = open_log(folder, segment_bytes=300)
    write(log, b"aborted", 1, 0)
    write(log, b"committed", 2, 0)
    append(log, b"no transaction")
    end_transaction(log, 1, aborted=True)
    write(log, b"aborted far behind", 2, 1)
    # That record's first transaction was its producer's second: it is aborted with what came before.
    end_transaction(log, 2, aborted=True)
    write(log, b"committed later", 1, 1)
    for number in range(9):
        append(log, b"%d" % number)
    write(log, b"aborted over segments", 2, 2)
    for number in range(9):
        append(log, b"%d" % number)
    end_transaction(log, 1, aborted=False)
    # The broker has not written of this one to the index yet.
    end_transaction(log, 2, aborted=True)
    end = log.log_end_offset
    every = [value for _, value in values(tmp_path, 0, end)]
    committed = [value for _, value in values(tmp_path, 0, end, READ_COMMITTED)]
    plain = [b"%d" % number for number in range(9)]
    assert committed == [b"no transaction", b"committed later", *plain, *plain]
    assert len(every) == len(committed) + 4
    for start in range(end):
        for stop in (start + 1, start + 5, end):
            inside = [each for each in values(tmp_path, 0, end, READ_COMMITTED) if start <= each[0] < stop]
            assert values(tmp_path, start, min(stop, end), READ_COMMITTED) == inside
    log.close()
    assert [value for _, value in values(tmp_path, 0, end, READ_COMMITTED)] == committed
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    assert [value for _, value in values(tmp_path, 0, end, READ_COMMITTED)] == committed


@pytest.mark.parametrize("is_sealed", [False, True])
def test_files_that_end_before_a_transaction_do_not_pass_its_records_for_committed(
    tmp_path: Path, folder: Path, is_sealed: bool
) -> None:
    log = open_log(folder, segment_bytes=200 if is_sealed else 1 << 20)
    append(log, b"plain")
    write(log, b"who knows", 7, 0)
    write(log, b"open", 8, 0)
    log.flush()
    assert len(segment_files(folder)) == 1 + is_sealed
    behind = tmp_path / "behind"
    shutil.copytree(folder, behind / folder.name)
    end_transaction(log, 7, aborted=True)
    log.close()

    # The last stable offset is 2, where the second transaction began.
    assert values(tmp_path, 0, 2, READ_COMMITTED) == [(0, b"plain")]
    with pytest.raises(LogEndsError, match=r"ends with offset 3, before the transaction .* producer 7 began at 1:"):
        values(behind, 0, 2, READ_COMMITTED)
    assert bounds([str(behind)], "visits", 0, READ_COMMITTED) == range(1)
    assert values(behind, 0, 1, READ_COMMITTED) == [(0, b"plain")]


def test_without_a_broker_the_end_is_before_the_first_open_transaction(tmp_path: Path, folder: Path) -> None:
    log = open_log(folder, segment_bytes=300)
    directories = [str(tmp_path)]
    for number in range(9):
        append(log, b"%d" % number)
    write(log, b"open", 1, 0)
    write(log, b"also open", 2, 0)
    end_transaction(log, 1, aborted=False)
    for number in range(9):
        append(log, b"%d" % number)
    for _ in range(2):
        assert bounds(directories, "visits", 0, READ_UNCOMMITTED) == range(21)
        assert bounds(directories, "visits", 0, READ_COMMITTED) == range(10)
        log.close()
    log = open_log(folder, segment_bytes=300)
    end_transaction(log, 2, aborted=True)
    assert bounds(directories, "visits", 0, READ_COMMITTED) == range(22)
    log.close()


def test_without_a_broker_the_bounds_are_what_it_wrote_last(log: PartitionLog, tmp_path: Path) -> None:
    (tmp_path / "replication-offset-checkpoint").write_bytes(encode_offsets({("visits", 0): 15}))
    (tmp_path / "log-start-offset-checkpoint").write_bytes(encode_offsets({("visits", 0): 4}))
    assert bounds([str(tmp_path)], "visits", 0, READ_COMMITTED) == range(4, 15)
    (tmp_path / "replication-offset-checkpoint").write_text("nonsense")
    assert bounds([str(tmp_path)], "visits", 0, READ_COMMITTED) == range(4, 20)


# Directories of Apache Kafka -----------------------------------------------------------------------------------------


def test_a_directory_of_apache_kafka_reads_as_its_batches_say(tmp_path: Path) -> None:
    directory = extract_kafka_directory(tmp_path / "logs")
    found = {}
    for topic, partition in partitions([str(directory)]):
        limits = bounds([str(directory)], topic, partition, READ_UNCOMMITTED)
        reading = read(
            [str(directory)], topic, partition, limits.start, limits.stop, READ_UNCOMMITTED, ["offset", "value"]
        )
        read_here = values_of(reading)
        alone: list[Value] = []
        for path in segment_files(directory / f"{topic}-{partition}"):
            data = path.read_bytes()
            for position, header in iter_batch_headers(data):
                if not header.is_control:
                    alone += [(record.offset, record.value) for record in iter_records(data, position)]
        assert read_here == alone
        found[topic, partition] = len(read_here)
    assert {("visits", 0), ("visits", 1), ("visits", 2), ("keyed.table", 0)} <= found.keys()
    assert all(count for (topic, _), count in found.items() if topic != "__transaction_state")


def test_aborted_records_in_a_directory_of_apache_kafka_are_left_out(tmp_path: Path) -> None:
    directory = extract_kafka_directory(tmp_path / "logs")
    limits = bounds([str(directory)], "visits", 1, READ_COMMITTED)
    both = [
        values_of(read([str(directory)], "visits", 1, limits.start, limits.stop, level, ["offset", "value"]))
        for level in (READ_UNCOMMITTED, READ_COMMITTED)
    ]
    aborted = [value for value in both[0] if value not in both[1]]
    assert aborted
    assert len(both[1]) == len(both[0]) - len(aborted)
