"""Questions that any broker can answer: sent to one, and to another one where that does not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import KafkaError, KafkaTimeoutError, RetriableError
from kavka.client.call import Sendable
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.protocol.errors import EncodeError

_INFINITY: Final = float("inf")


class _Question(NamedTuple):
    request: Sendable
    done: Future[Any]
    deadline_ms: float


class Questions:
    """Bounds: those who ask wait for the answer. Threads: the client's thread alone."""

    def __init__(self, network: NetworkPort, nodes: Callable[[], Sequence[Node]], retry_backoff_ms: float) -> None:
        self._network: Final = network
        self._nodes: Final = nodes
        self._retry_backoff_ms: Final = retry_backoff_ms
        self._waiting: list[_Question] = []
        self._out: list[_Question] = []
        self._not_before_ms = 0.0

    def ask(self, request: Sendable, done: Future[Any], deadline_ms: float) -> None:
        """`done` gets the answer, or a KafkaError: at the deadline at the latest."""
        self._waiting.append(_Question(request, done, deadline_ms))

    def closed(self, error: KafkaError) -> None:
        questions, self._waiting, self._out = self._waiting + self._out, [], []
        for question in questions:
            _fail(question, error)

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is something to do."""
        if not self._waiting and not self._out:
            return _INFINITY
        for each in (self._waiting, self._out):
            for question in [question for question in each if question.deadline_ms <= now_ms]:
                each.remove(question)
                _fail(question, KafkaTimeoutError("no broker answered in time"))
        wait_ms = min([question.deadline_ms for question in self._waiting + self._out], default=_INFINITY) - now_ms
        if not self._waiting:
            return wait_ms
        if self._not_before_ms > now_ms:
            return min(wait_ms, self._not_before_ms - now_ms)
        nodes = self._nodes()
        node = self._network.least_loaded(nodes)
        if node is None:
            return min([wait_ms, self._retry_backoff_ms, *map(self._network.delay_ms, nodes)])
        if not self._network.ready(node):
            return min(wait_ms, self._network.delay_ms(node))
        question = self._waiting.pop(0)
        self._send(node, question, now_ms)
        return 0.0

    def _send(self, node: Node, question: _Question, now_ms: float) -> None:
        def answered(answer: Any) -> None:
            if question not in self._out:
                return
            self._out.remove(question)
            if isinstance(answer, RetriableError):
                self._waiting.append(question)
                self._not_before_ms = now_ms + self._retry_backoff_ms
            elif isinstance(answer, KafkaError):
                _fail(question, answer)
            elif question.done.set_running_or_notify_cancel():
                question.done.set_result(answer)

        try:
            self._network.send(node, question.request, answered)
        except (KafkaError, EncodeError) as error:
            _fail(question, error)
        else:
            self._out.append(question)


def _fail(question: _Question, error: Exception) -> None:
    if question.done.set_running_or_notify_cancel():
        question.done.set_exception(error)
