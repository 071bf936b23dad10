"""The controller's queue is bounded, and notices of a kind are one."""

from kavka.cluster.controller.event_queue import MAX_QUEUED_REQUESTS, EventQueue


class Seen:
    def __init__(self) -> None:
        self.order: list[str] = []

    def brokers(self) -> None:
        self.order.append("brokers")

    def topics(self) -> None:
        self.order.append("topics")

    def request(self) -> None:
        self.order.append("request")


def drain(queue: EventQueue) -> None:
    queue.close()
    while (event := queue.next()) is not None:
        event()


def test_notices_come_first_and_once() -> None:
    seen, queue = Seen(), EventQueue()
    queue.request(seen.request)
    for _ in range(1000):
        queue.notice(seen.brokers)
        queue.notice(seen.topics)
    for _ in range(3):
        event = queue.next()
        assert event is not None
        event()
    assert seen.order == ["brokers", "topics", "request"]


def test_requests_beyond_the_bound_are_refused() -> None:
    seen, queue = Seen(), EventQueue()
    accepted = sum(queue.request(seen.request) for _ in range(MAX_QUEUED_REQUESTS + 10))
    assert accepted == MAX_QUEUED_REQUESTS


def test_a_closed_queue_hands_out_what_waits_and_takes_nothing() -> None:
    seen, queue = Seen(), EventQueue()
    queue.request(seen.request)
    queue.notice(seen.brokers)
    queue.close()
    assert not queue.request(seen.request)
    queue.notice(seen.topics)
    drain(queue)
    assert seen.order == ["request"]
