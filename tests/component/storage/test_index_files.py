"""The index files: found is what was put in, whether active, saved, sealed, truncated or loaded again."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kavka.storage.files import Files
from kavka.storage.offset_index import CorruptIndexError, IndexCache, OffsetIndex
from kavka.storage.segment_file import FilePool, SegmentFile
from kavka.storage.time_index import TimeIndex
from tests.support.examples import examples

BASE = 1000
ascending = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000), st.integers(0, 20)), min_size=1, max_size=300)


def _running(steps: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    offset, position, timestamp_ms = BASE, 0, 0
    entries = []
    for more_offsets, more_bytes, more_ms in steps:
        offset, position, timestamp_ms = offset + more_offsets, position + more_bytes, timestamp_ms + more_ms
        entries.append((offset, position, timestamp_ms))
    return entries


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ascending, st.integers(0, 300), st.sampled_from(["active", "sealed", "reloaded"]))
def test_an_offset_is_found_from_the_last_entry_at_or_below(
    tmp_path: Path, steps: list[tuple[int, int, int]], save_after: int, state: str
) -> None:
    entries = _running(steps)
    index = OffsetIndex(str(tmp_path / "x.index"), BASE, Files(), IndexCache())
    index.start_empty()
    for number, (offset, position, _) in enumerate(entries):
        index.append(offset, position)
        if number == save_after:
            index.save()
    if state != "active":
        index.seal()
    if state == "reloaded":
        index = OffsetIndex(index.path, BASE, Files(), IndexCache())
        index.check(entries[-1][1] + 1)

    for offset in range(BASE, entries[-1][0] + 2):
        below = [position for entry_offset, position, _ in entries if entry_offset <= offset]
        assert index.lookup(offset) == (below[-1] if below else 0)
    assert index.last_entry() == entries[-1][:2]


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ascending, st.data())
def test_truncated_indexes_hold_what_lies_below_in_memory_and_file(
    tmp_path: Path, steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    entries = _running(steps)
    offset_index = OffsetIndex(str(tmp_path / "x.index"), BASE, Files(), IndexCache())
    time_index = TimeIndex(str(tmp_path / "x.timeindex"), BASE, Files())
    offset_index.start_empty()
    time_index.start_empty()
    for offset, position, timestamp_ms in entries:
        offset_index.append(offset, position)
        time_index.maybe_append(timestamp_ms, offset)
        if data.draw(st.booleans()):
            offset_index.save()
            time_index.save()
    target = data.draw(st.integers(BASE, entries[-1][0] + 1))

    offset_index.truncate_to(target)
    time_index.truncate_to(target)
    offset_index.seal()
    time_index.seal()

    kept = [entry for entry in entries if entry[0] < target]
    assert offset_index.count() == len(kept)
    timed = {timestamp_ms: offset for offset, _, timestamp_ms in reversed(kept)}
    assert time_index.count() == len(timed)
    for timestamp_ms, offset in timed.items():
        assert time_index.lookup(timestamp_ms) == (timestamp_ms, offset)


@pytest.mark.parametrize(
    "content", [b"1234567", b"\xff" * 8, bytes(16), (5).to_bytes(4, "big") + (999).to_bytes(4, "big")]
)
def test_an_index_that_cannot_belong_to_its_log_is_recognised(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(content)
    with pytest.raises(CorruptIndexError):
        OffsetIndex(str(path), BASE, Files(), IndexCache()).check(999)


def sealed_indexes(directory: Path, cache: IndexCache) -> list[OffsetIndex]:
    """Five, of 320 bytes each."""
    indexes = []
    for number in range(5):
        index = OffsetIndex(str(directory / f"{number}.index"), 0, Files(), cache)
        index.start_empty()
        for entry in range(40):
            index.append(entry + 1, entry + 1)
        index.seal()
        indexes.append(index)
    return indexes


def test_the_cache_of_sealed_indexes_keeps_its_bound(tmp_path: Path) -> None:
    cache = IndexCache(capacity_bytes=800)
    indexes = sealed_indexes(tmp_path, cache)
    for _ in range(3):
        assert [index.lookup(40) for index in indexes] == [40] * 5
        assert sum(index in cache for index in indexes) == 2
    for index in indexes:
        index.forget()
    assert not any(index in cache for index in indexes)


def test_an_index_that_is_used_again_and_again_stays_in_the_cache(tmp_path: Path) -> None:
    cache = IndexCache(capacity_bytes=800)
    often, *others = sealed_indexes(tmp_path, cache)
    often.lookup(1)
    for other in others:
        often.lookup(1)
        other.lookup(1)
        assert often in cache


def test_a_file_that_was_pinned_when_the_pool_let_it_go_comes_back_with_its_last_release(tmp_path: Path) -> None:
    pool = FilePool(Files(), capacity=1)
    first, second = (SegmentFile(str(tmp_path / f"{number}.log"), pool) for number in range(2))
    first.acquire(create=True)
    first.release()
    first.acquire()
    second.acquire(create=True)
    second.release()
    assert (first.fileno() >= 0, second.fileno() >= 0) == (True, True)
    first.release()
    assert (first.fileno() >= 0, second.fileno() >= 0) == (True, False)
    assert pool.idle_count == 1


def test_idle_files_close_beyond_the_pools_capacity_and_pinned_ones_never(tmp_path: Path) -> None:
    pool = FilePool(Files(), capacity=2)
    files = [SegmentFile(str(tmp_path / f"{number}.log"), pool) for number in range(5)]
    pinned = files[0].acquire(create=True)
    for file in files[1:]:
        file.acquire(create=True)
        file.release()

    assert pool.idle_count == 2
    assert [file.fileno() >= 0 for file in files] == [True, False, False, True, True]
    assert files[1].acquire() >= 0
    assert files[0].fileno() == pinned


def test_a_deleted_file_closes_with_its_last_pin(tmp_path: Path) -> None:
    file = SegmentFile(str(tmp_path / "a.log"), FilePool(Files()))
    file.acquire(create=True)
    file.acquire()
    file.retire()
    file.release()
    assert file.fileno() >= 0
    file.release()
    assert file.fileno() < 0
