"""Which segments are compacted into one."""

from kavka.storage.cleaner.grouping import SegmentSizes, group_segments


def sizes(*segments: tuple[int, int], index_bytes: int = 8) -> list[SegmentSizes]:
    """(base offset, size) of each; the last one ends a thousand offsets later."""
    ends = [base for base, _ in segments[1:]] + [segments[-1][0] + 1000]
    return [
        SegmentSizes(base, end, size, index_bytes, index_bytes)
        for (base, size), end in zip(segments, ends, strict=True)
    ]


def grouped(segments: list[SegmentSizes], segment_bytes: int = 100, index_bytes: int = 1000) -> list[list[int]]:
    groups = group_segments(segments, segment_bytes, index_bytes)
    return [[segment.base_offset for segment in group] for group in groups]


def test_neighbours_join_while_they_fit_into_a_segment() -> None:
    assert grouped(sizes((0, 40), (10, 60), (20, 1), (30, 99), (40, 100))) == [[0, 10], [20, 30], [40]]


def test_a_segment_that_is_too_large_stays_alone() -> None:
    assert grouped(sizes((0, 10), (10, 500), (20, 10))) == [[0], [10], [20]]


def test_indexes_must_fit_too() -> None:
    assert grouped(sizes((0, 1), (10, 1), (20, 1)), index_bytes=16) == [[0, 10], [20]]


def test_offsets_of_a_group_stay_within_31_bits_of_its_first() -> None:
    far = 2**31 - 500
    assert grouped(sizes((0, 10), (100, 10), (far, 10))) == [[0, 100], [far]]
    assert grouped(sizes((0, 10), (100, 10), (far - 600, 10))) == [[0, 100, far - 600]]


def test_an_empty_segment_far_away_joins() -> None:
    assert grouped(sizes((0, 0), (2**31, 0), (2**32, 0))) == [[0, 2**31, 2**32]]


def test_nothing_makes_no_group() -> None:
    assert grouped([]) == []
