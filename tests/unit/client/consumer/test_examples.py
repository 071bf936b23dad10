"""The examples in docstrings are run."""

import doctest

from kavka.client.consumer import records


def test_what_docstrings_show_is_what_comes_out() -> None:
    results = doctest.testmod(records)
    assert results.attempted >= 6
    assert results.failed == 0
