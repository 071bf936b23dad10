"""Which offsets a stream's batches end at, and what they read."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.source.errors import DataLossError, OptionError
from kavka.pipeline.source.offsets import Nested, OffsetRange
from kavka.pipeline.source.read_options import read_options
from kavka.pipeline.source.stream_reader import KavkaStreamReader
from kavka.pipeline.source.subscription import Subscription
from tests.support.scripted_logs import ScriptedLogs

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Stage:
    """A reader over logs that the test moves, and a clock that it sets."""

    def __init__(self, logs: ScriptedLogs, options: Mapping[str, str] | None = None) -> None:
        self.logs = logs
        self.now_s = 0.0
        given = {"bootstrap.servers": "x:1", "subscribe": "a", "startingoffsets": "earliest", **(options or {})}
        if "subscribepattern" in given:
            del given["subscribe"]
        checked = read_options(given, streaming=True)
        self.waits_s: list[float] = []
        self.reader = KavkaStreamReader(checked, lambda _: self.logs, lambda: self.now_s, self.waits_s.append)

    def latest(self, start: Nested, limit: ReadLimit | None = None) -> Nested:
        return self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())

    def ranges(self, start: Nested, end: Nested) -> list[OffsetRange]:
        return [partition.value for partition in self.reader.partitions(start, end)]


def test_a_stream_goes_from_its_beginning_to_the_ends_there_are() -> None:
    stage = Stage(ScriptedLogs({A0: 3, A1: 0}, {A0: 10, A1: 5}))

    start = stage.reader.initialOffset()
    end = stage.latest(start)

    assert (start, end) == ({"a": {"0": 3, "1": 0}}, {"a": {"0": 10, "1": 5}})
    assert stage.ranges(start, end) == [OffsetRange("a", 0, 3, 10), OffsetRange("a", 1, 0, 5)]
    assert stage.latest(end) == end
    assert stage.reader.reportLatestOffset() == end


def test_from_the_latest_on_the_first_batch_is_empty_so_that_the_checkpoint_has_where_it_began() -> None:
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 10}), {"startingoffsets": "latest"})
    start = stage.reader.initialOffset()
    stage.logs.stable = {A0: 15}

    assert stage.latest(start) == start == {"a": {"0": 10}}
    assert stage.ranges(start, start) == []
    assert stage.latest(start) == {"a": {"0": 15}}
    assert stage.ranges(start, {"a": {"0": 15}}) == [OffsetRange("a", 0, 10, 15)]


def test_that_first_batch_is_empty_again_after_a_kill() -> None:
    killed = Stage(ScriptedLogs({A0: 0}, {A0: 10}), {"startingoffsets": "latest"})
    noted = killed.latest(killed.reader.initialOffset())

    restarted = Stage(ScriptedLogs({A0: 0}, {A0: 25}), {"startingoffsets": "latest"})
    start = restarted.reader.initialOffset()

    assert restarted.ranges(start, noted) == []
    assert restarted.latest(noted) == {"a": {"0": 25}}
    assert restarted.ranges(noted, {"a": {"0": 25}}) == [OffsetRange("a", 0, 10, 25)]


def test_batches_are_held_to_offsets_and_bytes_but_for_a_trigger_that_takes_all() -> None:
    logs = ScriptedLogs({A0: 0, A1: 0}, {A0: 1000, A1: 1000})
    start = {"a": {"0": 0, "1": 0}}

    for limit in ({"maxoffsetspertrigger": "100"}, {"maxbytespertrigger": "10000"}):
        stage = Stage(logs, limit)
        assert stage.latest(start) == {"a": {"0": 50, "1": 50}}
        assert stage.latest(start, ReadAllAvailable()) == {"a": {"0": 1000, "1": 1000}}


def test_no_batch_before_there_is_enough_but_for_the_delay() -> None:
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 5}), {"minoffsetspertrigger": "10", "maxtriggerdelay": "60s"})
    start: Nested = {"a": {"0": 5}}

    # Nobody knows how long the first records have waited.
    assert stage.latest({"a": {"0": 0}}) == start
    stage.logs.stable = {A0: 14}
    assert stage.latest(start) == start
    stage.logs.stable = {A0: 15}
    assert stage.latest(start) == {"a": {"0": 15}}
    stage.logs.stable = {A0: 16}
    assert stage.latest({"a": {"0": 15}}) == {"a": {"0": 15}}
    stage.now_s = 61.0
    assert stage.latest({"a": {"0": 15}}) == {"a": {"0": 16}}


def test_what_is_available_now_is_all_that_is_read() -> None:
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 100}), {"maxoffsetspertrigger": "60", "minoffsetspertrigger": "50"})
    stage.reader.prepareForTriggerAvailableNow()
    stage.logs.stable = {A0: 500, A1: 500}
    stage.logs.first = {A0: 0, A1: 0}

    offsets = [stage.reader.initialOffset() | {"a": {"0": 0}}]
    for _ in range(3):
        offsets.append(stage.latest(offsets[-1]))

    assert [each["a"] for each in offsets] == [{"0": 0}, {"0": 60}, {"0": 100}, {"0": 100}]


@pytest.mark.parametrize("starting", [{"startingoffsets": "latest"}, {"startingoffsets": '{"a":{"0":-1}}'}])
def test_what_comes_before_the_beginning_is_looked_up_is_left_to_the_next_run(starting: Mapping[str, str]) -> None:
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 10}), starting)
    stage.reader.prepareForTriggerAvailableNow()
    stage.logs.stable = {A0: 12}

    start = stage.reader.initialOffset()
    ends = [stage.latest(start), stage.latest(start)]

    assert [start, *ends] == [{"a": {"0": 10}}] * 3
    assert stage.ranges(start, ends[-1]) == []
    assert Stage(stage.logs).latest(start) == {"a": {"0": 12}}


def test_no_batch_of_what_is_available_now_ends_before_it_begins() -> None:
    begin: Nested = {"a": {"0": 15, "1": 7}}
    # An open transaction holds back what read_uncommitted has read; and a partition was there just not to be seen.
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 10}, ends={A0: 20}))
    stage.reader.prepareForTriggerAvailableNow()
    stage.logs.stable = {A0: 10, A1: 9}
    stage.logs.ends = {A0: 20, A1: 9}

    end = stage.latest(begin)

    assert end == begin
    assert stage.ranges(begin, end) == []


def test_available_now_ends_when_a_log_was_made_anew_meanwhile() -> None:
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 100}), {"failondataloss": "false"})
    stage.reader.prepareForTriggerAvailableNow()
    stage.logs.stable = {A0: 7}

    end = stage.latest({"a": {"0": 50}})

    assert end == {"a": {"0": 7}}
    assert stage.ranges({"a": {"0": 50}}, end) == []
    assert stage.latest(end) == end


def test_an_open_transaction_holds_back_and_takes_nothing_back() -> None:
    logs = ScriptedLogs({A0: 0}, {A0: 20}, ends={A0: 50})
    stage = Stage(logs)

    # Another source has read on to 40 before, transactions or not.
    assert stage.latest({"a": {"0": 40}}) == {"a": {"0": 40}}
    assert stage.latest({"a": {"0": 10}}) == {"a": {"0": 20}}


def test_a_log_that_ends_earlier_than_it_did_is_loss() -> None:
    for fails in ("true", "false"):
        stage = Stage(ScriptedLogs({A0: 0}, {A0: 20}), {"failondataloss": fails})
        end = stage.latest({"a": {"0": 40}})
        assert end == {"a": {"0": 20}}
        if fails == "true":
            with pytest.raises(DataLossError, match="a-0 ended at 40 and now ends at 20"):
                stage.ranges({"a": {"0": 40}}, end)
        else:
            assert stage.ranges({"a": {"0": 40}}, end) == []


def test_a_partition_that_came_later_is_read_from_its_beginning() -> None:
    stage = Stage(ScriptedLogs({A0: 0, A1: 0}, {A0: 4, A1: 6}), {"maxoffsetspertrigger": "100"})
    start: Nested = {"a": {"0": 4}}

    assert stage.ranges(start, stage.latest(start)) == [OffsetRange("a", 1, 0, 6)]


def test_a_topic_that_is_not_there_is_an_error_at_first_and_loss_afterwards() -> None:
    with pytest.raises(OptionError, match="there is no topic a"):
        Stage(ScriptedLogs({}, {})).reader.initialOffset()
    with pytest.raises(DataLossError, match="there is no topic a"):
        Stage(ScriptedLogs({}, {})).latest({"a": {"0": 1}})
    assert Stage(ScriptedLogs({}, {}), {"failondataloss": "false"}).latest({"a": {"0": 1}}) == {}


class JustStarted(ScriptedLogs):
    """Of a broker that does not know of any topic for the first few questions."""

    questions = 0

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        self.questions += 1
        return [] if self.questions <= 3 else super().partitions(subscription)


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize("given", [{"subscribe": "a"}, {"subscribepattern": "a.*"}])
def test_a_broker_that_does_not_know_a_topic_yet_takes_no_place_out_of_the_checkpoint(
    fails: str, given: dict[str, str]
) -> None:
    stage = Stage(JustStarted({A0: 0}, {A0: 20}), {"failondataloss": fails, **given})
    assert stage.latest({"a": {"0": 10}}) == {"a": {"0": 20}}
    assert len(stage.waits_s) == 3
    once = Stage(JustStarted({A0: 0}, {A0: 20}), {"failondataloss": fails, **given})
    once.reader.prepareForTriggerAvailableNow()
    # By a pattern nobody knows what there is to be: what is there now is left to the next run.
    assert once.latest({"a": {"0": 10}}) == {"a": {"0": 20 if "subscribe" in given else 10}}


def test_a_topic_that_stays_away_is_gone() -> None:
    stage = Stage(ScriptedLogs({}, {}), {"subscribepattern": "a.*"})
    assert stage.latest({"a": {"0": 1}}) == {}
    assert sum(stage.waits_s) >= 4
    with pytest.raises(DataLossError, match="a-0 is gone"):
        stage.ranges({"a": {"0": 1}}, {})


def test_offsets_that_a_checkpoint_cannot_have_are_refused() -> None:
    wrong: Any = {"a": 5}
    with pytest.raises(OptionError, match="the checkpoint's offsets"):
        Stage(ScriptedLogs({A0: 0}, {A0: 1})).latest(wrong)


def test_stop_closes_what_was_opened() -> None:
    stage = Stage(ScriptedLogs({A0: 0}, {A0: 1}))
    stage.reader.stop()
    assert not stage.logs.is_closed
    stage.reader.initialOffset()
    stage.reader.stop()
    assert stage.logs.is_closed
