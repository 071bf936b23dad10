"""Where reading begins, which partitions and which offsets are meant, in a user's words."""

import pytest

from kavka.cli.consume.places import EARLIEST, LATEST, Place, partitions_of, place_of
from kavka.cli.offsets.partition_choice import chosen
from kavka.cli.offsets.specs import spec_of
from kavka.cli.records.offset_file import parsed_offsets

NOW_MS = 1_767_250_800_000
PARTITIONS = [("visits", 0), ("visits", 1), ("visits", 2), ("orders-a", 0), ("orders-b", 1), ("x.y", 5)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", Place(name=EARLIEST)),
        ("beginning", Place(name=EARLIEST)),
        ("latest", Place(name=LATEST)),
        ("end", Place(name=LATEST)),
        ("0", Place(offset=0)),
        ("42", Place(offset=42)),
        ("-10", Place(before_end=10)),
    ],
)
def test_a_place_is_a_name_an_offset_or_so_many_before_the_end(text: str, place: Place) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize("text", ["", "-", "--1", "1.5", "start", "9223372036854775808", "٣"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no offset"):
        place_of(text)


def test_partitions_are_numbers_lists_and_ranges() -> None:
    assert partitions_of("3") == [3]
    assert partitions_of("5,0-2,1") == [0, 1, 2, 5]


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "2-1", "0-999999999", "1,,2", "2147483648"])
def test_what_are_no_partitions_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no list of partitions"):
        partitions_of(text)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("visits", [0, 1, 2]),
        ("visits:1", [1]),
        ("visits:0-2", [0, 1]),
        ("visits:1-", [1, 2]),
        ("visits:-1", [0]),
        ("visits:,orders-a", [0, 1, 2, 3]),
        (":0", [0, 3]),
        ("orders-.*:0-9", [3, 4]),
        ("x.y", [5]),
        ("order", []),
    ],
)
def test_rules_mean_what_they_mean_to_kafkas_tool(rules: str, expected: list[int]) -> None:
    choice = chosen(rules, None, None)
    assert [index for index, each in enumerate(PARTITIONS) if choice.has(*each)] == expected
    assert all(choice.has_topic(PARTITIONS[index][0]) for index in expected)


def test_topics_and_partitions_may_be_given_apart() -> None:
    choice = chosen(None, "visits,orders-a", "0,2")
    assert [each for each in PARTITIONS if choice.has(*each)] == [("visits", 0), ("visits", 2), ("orders-a", 0)]
    everything = chosen(None, None, None)
    assert all(everything.has(*each) for each in PARTITIONS)
    assert not chosen(None, "visits", None).has_topic("visitors")


@pytest.mark.parametrize(
    "flags",
    [("visits", "visits", None), ("visits", None, "0"), (None, "(", None), (None, None, "a"), ("a:b", None, None)],
)
def test_choices_that_cannot_be_are_refused(flags: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(ValueError, match=r"--topic-partitions|regular expression|--partitions"):
        chosen(*flags)


def test_times_of_offsets_have_kafkas_names_and_numbers() -> None:
    names = ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload")
    for number, name in enumerate(names, 1):
        assert spec_of(name, NOW_MS) == spec_of(f"-{number}", NOW_MS) == -number
    assert spec_of("0", NOW_MS) == 0
    assert spec_of("15m", NOW_MS) == NOW_MS - 900_000
    for text in ("-7", "--1", "newest", ""):
        with pytest.raises(ValueError, match="latest"):
            spec_of(text, NOW_MS)


def test_an_offset_file_is_read_as_kafkas_tool_reads_it() -> None:
    text = b'{"partitions":[{"topic":"a","partition":1,"offset":5},{"topic":"a","partition":0,"offset":-1}]}'
    assert parsed_offsets(text) == {("a", 1): 5, ("a", 0): -1}
    assert parsed_offsets(text[:-1] + b', "version": 1}') == parsed_offsets(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"partitions": []}',
        b'{"partitions": [7]}',
        b'{"partitions": [{"topic": "a", "partition": 0}]}',
        b'{"partitions": [{"topic": "a", "partition": "0", "offset": 1}]}',
        b'{"partitions": [{"topic": "a", "partition": 0, "offset": -2}]}',
        b'{"partitions": [{"topic": "a", "partition": -1, "offset": 2}]}',
        b'{"partitions": [{"topic": "a", "partition": 0, "offset": 1}, {"topic": "a", "partition": 0, "offset": 2}]}',
        b'{"version": 2, "partitions": [{"topic": "a", "partition": 0, "offset": 1}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_an_offset_file_that_cannot_be_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parsed_offsets(text)
