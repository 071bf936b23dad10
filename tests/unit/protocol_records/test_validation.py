"""Records against what a topic demands."""

from typing import Any

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import Codec, Record, build_batch, iter_records
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.validation import RecordsValidation

MIXED = [Record(timestamp_ms=100, key=b"a"), Record(timestamp_ms=-1, key=None), Record(timestamp_ms=300, key=b"")]


def walked(batch: bytes, base_offset: int = 0, **demands: Any) -> RecordsValidation:
    validation = RecordsValidation(base_offset, **demands)
    for _ in validation.passing(iter_records(batch)):
        pass
    return validation


@pytest.mark.parametrize("codec", Codec)
def test_sound_records_pass_and_tell_the_largest_timestamp(codec: Codec) -> None:
    found = walked(build_batch(MIXED, base_offset=50, codec=codec), 50)
    assert (found.errors, found.max_timestamp_ms) == ([], 300)


def test_records_are_handed_on_as_they_are() -> None:
    records = [record._replace(offset=offset) for offset, record in enumerate(MIXED)]
    assert list(RecordsValidation(0, keys_required=True).passing(records)) == records


def test_null_keys_are_named_by_their_place() -> None:
    found = walked(build_batch(MIXED), keys_required=True)
    assert [(error.batch_index, error.code) for error in found.errors] == [(1, ErrorCode.INVALID_RECORD)]


@pytest.mark.parametrize(
    ("bounds", "refused"), [((100, 300), []), ((101, 300), [0]), ((100, 299), [2]), ((150, 200), [0, 2])]
)
def test_timestamps_lie_within_both_bounds_or_are_absent(bounds: tuple[int, int], refused: list[int]) -> None:
    found = walked(build_batch(MIXED), timestamp_bounds_ms=bounds)
    assert [error.batch_index for error in found.errors] == refused
    assert {error.code for error in found.errors} <= {ErrorCode.INVALID_TIMESTAMP}


def test_offset_deltas_run_without_gaps() -> None:
    gapped = build_batch([Record(offset=0), Record(offset=2)], keep_offsets=True)
    assert [(error.batch_index, error.code) for error in walked(gapped).errors] == [(1, ErrorCode.INVALID_RECORD)]


def test_a_batch_that_does_not_parse_has_no_record_to_blame() -> None:
    batch = build_batch(MIXED)
    with pytest.raises(CorruptRecordsError):
        walked(batch[:57] + b"\0\0\0\x09" + batch[61:])


def test_errors_are_counted_up_to_a_thousand() -> None:
    assert len(walked(build_batch([Record()] * 5000, codec=Codec.GZIP), keys_required=True).errors) == 1000
