"""What is left of a log after compaction: the last record of each key, in order, and what else must stay."""

from pathlib import Path

import pytest

from kavka.protocol.records.batch import Record, build_batch, patch_offsets
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.legacy import build_message_set
from kavka.storage.cleaner.rounds import Outcome
from kavka.storage.partition_log import PartitionLog
from kavka.storage.segment import LOG_SUFFIX
from tests.support.compaction import InlineWorker, batches_of, compact, records_of, roll
from tests.support.partition_logs import (
    START_MS,
    Clock,
    append_batch,
    end_transaction,
    open_log,
    read_all,
    spoil,
)

DAY_MS = 86_400_000


def put(log: PartitionLog, *pairs: tuple[str, str | None], **fields: object) -> int:
    """Append a batch of keys and values; its first offset."""
    records = [Record(0, START_MS, key.encode(), None if value is None else value.encode()) for key, value in pairs]
    return append_batch(log, bytearray(build_batch(records, **fields))).first_offset  # type: ignore[arg-type]  # passed on as they came


def left(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in records_of(log)
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_value_of_each_key_stays_at_its_offset(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, ("a", "1"), ("b", "1"), ("a", "2"), codec=codec)
    put(log, ("c", "1"), ("b", "2"), codec=codec)
    roll(log)
    put(log, ("a", "3"))

    ended = compact(log)

    assert ended.outcome is Outcome.CLEANED
    # The active segment isn't looked at: a's second value is the last one below.
    assert left(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "a", "3")]
    assert [header.codec for header, _ in batches_of(log)] == [codec, codec, Codec.NONE]
    assert log.clean_offset == 5
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)


def test_readers_find_their_way_over_gaps(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact", index_interval_bytes=100)
    for number in range(500):
        put(log, (f"k{number % 7}", f"v{number}" + "x" * 50))
    roll(log)
    put(log, ("end", "1"))
    compact(log)

    expected = [*range(493, 500), 500]
    assert [offset for offset, _ in read_all(log)] == expected
    for offset in range(501):
        data = log.read(offset, 1, min_one=True, end_offset=501).read_bytes()
        assert int.from_bytes(data[:8], "big") == min(each for each in expected if each >= offset)
    found = log.offset_for_time(START_MS)
    assert found is not None
    assert found.offset == 493


def test_a_tombstone_stays_for_its_retention_and_takes_its_key_along(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, cleanup_policy="compact", delete_retention_ms=DAY_MS)
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), ("b", "2"))
    roll(log)
    compact(log)
    assert left(log) == [(2, "a", None), (3, "b", "2")]
    [(header, records)] = batches_of(log)
    assert header.has_delete_horizon
    assert header.base_timestamp_ms == clock.ms + DAY_MS
    assert [record.timestamp_ms for record in records] == [START_MS, START_MS]
    assert header.last_offset == 3

    clock.ms += DAY_MS - 1
    again(log)
    assert ("a", None) in [each[1:] for each in left(log)]
    clock.ms += 1
    again(log)
    assert ("a", None) not in [each[1:] for each in left(log)]
    assert (3, "b", "2") in left(log)


def again(log: PartitionLog) -> None:
    """Another round, with something new to make one worthwhile."""
    put(log, ("new", "1"))
    roll(log)
    compact(log)


def test_a_map_that_is_full_ends_the_round_early_and_the_next_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact", segment_bytes=2000)
    for number in range(300):
        put(log, (f"k{number % 100}", f"{number}"))
    roll(log)
    # 1 MiB / 24 bytes a slot: room for 34 keys.
    settings = ("log.cleaner.dedupe.buffer.size=1048577", "log.cleaner.io.buffer.load.factor=0.0008")

    clean_offsets: list[int] = []
    while log.clean_offset != 300:
        ended = compact(log, *settings)
        assert ended.result is not None
        assert ended.result.map_entries <= 34
        clean_offsets.append(log.clean_offset or 0)

    assert len(clean_offsets) >= 9
    assert clean_offsets == sorted(clean_offsets)
    compact(log)
    assert [record.offset for record in records_of(log)] == list(range(200, 300))


def test_segments_are_joined_up_to_the_size_of_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact", segment_bytes=4000)
    for number in range(300):
        put(log, (f"k{number}" if number % 10 == 0 else "same", f"{number}"))
    roll(log)
    before = log.segment_count

    compact(log)
    put(log, ("more", "1"))
    roll(log)
    compact(log)

    assert before >= 6
    assert log.segment_count <= 3
    assert all(segment.size_bytes <= 4000 for segment in log.published[2])
    assert [record.offset for record in records_of(log)] == [*range(0, 300, 10), 299, 300]


def test_a_log_without_changes_keeps_its_files(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, ("a", "1"), ("b", "1"))
    roll(log)
    before = log.published[2]

    compact(log)

    assert log.published[2] == before
    assert log.clean_offset == 2
    assert not list(tmp_path.glob("*.cleaned"))


def test_data_without_key_goes_and_is_counted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_batch(log, bytearray(build_batch([Record(key=None, value=b"v"), Record(key=b"k", value=b"v")])))
    roll(log)

    ended = compact(log)

    assert [record.key for record in records_of(log)] == [b"k"]
    assert ended.result is not None
    assert ended.result.keyless_records == 1


@pytest.mark.parametrize("emptied", [True, False])
def test_an_active_producers_last_batch_tells_its_sequence_even_when_empty(tmp_path: Path, emptied: bool) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, ("a", "1"), ("b", "1"), producer_id=7, producer_epoch=3, base_sequence=0)
    put(log, ("c", "1"), producer_id=7, producer_epoch=3, base_sequence=2)
    put(log, ("a", "2"), ("b", "2"), *([("c", "2")] if emptied else []))
    roll(log)

    compact(log)

    sequences = [(header.base_sequence, header.count) for header, _ in batches_of(log) if header.producer_id == 7]
    assert sequences == [(2, 0 if emptied else 1)]
    for clean in (True, False):
        log.close(clean=clean)
        for snapshot in tmp_path.glob("*.snapshot"):
            snapshot.unlink()
        log = open_log(tmp_path, clean=clean, cleanup_policy="compact")
        entry = log.producers.get(7)
        assert entry is not None
        assert (entry.epoch, entry.last_sequence) == (3, 2)


def test_the_last_batch_of_a_round_tells_where_it_ended(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    append_batch(log, bytearray(build_batch([Record(key=b"a", value=b"1")])))
    put(log, ("b", None))
    roll(log)
    compact(log)
    put(log, ("b", "1"))
    roll(log)

    compact(log)

    assert [(header.base_offset, header.count) for header, _ in batches_of(log)] == [(0, 1), (2, 1)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_old_formats_are_compacted_in_their_format(tmp_path: Path, magic: int, codec: Codec) -> None:
    path = tmp_path / f"{0:020d}.log"
    values = [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", None)]
    messages = [
        Record(number, START_MS if magic else -1, key.encode(), value) for number, (key, value) in enumerate(values)
    ]
    path.write_bytes(
        build_message_set(messages[:2], magic, codec=codec, keep_offsets=True)
        + build_message_set(messages[2:], magic, codec=codec, keep_offsets=True)
    )
    log = open_log(tmp_path, clean=False, cleanup_policy="compact")
    put(log, ("c", "new"))
    roll(log)

    compact(log)

    assert left(log) == [(1, "b", "1"), (2, "a", "2"), (4, "c", "new")]
    headers = [header for header, _ in batches_of(log)]
    assert [header.magic for header in headers] == [magic, magic, 2]
    assert {header.codec for header in headers[:2]} == {codec}


@pytest.mark.parametrize(("position", "reason"), [(60, "CRC"), (72, "CRC"), (80, "offset"), (87, ""), (90, "")])
def test_a_corrupt_segment_ends_the_round_and_stays_as_it_is(tmp_path: Path, position: int, reason: str) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, ("a", "1"), ("b", "2"))
    put(log, ("a", "2"))
    roll(log)
    path = tmp_path / f"{0:020d}{LOG_SUFFIX}"
    spoil(path, position)
    before = path.read_bytes()

    ended = compact(log)

    assert ended.outcome is Outcome.CORRUPT
    assert reason in ended.reason
    assert path.read_bytes() == before
    assert log.clean_offset is None
    assert not list(tmp_path.glob("*.cleaned"))


@pytest.mark.parametrize("aborted", [True, False])
def test_a_transactions_marker_stays_as_long_as_its_data_and_then_for_its_retention(
    tmp_path: Path, aborted: bool
) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, cleanup_policy="compact", delete_retention_ms=DAY_MS)
    put(log, ("a", "0"), ("b", "0"))
    put(log, ("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 7, aborted=aborted)
    put(log, ("b", "1"))
    # Another producer is the last of all, so that the first one's batches aren't kept for its sequence.
    log.producers.remove_expired(clock.ms + 10 * DAY_MS, 1)
    roll(log)

    compact(log)
    assert horizons_of_markers(log) == [False]
    assert [value for _, key, value in left(log) if key == "a"] == ["0" if aborted else "1"]

    put(log, ("a", "2"))
    roll(log)
    compact(log)
    # The committed data went in this very round.
    assert horizons_of_markers(log) == [aborted]
    again(log)
    assert horizons_of_markers(log) == [True]

    clock.ms += DAY_MS
    again(log)
    assert horizons_of_markers(log) == []
    assert [value for _, key, value in left(log) if key == "a"] == ["2"]


def horizons_of_markers(log: PartitionLog) -> list[bool]:
    return [header.has_delete_horizon for header, _ in batches_of(log) if header.is_control]


def test_an_open_transaction_is_not_passed(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log)
    put(log, ("a", "3"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    roll(log)
    put(log, ("a", "4"))
    roll(log)

    compact(log)

    assert left(log) == [(1, "a", "2"), (2, "a", "3"), (3, "a", "4")]
    assert log.clean_offset == 2


def test_log_append_time_is_kept(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, cleanup_policy="compact", message_timestamp_type="LogAppendTime")
    put(log, ("a", "1"), ("b", None), ("c", "1"))
    put(log, ("a", "2"))
    stamped = clock.ms
    clock.ms += 1000
    roll(log)

    compact(log)

    assert {record.timestamp_ms for record in records_of(log)} == {stamped}
    assert {header.max_timestamp_ms for header, _ in batches_of(log)} == {stamped}


def test_a_log_that_has_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log)
    put(log, ("a", "3"))
    worker = InlineWorker(log.files, before_reply=lambda _: log.truncate_to(1))

    ended = compact(log, worker=worker)

    assert ended.outcome is Outcome.PASSED
    assert worker.aborted == [worker.jobs[0].token]
    assert left(log) == [(0, "a", "1")]
    assert log.clean_offset is None
    assert not [path for path in tmp_path.iterdir() if path.suffix in {".cleaned", ".swap"}]


def test_an_offset_that_a_truncation_takes_back_is_dirty_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    for number in range(4):
        put(log, ("a", str(number)))
    roll(log)
    compact(log)
    assert log.clean_offset == 4

    log.truncate_to(2)

    assert log.clean_offset == log.log_end_offset <= 3


def test_compacted_and_deleted_logs_lose_their_old_segments_too(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock=clock, cleanup_policy="compact,delete", retention_ms=DAY_MS)
    put(log, ("a", "1"))
    roll(log)
    put(log, ("a", "2"))
    roll(log)
    compact(log)
    # The first segment is empty now, or gone; it must not keep those behind it from being deleted.
    clock.ms += 2 * DAY_MS
    put(log, ("b", "1"))

    log.delete_old_segments(clock.ms)

    assert left(log) in ([(2, "b", "1")], [])
    assert log.log_start_offset >= 2


def test_markers_of_unknown_kinds_stay(tmp_path: Path) -> None:
    log = open_log(tmp_path, cleanup_policy="compact")
    batch = bytearray(
        build_batch([Record(key=b"\0\0\0\x03", value=b"\0\0")], control=True, producer_id=5, producer_epoch=0)
    )
    patch_offsets(batch, 0, 0, 0)
    log.append_as_follower(batch)
    put(log, ("a", "1"))
    roll(log)
    compact(log)
    again(log)
    assert [header.is_control for header, _ in batches_of(log)][:1] == [True]
