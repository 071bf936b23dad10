"""What readers of either isolation level see of committed, aborted and open transactions, and of their offsets."""

import pytest

from kavka.protocol.errors import ErrorCode
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.transactions import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TransactionalProducers,
    committed_offset,
    end_offset,
    fetch_once,
    read_committed,
    read_uncommitted,
    settle,
    stable_offset,
)

pytestmark = pytest.mark.java


def test_committed_records_are_read_aborted_ones_are_not(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    client.open(topic, topic)
    client.do(f"{topic} begin", f"{topic} send {topic} 0 a b", f"{topic} commit")
    client.do(f"{topic} begin", f"{topic} send {topic} 0 x y", f"{topic} flush", f"{topic} abort")
    client.do(f"{topic} begin", f"{topic} send {topic} 0 c", f"{topic} commit")
    settle(broker, topic)

    assert read_committed(broker, topic) == ["a", "b", "c"]
    assert read_uncommitted(broker, topic) == ["a", "b", "x", "y", "c"]
    # Five records and a marker for each transaction.
    assert end_offset(broker, topic, READ_UNCOMMITTED) == 8


def test_a_transaction_is_whole_over_its_partitions(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic, partitions=3)
    client.open(topic, topic)
    client.do(f"{topic} begin", *(f"{topic} send {topic} {partition} v{partition}" for partition in range(3)))
    client.do(f"{topic} flush")
    before = [read_committed(broker, topic, partition) for partition in range(3)]
    client.do(f"{topic} commit")
    settle(broker, topic, partitions=3)

    assert before == [[], [], []]
    assert [read_committed(broker, topic, partition) for partition in range(3)] == [["v0"], ["v1"], ["v2"]]


def test_readers_stop_at_the_first_open_transaction(
    broker: RunningServer, producers: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    slow, quick = f"{topic}-slow", f"{topic}-quick"
    producers.open(slow, slow)
    producers.open(quick, quick)
    producers.do(f"{quick} begin", f"{quick} send {topic} 0 first", f"{quick} commit")
    producers.do(f"{slow} begin", f"{slow} send {topic} 0 slow", f"{slow} flush")
    producers.do(f"{quick} begin", f"{quick} send {topic} 0 late", f"{quick} commit")
    # `first` and its marker lie before the open transaction, `late` and its marker behind.
    wait_until(lambda: end_offset(broker, topic, READ_UNCOMMITTED) == 5, 60, "the second commit has no marker")

    waiting = read_committed(broker, topic)
    stable = end_offset(broker, topic, READ_COMMITTED)
    answer = fetch_once(broker, topic, 0, READ_COMMITTED)
    producers.do(f"{slow} commit")
    settle(broker, topic)

    assert waiting == ["first"]
    assert stable == 2
    assert (answer.last_stable_offset, answer.high_watermark) == (2, 5)
    assert read_committed(broker, topic) == ["first", "slow", "late"]
    assert end_offset(broker, topic, READ_COMMITTED) == 6


def test_a_fetch_names_the_aborted_transactions_of_what_it_returns(
    broker: RunningServer, producers: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    producers.open(topic, topic)
    for number in range(3):
        producers.do(f"{topic} begin", f"{topic} send {topic} 0 a{number}", f"{topic} flush", f"{topic} abort")
        producers.do(f"{topic} begin", f"{topic} send {topic} 0 c{number}", f"{topic} commit")
    settle(broker, topic)

    of_all = fetch_once(broker, topic, 0, READ_COMMITTED)
    of_the_rest = fetch_once(broker, topic, 6, READ_COMMITTED)
    uncommitted = fetch_once(broker, topic, 0, READ_UNCOMMITTED)

    # Each transaction takes two offsets: its record and its marker.
    assert [aborted.first_offset for aborted in of_all.aborted_transactions] == [0, 4, 8]
    assert len({aborted.producer_id for aborted in of_all.aborted_transactions}) == 1
    assert [aborted.first_offset for aborted in of_the_rest.aborted_transactions] == [8]
    assert uncommitted.aborted_transactions is None
    assert read_committed(broker, topic) == ["c0", "c1", "c2"]


def test_offsets_of_a_transaction_count_when_it_is_committed(
    broker: RunningServer, client: TransactionalProducers, topic: str
) -> None:
    create_topic(broker, topic)
    group = f"group-{topic}"
    client.open(topic, topic)
    client.do(f"{topic} begin", f"{topic} send {topic} 0 a", f"{topic} offsets {group} {topic} 0 5", f"{topic} commit")
    assert stable_offset(broker, group, topic) == 5
    client.do(f"{topic} begin", f"{topic} send {topic} 0 b", f"{topic} offsets {group} {topic} 0 9")

    pending = committed_offset(broker, group, topic)
    stable = committed_offset(broker, group, topic, require_stable=True)
    client.do(f"{topic} abort")
    given_up = stable_offset(broker, group, topic)
    client.do(f"{topic} begin", f"{topic} offsets {group} {topic} 0 7", f"{topic} commit")

    assert pending == (0, 5)
    assert given_up == 5
    assert stable_offset(broker, group, topic) == 7
    assert stable == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)


def test_an_empty_transaction_leaves_nothing(broker: RunningServer, client: TransactionalProducers, topic: str) -> None:
    create_topic(broker, topic)
    client.open(topic, topic)
    client.do(f"{topic} begin", f"{topic} commit", f"{topic} begin", f"{topic} abort")
    client.do(f"{topic} begin", f"{topic} send {topic} 0 only", f"{topic} commit")
    settle(broker, topic)

    assert read_committed(broker, topic) == ["only"]
    assert end_offset(broker, topic, READ_COMMITTED) == 2
