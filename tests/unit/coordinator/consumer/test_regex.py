"""Subscriptions by regular expression: what they match, when they are looked at again, and what clients cannot do."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kavka.coordinator.group.consumer import records, regex
from kavka.coordinator.group.consumer.member import Member
from kavka.coordinator.group.consumer.regex import Resolution, check_regex
from kavka.coordinator.regular_expressions import MAX_LENGTH
from kavka.coordinator.runtime.result import Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import ConsumerGroupRegularExpressionKey
from tests.support.consumer_stage import GROUP, ConsumerStage


def resolve(regex: str, names: list[str]) -> set[str]:
    resolution = Resolution([regex], names, 1, 0)
    while not resolution.step():
        pass
    return resolution.found[regex]


@pytest.mark.parametrize(
    ("regex", "matches"),
    [
        ("t", {"t"}),
        ("t.*", {"t", "tea", "t.1"}),
        ("t[.]1", {"t.1"}),
        (".*", {"t", "tea", "t.1", "other", "__consumer_offsets", "__transaction_state"}),
        ("te?a?|other", {"t", "tea", "other"}),
        ("(?i)TEA", {"tea"}),
        ("nothing", set()),
    ],
)
def test_the_whole_name_must_match_and_internal_topics_are_topics_like_others(regex: str, matches: set[str]) -> None:
    names = ["t", "tea", "t.1", "other", "__consumer_offsets", "__transaction_state"]
    assert resolve(regex, names) == matches


@pytest.mark.parametrize(
    "regex",
    ["(", "[a", "a**", "a{2000}", r"(a)\1", "(?=a)", "x" * (MAX_LENGTH + 1), "\ud800", "(((a{100}){100}){100})"],
)
def test_what_is_no_expression_or_too_large_is_refused(regex: str) -> None:
    stage = ConsumerStage()
    asked = stage.heartbeat("a", 0, rebalance_timeout_ms=1, subscribed_topic_regex=regex, topic_partitions=[])
    assert asked.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "is not a valid regular expression" in (asked.errors[0].message or "")
    assert stage.log == []


@pytest.mark.parametrize("regex", ["(a*)*b", "(a|aa)+$", "(.*.*.*.*.*)x", "([a-z]+)+[0-9]", "(x+x+)+y"])
def test_expressions_that_would_run_for_ever_elsewhere_take_no_time(regex: str) -> None:
    start = time.thread_time()
    assert resolve(regex, ["a" * 249] * 500) <= {"a" * 249}
    assert time.thread_time() - start < 6.0


@pytest.mark.parametrize("regex", ["(a{0,200}){5}b", "[a-z]{1,900}1", "x" * MAX_LENGTH])
def test_the_largest_that_are_allowed_are_bearable(regex: str) -> None:
    try:
        check_regex(regex)
    except BrokerError:
        return
    start = time.thread_time()
    resolve(regex, ["a" * 249] * 128)
    assert time.thread_time() - start < 6.0


def test_topics_are_found_soon_after_the_member_has_joined() -> None:
    stage = ConsumerStage()
    for name in ("orders.eu", "orders.us", "other"):
        stage.topics.add(name, 2)
    a = stage.joined("a", regex="orders[.].*")
    assert a.owns == set(), "nobody waits for the topics to be looked at"
    stage.advance(1)
    a.beat()
    assert a.owns == {(name, number) for name in ("orders.eu", "orders.us") for number in (0, 1)}
    assert any(isinstance(record.key, ConsumerGroupRegularExpressionKey) for record in stage.records())


def test_a_second_member_with_a_known_expression_has_its_share_at_once() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    a = stage.joined("a", regex="t")
    stage.advance(1)
    a.beat()
    b = stage.joined("b", regex="t")
    stage.settle(a, b)
    assert len(a.owns) == len(b.owns) == 2


def test_an_expression_matches_what_its_member_may_describe_and_no_more() -> None:
    stage = ConsumerStage()
    for name in ("t1", "t2", "secret"):
        stage.topics.add(name, 1)
    a = stage.joined("a", regex=".*", hidden={"secret"})
    stage.advance(1)
    a.beat()
    assert a.owns == {("t1", 0), ("t2", 0)}


def test_a_member_that_joins_with_a_known_expression_never_has_what_it_may_not_describe() -> None:
    stage = ConsumerStage()
    for name in ("t", "secret"):
        stage.topics.add(name, 4)
    a = stage.joined("a", regex=".*", hidden=set())
    stage.advance(1)
    a.beat()
    assert a.owns >= {("secret", number) for number in range(4)}
    b = stage.joined("b", regex=".*", hidden={"secret"})
    stage.settle(a, b)
    assert a.owns | b.owns == {("t", number) for number in range(4)}, "an expression stands for one set of topics"
    assert len(b.owns) == 2


def test_an_expression_matches_more_again_when_who_may_not_describe_it_has_left() -> None:
    stage = ConsumerStage()
    for name in ("t", "secret"):
        stage.topics.add(name, 1)
    a, b = (stage.joined(name, regex=".*", hidden=hidden) for name, hidden in (("a", set()), ("b", {"secret"})))
    stage.advance(1_000)
    stage.settle(a, b)
    assert a.owns | b.owns == {("t", 0)}
    b.leave()
    stage.advance(1_000)
    a.beat()
    stage.advance(1)
    stage.settle(a)
    assert a.owns == {("t", 0), ("secret", 0)}


def test_after_a_load_a_member_keeps_what_was_found_until_it_is_heard_of() -> None:
    stage = ConsumerStage()
    for name in ("t", "secret"):
        stage.topics.add(name, 1)
    a = stage.joined("a", regex=".*")
    stage.advance(1)
    a.beat()
    assert a.owns == {("t", 0), ("secret", 0)}
    a.hidden = {"secret"}
    stage.settle(a)
    assert a.owns == {("t", 0)}, "nobody had asked for its rights before"


def test_new_topics_are_found_but_not_looked_for_too_often() -> None:
    stage = ConsumerStage()
    stage.topics.add("t1", 1)
    a = stage.joined("a", regex="t.")
    stage.advance(1)
    a.beat()
    stage.topics.add("t2", 1)
    a.beat()
    stage.advance(1)
    assert a.owns == {("t1", 0)}, "the topics were looked at a moment ago"
    stage.advance(10_000)
    a.beat()
    stage.advance(1)
    a.beat()
    assert a.owns == {("t1", 0), ("t2", 0)}
    stage.topics.remove("t1")
    stage.advance(10_000)
    stage.settle(a)
    stage.advance(1)
    stage.settle(a)
    assert a.owns == {("t2", 0)}


def test_an_expression_that_nobody_wants_any_more_is_forgotten() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 1)
    a, b = stage.joined("a", regex="t"), stage.joined("b", ["t"])
    stage.advance(1)
    assert set(stage.logged.resolved) == {"t"}
    a.leave()
    assert stage.logged.resolved == {}
    b.regex, b.topics = "t.*", []
    b.beat(full=True)
    b.regex, b.topics = "", ["t"]
    b.beat(full=True)
    stage.advance(5000)
    assert stage.logged.resolved == {}
    assert stage.replayed().groups.get("g") is not None


def test_many_topics_are_looked_at_in_slices() -> None:
    resolution = Resolution([".*1", "t.*"], [f"t{number}" for number in range(1000)], 1, 0)
    slices = 1
    while not resolution.step():
        slices += 1
    assert slices > 10
    assert len(resolution.found[".*1"]) == 100
    assert len(resolution.found["t.*"]) == 1000


def test_a_resolution_that_cannot_be_written_is_done_again() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 1)
    a = stage.joined("a", regex="t")
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    stage.advance(1)
    a.beat()
    assert a.owns == set()
    stage.advance(2000)
    a.beat()
    stage.advance(1)
    a.beat()
    assert a.owns == {("t", 0)}


def test_a_new_expression_that_matches_nothing_frees_what_others_wait_for() -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 4)
    a, b = stage.joined("a", regex="t.*"), stage.joined("b", ["t"])
    stage.advance(2000)
    stage.settle(a, b)
    assert len(a.owns) == len(b.owns) == 2
    a.regex = "nothing"
    a.beat(full=True)
    stage.advance(2000)
    stage.settle(a, b)
    assert a.owns == set()
    assert b.owns == {("t", number) for number in range(4)}


def test_a_stored_expression_that_is_refused_today_keeps_its_topics_and_its_group(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = ConsumerStage()
    stage.topics.add("t", 2)
    refused = "t(?=)"
    member = Member("a", regex=refused, rebalance_timeout_ms=1000)
    written = [
        records.member_metadata(GROUP, member),
        records.group_epoch(GROUP, 1),
        records.resolved_regex(GROUP, refused, ["t"], 1, 0),
    ]
    stage.run(lambda _: Result(written))
    stage.reload()
    a, b = stage.joined("a", regex=refused), stage.joined("b", ["t"])
    stage.advance(1)
    stage.settle(a, b)
    assert len(a.owns) == len(b.owns) == 1
    assert "left as it is" in caplog.text


def test_the_clock_of_the_day_hastens_and_delays_no_look_at_the_topics() -> None:
    stage = ConsumerStage()
    stage.topics.add("t1")
    a = stage.joined("a", regex="t.")
    stage.advance(1)
    a.beat()
    stage.topics.add("t2")
    stage.set_clock(-3_600_000)
    stage.advance(10_000)
    a.beat()
    stage.advance(1)
    a.beat()
    assert a.owns == {("t1", 0), ("t2", 0)}
    stage.topics.add("t3")
    stage.set_clock(3_600_000)
    a.beat()
    stage.advance(1)
    a.beat()
    assert a.owns == {("t1", 0), ("t2", 0)}, "the topics were looked at a moment ago"


def test_many_expressions_are_compiled_in_slices_and_matched_all(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def counting(expression: str) -> Any:
        compiled.append(expression)
        return compile_one(expression)

    compile_one = regex._compile
    monkeypatch.setattr(regex, "_compile", counting)
    names = [f"t{number}" for number in range(100)]
    resolution = Resolution([f"{name}|other" for name in names], names, 1, 0)
    assert compiled == [], "who begins it is a heartbeat, which waits for none of this"
    most = done = 0
    while not resolution.step():
        most, done = max(most, len(compiled) - done), len(compiled)
    assert 0 < most <= 8
    assert resolution.found == {f"{name}|other": {name} for name in names}
