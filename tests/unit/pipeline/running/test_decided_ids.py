"""What is decided about ids that a registry does not have holds for all queries, and for good."""

from pathlib import Path

import pytest

from kavka.pipeline.running.decided_ids import DecidedIds, Place
from kavka.pipeline.running.query_files import CheckpointError


def test_rows_are_bad_before_the_furthest_until_the_id_is_known(tmp_path: Path) -> None:
    file = tmp_path / "ids.json"
    decided = DecidedIds(file)
    decided.make_bad({7: [Place("t", 0, 9), Place("t", 1, 4)]})
    decided.make_bad({7: [Place("t", 0, 3), Place("u", 0, 1)]})
    for each in (decided, DecidedIds(file)):
        assert not each.is_known(7)
        assert each.bad_before.ends(7) == {"t": {0: 10, 1: 5}, "u": {0: 2}}
        assert each.bad_before.ends(8) == {}
    decided.make_known([7, 8])
    # Somebody asked before, and heard that there are none: too late.
    decided.make_bad({7: [Place("t", 0, 99)], 8: [Place("t", 0, 99)]})
    for each in (decided, DecidedIds(file)):
        assert each.is_known(7)
        assert each.is_known(8)
        assert each.bad_before.ends(7) == {"t": {0: 10, 1: 5}, "u": {0: 2}}
        assert each.bad_before.ends(8) == {}


def test_nobody_goes_on_by_what_could_not_be_kept(tmp_path: Path) -> None:
    decided = DecidedIds(tmp_path / "there" / "ids.json")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            decided.make_known([7])
    (tmp_path / "there").mkdir()
    decided.make_known([7])
    assert DecidedIds(tmp_path / "there" / "ids.json").is_known(7)


def test_ids_that_somebody_made_up_have_a_bound(tmp_path: Path) -> None:
    decided = DecidedIds(tmp_path / "ids.json")
    decided.make_known([5])
    decided.make_bad({each: [Place("t", 0, each)] for each in range(1000, 6000)})
    bad = decided.bad_before
    assert len(bad.by_id) == 1001
    assert (bad.ends(5), bad.ends(1000), bad.ends(9)) == ({}, {"t": {0: 6000}}, {"t": {0: 6000}})
    decided.make_known([9])
    decided.make_bad({9000: [Place("t", 0, 9000)]})
    assert (decided.bad_before.ends(9), decided.bad_before.ends(5)) == ({"t": {0: 6000}}, {})
    assert (tmp_path / "ids.json").stat().st_size < 100_000


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"known": {"x": {}}, "dead": {}, "others": {}}'])
def test_another_file_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ids.json"
    file.write_text(text)
    with pytest.raises(CheckpointError, match=r"ids\.json: it is not what a run writes there"):
        DecidedIds(file)
