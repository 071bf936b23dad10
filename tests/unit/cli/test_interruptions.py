"""Ctrl-C while a group's member reads, and while a transaction is committed."""

from collections.abc import Sequence
from unittest.mock import MagicMock, create_autospec

import pytest

from kavka.cli.consume.reading import Limits, Reading
from kavka.cli.consume.sources import BREAK_OFF_MS, Member, Topics
from kavka.cli.consume.stops import Stops, Until
from kavka.cli.produce.sending import Sending, in_transaction
from kavka.client.api_errors import KafkaTimeoutError
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.group.port import OffsetAndMetadata
from kavka.client.producer.producer import Producer
from kavka.client.topic_partition import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)


def test_who_interrupts_a_member_does_not_wait_for_a_broker_that_is_gone() -> None:
    complaints: list[str] = []
    consumer: MagicMock = create_autospec(Consumer, instance=True)
    consumer.partitions_for.return_value = {0}
    stops = Stops(consumer, Until())
    member = Member(consumer, Topics(("orders",)), stops, complaints.append)

    def interrupted(_wait_ms: float) -> Sequence[object]:
        member.shown(ORDERS_0, OffsetAndMetadata(3))
        raise KeyboardInterrupt

    consumer.poll.side_effect = interrupted
    consumer.commit_sync.side_effect = KafkaTimeoutError("nobody answers")
    reading = Reading(consumer, member, stops, lambda _records: None, Limits(), lambda: 0, has_ends=False)
    with pytest.raises(KeyboardInterrupt):
        reading.run()
    consumer.commit_sync.assert_called_once_with({ORDERS_0: OffsetAndMetadata(3)}, BREAK_OFF_MS)
    assert complaints == ["what was shown could not be committed: nobody answers"]


def _sending(producer: MagicMock) -> Sending:
    return Sending(producer, "orders", complain=lambda _problem: None, update=lambda done, note="": None)


def test_a_commit_that_is_interrupted_is_seen_through_and_told() -> None:
    complaints: list[str] = []
    producer: MagicMock = create_autospec(Producer, instance=True)
    producer.commit_transaction.side_effect = [KeyboardInterrupt, None]
    with pytest.raises(KeyboardInterrupt):
        in_transaction(producer, _sending(producer), (), complaints.append)
    assert producer.commit_transaction.call_count == 2
    assert complaints == ["the transaction was being committed already: its records count"]


def test_a_transaction_that_is_interrupted_before_its_commit_is_aborted() -> None:
    complaints: list[str] = []
    producer: MagicMock = create_autospec(Producer, instance=True)
    producer.flush.side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        in_transaction(producer, _sending(producer), (), complaints.append)
    producer.commit_transaction.assert_not_called()
    producer.abort_transaction.assert_called_once_with()
    assert complaints == []
