"""Dead letters are shown with what they say of themselves, and go back to where they came from once."""

from collections.abc import Iterator

import pytest

from kavka.client.api_errors import KafkaError
from kavka.pipeline.jobs.dead_letters import Retried, retry, show
from kavka.pipeline.jobs.made_topics import make_topic
from kavka.testing import Broker
from kavka.testing.rows import Row
from tests.support.processes import wait_until

TIMEOUT_S = 120.0
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.retention.ms": "-1"}) as broker:
        yield broker


def letter(number: int, reason: str = "no JSON", **more: bytes) -> Row:
    headers = {
        "trace": b"t%d" % number,
        "kavka.reason": reason.encode(),
        "kavka.topic": b"source",
        "kavka.partition": b"1",
        "kavka.offset": b"%d" % number,
        "kavka.job": b"visits",
        **{f"kavka.{name}": value for name, value in more.items()},
    }
    return Row(b"v%d" % number, b"k", headers, timestamp_ms=FIRST_MS + number)


def test_they_are_shown_and_retried_once_with_key_value_time_and_own_headers(broker: Broker) -> None:
    broker.create_topic("source", 2)
    dead = broker.create_topic("dead", 2)
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    broker.produce(dead, [letter(1), letter(2, "late"), letter(3, retries=b"2"), letter(4, retries=b"3")])
    broker.produce(dead, [Row(b"stranger", b"k"), letter(5, partition=b"x" * 50)])
    shown = list(show(settings, dead))
    assert [(each.value, each.reason, each.retries) for each in shown] == [
        (b"v1", "no JSON", 0),
        (b"v2", "late", 0),
        (b"v3", "no JSON", 2),
        (b"v4", "no JSON", 3),
        (b"stranger", None, 0),
        (b"v5", "no JSON", 0),
    ]
    assert (shown[0].source_topic, shown[0].source_partition, shown[0].source_offset) == ("source", 1, 1)
    assert (shown[0].job, shown[0].key, shown[0].headers) == ("visits", b"k", (("trace", b"t1"),))
    assert shown[5].source_partition is None
    assert retry(settings, dead, reason="JSON$") == Retried(3, 3)
    found = broker.records("source", committed=True)
    assert sorted((each.value, each.timestamp_ms - FIRST_MS, each.headers) for each in found) == [
        (b"v1", 1, (("trace", b"t1"), ("kavka.retries", b"1"))),
        (b"v3", 3, (("trace", b"t3"), ("kavka.retries", b"3"))),
        (b"v5", 5, (("trace", b"t5"), ("kavka.retries", b"1"))),
    ]
    assert {each.partition for each in found if each.value != b"v5"} == {1}
    assert retry(settings, dead) == Retried(0, 0)


def test_letters_choose_no_place_that_is_not_theirs(broker: Broker) -> None:
    broker.create_topic("read", 1)
    broker.create_topic("not-read", 1)
    dead = broker.create_topic("dead-and-forged", 1)
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    named = [b"__consumer_offsets", b"__transaction_state", b"_kavka_pipeline_markers", b"not-read", b"nowhere", b"a b"]
    forged = [letter(number, topic=topic, partition=b"0") for number, topic in enumerate([*named, dead.encode()])]
    broker.produce(dead, [*forged, letter(8, topic=b"read", partition=b"99"), letter(9, topic=b"read", partition=b"0")])

    assert retry(settings, dead, allows=lambda topic: topic != "not-read") == Retried(2, 7)

    assert broker.records("read", committed=True).values == [b"v8", b"v9"]
    assert "nowhere" not in broker.admin.list_topics()
    assert not broker.records("not-read", committed=True)
    markers = broker.records("_kavka_pipeline_markers", committed=True)
    assert markers
    assert b"v2" not in markers.values


def test_what_could_not_be_sent_is_tried_again_by_the_next_call(broker: Broker) -> None:
    dead, target = broker.create_topic("dead-too", 1), broker.create_topic("elsewhere", 1)
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    broker.produce(dead, [letter(number) for number in range(5)])
    fault = broker.faults.fail("TxnOffsetCommit", error="GROUP_AUTHORIZATION_FAILED", times=1)
    with fault, pytest.raises(KafkaError):
        retry(settings, dead, target=target)
    assert not broker.records(target, committed=True)
    assert retry(settings, dead, target=target) == Retried(5, 0)
    assert broker.records(target, committed=True).values == [b"v%d" % number for number in range(5)]


def test_letters_do_not_go_again_when_the_groups_offsets_have_expired_unless_they_are_others() -> None:
    with Broker({"log.retention.ms": "-1", "offsets.retention.check.interval.ms": "1000"}) as broker:
        target, settings = broker.create_topic("elsewhere", 1), {"bootstrap.servers": broker.bootstrap_servers}
        dead = broker.create_topic("dead", 1)
        group = f"kavka-dead-letters-{dead}"

        def have_expired() -> bool:
            return not broker.admin.list_group_offsets({group: None})[group]

        broker.produce(dead, [letter(number) for number in range(3)])
        assert retry(settings, dead, target=target) == Retried(3, 0)
        broker.travel(days=8)
        wait_until(have_expired, TIMEOUT_S, "offsets are kept")
        broker.produce(dead, [letter(3)])
        assert retry(settings, dead, target=target) == Retried(1, 0)
        assert broker.records(target, committed=True).values == [b"v%d" % number for number in range(4)]

        broker.admin.delete_topics([dead])
        wait_until(lambda: dead not in broker.admin.list_topics() and have_expired(), TIMEOUT_S, "it is there")
        broker.produce(broker.create_topic(dead, 1), [letter(4)])
        assert retry(settings, dead, target=target) == Retried(1, 0)


def test_letters_that_their_topic_does_not_take_hold_up_no_others(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    source, dead = "short", broker.create_topic("dead-and-refused", 1)
    configs = {"cleanup.policy": "compact", "max.message.bytes": "1000", "message.timestamp.after.max.ms": "3600000"}
    broker.create_topic(source, 1, configs=configs)
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    letters = [letter(number, topic=source.encode(), partition=b"0") for number in range(8)]
    letters[1] = letters[1]._replace(value=b"v" * 1000)
    letters[3] = letters[3]._replace(key=None)
    letters[4] = letters[4]._replace(timestamp_ms=4 * FIRST_MS)
    broker.produce(dead, letters)
    assert retry(settings, dead) == Retried(5, 3)
    assert broker.records(source, committed=True).values == [b"v%d" % number for number in (0, 2, 5, 6, 7)]
    assert [each.getMessage().split()[3] for each in caplog.records if "passed over" in each.getMessage()] == [
        f"offset={number}" for number in (1, 3, 4)
    ]
    assert retry(settings, dead) == Retried(0, 0)


def test_topics_that_a_job_makes_take_records_of_any_time() -> None:
    limits = {f"log.message.timestamp.{which}.max.ms": "3600000" for which in ("before", "after")}
    with Broker({"log.retention.ms": "-1", **limits}) as strict:
        make_topic(strict.admin, "made", 1, {"retention.ms": "-1"})
        strict.produce("made", [letter(1), letter(2)._replace(timestamp_ms=4 * FIRST_MS)])
        assert strict.records("made").values == [b"v1", b"v2"]


def test_an_expression_that_is_none_is_refused(broker: Broker) -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        retry({"bootstrap.servers": broker.bootstrap_servers}, "dead", reason="(")
