"""Records against what a topic demands."""

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.records.batch import Codec, Record, build_batch
from kavka.protocol.records.errors import CorruptRecordsError
from kavka.protocol.records.validation import validate_records

MIXED = [Record(timestamp_ms=100, key=b"a"), Record(timestamp_ms=-1, key=None), Record(timestamp_ms=300, key=b"")]


@pytest.mark.parametrize("codec", Codec)
def test_sound_records_pass_and_tell_the_largest_timestamp(codec: Codec) -> None:
    found = validate_records(b"junk" + build_batch(MIXED, base_offset=50, codec=codec), 4)
    assert (found.errors, found.max_timestamp_ms) == ([], 300)


def test_null_keys_are_named_by_their_place() -> None:
    found = validate_records(build_batch(MIXED), keys_required=True)
    assert [(error.batch_index, error.code) for error in found.errors] == [(1, ErrorCode.INVALID_RECORD)]


@pytest.mark.parametrize(
    ("bounds", "refused"), [((100, 300), []), ((101, 300), [0]), ((100, 299), [2]), ((150, 200), [0, 2])]
)
def test_timestamps_lie_within_both_bounds_or_are_absent(bounds: tuple[int, int], refused: list[int]) -> None:
    found = validate_records(build_batch(MIXED), timestamp_bounds_ms=bounds)
    assert [error.batch_index for error in found.errors] == refused
    assert {error.code for error in found.errors} <= {ErrorCode.INVALID_TIMESTAMP}


def test_offset_deltas_run_without_gaps() -> None:
    gapped = build_batch([Record(offset=0), Record(offset=2)], keep_offsets=True)
    assert [error.batch_index for error in validate_records(gapped).errors] == [1]


def test_a_batch_that_does_not_parse_has_no_record_to_blame() -> None:
    batch = build_batch(MIXED)
    with pytest.raises(CorruptRecordsError):
        validate_records(batch[:57] + b"\0\0\0\x09" + batch[61:])


def test_errors_are_counted_up_to_a_thousand() -> None:
    assert len(validate_records(build_batch([Record()] * 5000, codec=Codec.GZIP), keys_required=True).errors) == 1000
