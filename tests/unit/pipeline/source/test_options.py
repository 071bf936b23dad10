"""What the data source makes of options, and how it says what is wrong with them."""

import re
from collections.abc import Mapping

import pytest

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.choices import Kind
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.option_values import duration_ms, size_bytes
from kavka.pipeline.source.read_options import ReadOptions, columns_of, read_options
from kavka.pipeline.source.write_options import write_options

NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "visits"}


def reading(options: Mapping[str, str] | None = None, *, streaming: bool = False) -> ReadOptions:
    given = {**NEEDED, **(options or {})}
    return read_options({name.lower(): value for name, value in given.items()}, streaming=streaming)


def test_defaults_are_sparks_own_but_for_transactions() -> None:
    batch, stream = reading(), reading(streaming=True)

    assert (batch.starting.kind, batch.ending.kind) == (Kind.EARLIEST, Kind.LATEST)
    assert stream.starting.kind is Kind.LATEST
    assert batch.fails_on_data_loss
    assert batch.is_committed
    assert batch.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert not batch.pushes_down


def test_consumers_get_kafkas_names_without_the_prefix() -> None:
    options = reading({"kafka.fetch.max.bytes": "1000", "kafka.isolation.level": "read_uncommitted"})

    settings = options.consumer_settings
    assert settings["bootstrap.servers"] == "localhost:9092"
    assert settings["fetch.max.bytes"] == "1000"
    assert settings["isolation.level"] == "read_uncommitted"
    assert settings["auto.offset.reset"] == "none"
    assert settings["enable.auto.commit"] == "false"


def test_a_fetch_beyond_a_range_keeps_the_next_one_from_nothing_unless_that_is_asked_for() -> None:
    assert int(reading({}).consumer_settings["fetch.max.wait.ms"]) <= 10
    assert reading({"kafka.fetch.max.wait.ms": "500"}).consumer_settings["fetch.max.wait.ms"] == "500"


def test_short_forms_do_without_the_prefix() -> None:
    options = read_options({"bootstrap.servers": "a:1", "subscribe": "visits"}, streaming=False)

    assert options.client["bootstrap.servers"] == "a:1"


@pytest.mark.parametrize("setting", ["fetch.max.bytes", "security.protocol"])
def test_clients_settings_are_checked_where_a_path_alone_is_given(setting: str) -> None:
    with pytest.raises(OptionError, match=re.escape(setting)):
        read_options({"path": "/logs", "subscribe": "visits", f"kafka.{setting}": "x"}, streaming=False)
    assert read_options({"path": "/logs", "subscribe": "visits"}, streaming=False).client == {}


def test_a_group_is_taken_and_not_joined() -> None:
    assert "group.id" not in reading({"kafka.group.id": "mine", "groupIdPrefix": "x"}).consumer_settings


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"assign": '{"a":[1,0]}'}, (TopicPartition("a", 0), TopicPartition("a", 1))),
        ({"subscribe": "b, a"}, ("b", "a")),
        ({"subscribePattern": "a.*"}, "a.*"),
    ],
)
def test_topics_are_named_in_three_ways(given: dict[str, str], found: object) -> None:
    options = {"kafka.bootstrap.servers": "a:1"} | {name.lower(): value for name, value in given.items()}
    subscription = read_options(options, streaming=False).subscription

    assert found in (subscription.assigned, subscription.names, subscription.pattern)


def test_a_pattern_is_to_match_the_whole_name() -> None:
    subscription = read_options({"bootstrap.servers": "a:1", "subscribepattern": "a.c|b"}, streaming=False).subscription

    assert [name for name in ("abc", "abcd", "xabc", "b", "bb") if subscription.matches(name)] == ["abc", "b"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingofsets": "earliest"}, "did you mean startingOffsets?"),
        ({"nonsense": "1"}, "there is no option nonsense"),
        ({"assign": '{"visits":[0]}'}, "exactly one of assign, subscribe, subscribePattern"),
        ({"subscribe": " "}, "subscribe is empty"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets says where to begin"),
        ({"kafka.enable.auto.commit": "true"}, "cannot be set"),
        ({"kafka.fetch.max.bytes": "many"}, "kafka.fetch.max.bytes: Invalid value many: Not a number"),
        ({"kafka.isolation.level": "serializable"}, "read_committed or read_uncommitted"),
        ({"bootstrap.servers": "b:2"}, "bootstrap.servers is given twice"),
        ({"startingOffsets": "latest"}, "a batch read cannot start at the latest offset"),
        ({"startingOffsets": '{"visits":{"0":-1}}'}, "a batch read cannot start at the latest offset"),
        ({"startingOffsets": "first"}, "startingOffsets is earliest, latest, or JSON"),
        ({"startingOffsets": "{"}, "expected JSON like"),
        ({"startingOffsets": '{"visits":{"x":1}}'}, "expected JSON like"),
        ({"startingOffsets": '{"visits":{"0":-3}}'}, "there is no -3 for visits-0"),
        ({"startingOffsets": '{"visits":{"0":true}}'}, "expected JSON like"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest"),
        ({"endingOffsets": '{"visits":{"0":-2}}'}, "cannot end at the earliest"),
        ({"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "error or latest"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"minPartitions": "0"}, "a whole number from 1 on"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "more than maxOffsetsPerTrigger"),
        ({"maxBytesPerTrigger": "64q"}, "a size like 64m"),
        ({"maxTriggerDelay": "soon"}, "a time like 15m"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)) as raised:
        reading(options)
    assert "\n" not in str(raised.value)


def test_streams_have_no_end() -> None:
    with pytest.raises(OptionError, match="endingOffsets is for batch reads only"):
        reading({"endingOffsets": "latest"}, streaming=True)


def test_brokers_or_a_path_are_needed() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is to be given, or path"):
        read_options({"subscribe": "visits"}, streaming=False)
    assert read_options({"subscribe": "v", "path": "/a, /b"}, streaming=False).directories == ("/a", "/b")


def test_columns_are_those_wanted_in_that_order() -> None:
    assert columns_of({"columns": "value, offset"}) == ("value", "offset")
    assert columns_of({"includeheaders": "true"})[-1] == "headers"
    for wrong in ("body", "value,value", ","):
        with pytest.raises(OptionError):
            columns_of({"columns": wrong})


@pytest.mark.parametrize(("text", "ms"), [("15m", 900_000), ("90 seconds", 90_000), ("5", 5), ("1 min", 60_000)])
def test_times_are_written_as_spark_writes_them(text: str, ms: int) -> None:
    assert duration_ms({"d": text}, "d", 0) == ms


@pytest.mark.parametrize(("text", "size"), [("5", 5), ("64m", 64 << 20), ("1g", 1 << 30), ("2KB", 2048)])
def test_sizes_are_written_as_spark_writes_them(text: str, size: int) -> None:
    assert size_bytes({"s": text}, "s") == size


def test_writing_takes_a_producers_settings_and_sparks_own_options() -> None:
    options = write_options({"kafka.bootstrap.servers": "a:1", "topic": "t", "checkpointlocation": "/c"})

    assert (options.topic, options.client) == ("t", {"bootstrap.servers": "a:1"})
    for name, value in {"kafka.transactional.id": "x", "subscribe": "t", "kafka.acks": "5", "topic": " "}.items():
        with pytest.raises(OptionError):
            write_options({"kafka.bootstrap.servers": "a:1", name: value})
