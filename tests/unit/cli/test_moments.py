"""Moments and durations as people write them."""

import pytest

from kavka.cli.moments import duration_ms, moment_ms, moment_text

NOW_MS = 1_767_250_800_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("0", 0),
        ("1767250800000", 1_767_250_800_000),
        ("now", NOW_MS),
        ("15m", NOW_MS - 900_000),
        ("500ms", NOW_MS - 500),
        ("2w", NOW_MS - 14 * 86_400_000),
        ("PT1H30M", NOW_MS - 5_400_000),
        ("P1DT0.5S", NOW_MS - 86_400_500),
        ("999999999d", 0),
        ("2026-01-01T07:00:00Z", 1_767_250_800_000),
        ("2026-01-01T08:00:00.250+01:00", 1_767_250_800_250),
    ],
)
def test_a_moment_is_read(text: str, expected_ms: int) -> None:
    assert moment_ms(text, NOW_MS) == expected_ms


def test_a_moment_without_a_zone_is_the_computers() -> None:
    from datetime import datetime

    assert moment_ms("2026-01-01", NOW_MS) == int(datetime(2026, 1, 1).timestamp() * 1000)  # noqa: DTZ001  # without a zone on purpose


@pytest.mark.parametrize("text", ["", "soon", "-1", "15x", "P", "PT", "2026-13-01", "1 h", "١٢", "9999999-01-01"])
def test_what_is_no_moment_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="no time"):
        moment_ms(text, NOW_MS)


@pytest.mark.parametrize("text", ["", "5", "m", "PT", "P", "5 m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        duration_ms(text)


def test_moments_are_shown_in_utc_and_never_fail() -> None:
    assert moment_text(1_767_250_800_007) == "2026-01-01T07:00:00.007Z"
    assert moment_text(-1) == "-"
    assert moment_text(-7) == "-7"
    assert moment_text(2**63 - 1) == str(2**63 - 1)
