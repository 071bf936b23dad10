"""The closing line of several passes is the one that pytest would write for all of them."""

from collections import Counter

import pytest

from tests.run import closing_line, outcomes

REPORT = (
    '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">'
    '<testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1.5"/></testsuites>'
)


def test_a_report_is_counted_in_pytests_words() -> None:
    assert outcomes(REPORT) == Counter(passed=4, failed=2, skipped=3, error=1)


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        (Counter(passed=12, failed=1, skipped=2), "12 passed, 1 failed, 2 skipped in 3.46s"),
        (Counter(passed=12), "12 passed in 3.46s"),
        (Counter(passed=1, error=2), "1 passed, 2 errors in 3.46s"),
        (Counter(failed=1, error=1), "1 failed, 1 error in 3.46s"),
        (Counter(), "no tests ran in 3.46s"),
    ],
)
def test_the_closing_line_names_what_there_was(counts: Counter[str], line: str) -> None:
    assert closing_line(counts, 3.456) == line
