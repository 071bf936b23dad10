"""Names that no two tests share, and that a broker takes."""

import re

import pytest

from kavka.testing.shared import prefix_of


def test_each_test_has_a_prefix_of_its_own_that_can_be_a_topics_name() -> None:
    ids = [f"tests/test_{file}.py::Class::test_it[{row}]" for file in "ab" for row in ("x", "y", "\u00e9 /", "z" * 400)]
    prefixes = list(map(prefix_of, ids))
    assert len(set(prefixes)) == len(ids)
    assert not any(one != other and one.startswith(other) for one in prefixes for other in prefixes)
    for prefix in prefixes:
        assert re.fullmatch(r"[a-zA-Z0-9._-]{1,120}", prefix)


@pytest.mark.parametrize("node_id", ["", "::", "x::[]"])
def test_a_test_without_a_name_that_is_any_has_one_too(node_id: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]*-[0-9a-f]{8}\.", prefix_of(node_id))
