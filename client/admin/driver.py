"""One call on its way: items are sent to where they belong, answers folded, and what is left is asked again.

waiting --its node is found and ready--> asked --answered--> result, or error
   ^                                       |
   '-- moved, throttled, disconnected, ... '        until the deadline: then what is left fails with a time-out
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic

from kavka.client.admin.operation import NO_LIMIT, Answered, Item, OneGroupOnlyError, Operation, Outcome, Result
from kavka.client.admin.ports import AdminPorts
from kavka.client.admin.router import Router, moved_codes
from kavka.client.admin.targets import Target, described
from kavka.client.api_errors import (
    BrokerNotAvailableError,
    InvalidRequestError,
    KafkaError,
    KafkaTimeoutError,
    RetriableError,
    UnknownServerError,
)
from kavka.client.call import RequestBuilder, Sendable
from kavka.client.errors import DisconnectedError
from kavka.client.node import Node, NodeKey
from kavka.protocol.errors import EncodeError, ErrorCode
from kavka.protocol.schema import Request, schema_of

log = logging.getLogger(__name__)


class _Waiting:
    """An item that is not settled: when it may be asked again, and what came of it so far."""

    __slots__ = ("attempts", "failure", "is_asked", "is_uncertain", "not_before_ms")

    def __init__(self) -> None:
        self.attempts = 0
        self.not_before_ms = 0.0
        self.failure: KafkaError | None = None
        self.is_asked = False
        self.is_uncertain = False
        """A connection ended while it was asked: it may have been done."""


class _Asked(Generic[Item]):
    """A request that is out."""

    __slots__ = ("items", "node", "version")

    def __init__(self, items: Sequence[Item], node: Node) -> None:
        self.items: Final = items
        self.node: Final = node
        self.version = -1

    def watched(self, request: Sendable) -> RequestBuilder:
        """The request, which says in which version it went out."""
        if isinstance(request, Request):
            key = schema_of(type(request)).key
            assert key is not None
            return RequestBuilder(key, lambda version: self._noted(version, request))
        return RequestBuilder(request.api_key, lambda version: self._noted(version, request.build(version)))

    def _noted(self, version: int, request: Request) -> Request:
        self.version = version
        return request


class AdminCall(Generic[Item, Result]):
    """Drives an operation. Threads: the client's owner alone; `results` and `errors` are anybody's after `on_done`.

    Each item ends in one of the two, the call by its deadline at the latest; `on_done` is called once, on the owner.
    """

    def __init__(
        self, operation: Operation[Item, Result], ports: AdminPorts, deadline_ms: float, on_done: Callable[[], None]
    ) -> None:
        """`deadline_ms` is on the client's clock."""
        self.results: Final[dict[Item, Result]] = {}
        self.errors: Final[dict[Item, KafkaError]] = {}
        self.is_done = False
        self._operation: Final = operation
        self._ports: Final = ports
        self._deadline_ms: Final = deadline_ms
        self._on_done: Final = on_done
        self._router: Final = Router(ports)
        self._waiting: Final[dict[Item, _Waiting]] = {item: _Waiting() for item in operation.items}
        self._at_once = operation.at_once
        self._given_up: Final[dict[NodeKey, int]] = {}
        """How often nodes had failed when what they were asked for was looked for elsewhere."""

    def work(self, now_ms: float) -> float:
        """Send what can be sent; how long until there is something to do even if nothing happens."""
        if self.is_done:
            return float("inf")
        wait_ms = 0.0
        if now_ms >= self._deadline_ms:
            self._time_out()
        elif self._waiting:
            try:
                wait_ms = min(self._send_due(now_ms), self._deadline_ms - now_ms)
            except Exception as error:
                log.exception("an administrative call failed on this side operation=%r", self._operation.name)
                self.fail(UnknownServerError(f"{self._operation.name} failed on this side: {error!r}"))
        if not self._waiting:
            self._end()
            return float("inf")
        return wait_ms

    def fail(self, error: KafkaError) -> None:
        """End the call: what is not settled has failed."""
        if not self.is_done:
            self.errors.update(dict.fromkeys(self._waiting, error))
            self._waiting.clear()
            self._end()

    def _end(self) -> None:
        if not self.is_done:
            self.is_done = True
            self._router.end()
            self._on_done()

    def _send_due(self, now_ms: float) -> float:
        """Ask for all items whose time has come and whose node is known."""
        wait_ms = float("inf")
        nodes: dict[Target, Node | KafkaError | None] = {}
        requests: dict[Any, tuple[Node, list[Item]]] = {}
        for item, waiting in list(self._waiting.items()):
            if waiting.is_asked:
                continue
            if waiting.not_before_ms > now_ms:
                wait_ms = min(wait_ms, waiting.not_before_ms - now_ms)
                continue
            target = self._operation.target(item)
            node = nodes[target] if target in nodes else nodes.setdefault(target, self._router.node(target))
            if isinstance(node, KafkaError):
                self._settle(item, node)
            elif node is not None:
                key = node.key, self._operation.group(item)
                requests.setdefault(key, (node, []))[1].append(item)
            else:
                waiting.failure = self._router.trouble(target) or waiting.failure
                wait_ms = min(wait_ms, self._until_a_broker_can_be_asked())
        for node, items in requests.values():
            wait_ms = min(wait_ms, self._send_all(node, items, now_ms))
        return min(wait_ms, self._router.work(now_ms))

    def _until_a_broker_can_be_asked(self) -> float:
        """For targets that any broker may be: each of them has failed just now."""
        network = self._ports.network
        waits = [network.delay_ms(node) for node in self._ports.metadata.nodes()]
        return min((wait_ms for wait_ms in waits if wait_ms > 0), default=float("inf"))

    def _send_all(self, node: Node, items: list[Item], now_ms: float) -> float:
        while items:
            if not self._ports.network.ready(node):
                self._note_failures(node, items)
                return self._ports.network.delay_ms(node)
            taken = items[: self._at_once]
            try:
                self._send(node, taken, now_ms)
            except OneGroupOnlyError:
                self._at_once = 1
                continue
            except (KafkaError, EncodeError) as error:
                failure = error if isinstance(error, KafkaError) else self._unsendable(error)
                for item in taken:
                    self._settle(item, failure)
            del items[: len(taken)]
        return float("inf")

    def _unsendable(self, error: EncodeError) -> KafkaError:
        """What was asked for has no place in the protocol: a name too long, a number out of range."""
        failure = InvalidRequestError(f"{self._operation.name}: this cannot be asked for: {error}")
        failure.__cause__ = error
        return failure

    def _note_failures(self, node: Node, items: Sequence[Item]) -> None:
        """A node that cannot be reached may be the right one no longer: after each failure it is looked for anew."""
        failures = self._ports.network.failures(node)
        if not failures:
            return
        unreachable = BrokerNotAvailableError(f"node {node} cannot be reached")
        is_news = self._given_up.get(node.key) != failures
        self._given_up[node.key] = failures
        for item in items:
            self._waiting[item].failure = unreachable
            if is_news:
                self._router.lost(self._operation.target(item), node)

    def _send(self, node: Node, items: Sequence[Item], now_ms: float) -> None:
        asked = _Asked(items, node)
        allowed_ms = max(min(self._deadline_ms - now_ms, self._ports.request_timeout_ms, NO_LIMIT), 1)
        request = asked.watched(self._operation.request(items, int(allowed_ms)))
        versions = self._operation.versions(items)
        # The deadline is the caller's: it closes no connection that others use too, so the answer has its whole time.
        self._ports.network.send(node, request, lambda answer: self._answered(asked, answer), versions=versions)
        for item in items:
            self._waiting[item].is_asked = True

    def _answered(self, asked: _Asked[Item], answer: Any) -> None:
        if self.is_done:
            return
        if isinstance(answer, KafkaError):
            self._no_answer(asked, answer)
            return
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        try:
            outcomes = self._read(asked, answer)
        except KafkaError as error:
            for item in asked.items:
                self._fold(item, error, asked.node, throttle_ms, is_of_all=True)
            return
        for item, found in outcomes.items():
            self._fold(item, found, asked.node, throttle_ms)

    def _read(self, asked: _Asked[Item], answer: Any) -> dict[Item, Outcome[Result]]:
        """An outcome for each item that was asked for, whatever the answer holds. Raises what holds for all of them."""
        missing = UnknownServerError(f"the answer of node {asked.node} to {self._operation.name} leaves this out")
        outcomes: dict[Item, Outcome[Result]] = dict.fromkeys(asked.items, missing)
        try:
            for item, found in self._operation.read(Answered(answer, asked.items, asked.node, asked.version)):
                if outcomes.get(item) is missing:
                    outcomes[item] = found
        except KafkaError:
            raise
        except Exception as error:
            log.exception("an answer could not be read operation=%r", self._operation.name)
            bad = UnknownServerError(
                f"the answer of node {asked.node} to {self._operation.name} makes no sense: {error!r}"
            )
            return dict.fromkeys(asked.items, bad)
        return outcomes

    def _fold(
        self, item: Item, found: Outcome[Result], node: Node, throttle_ms: float, *, is_of_all: bool = False
    ) -> None:
        waiting = self._waiting[item]
        if not isinstance(found, KafkaError):
            self.results[item] = found
            del self._waiting[item]
            return
        target = self._operation.target(item)
        if found.code in moved_codes(target):
            self._router.lost(target, node)
        elif waiting.is_uncertain and found.code in self._operation.settled:
            self.results[item] = self._operation.settled_as  # type: ignore[assignment]  # without one, Result is None
            del self._waiting[item]
            return
        elif not self._may_help(item, found, is_of_all):
            if waiting.is_uncertain and found.__cause__ is None:
                # It may be that it was done the first time, and this is said of the second.
                found.__cause__ = waiting.failure
            self._settle(item, found)
            return
        # Who says that it took too long may do it yet.
        waiting.is_uncertain |= found.code == ErrorCode.REQUEST_TIMED_OUT
        throttled_ms = throttle_ms if found.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED else 0
        self._ask_again(item, found, throttled_ms)

    def _may_help(self, item: Item, error: KafkaError, is_of_all: bool) -> bool:
        """Whether to ask again after such an error."""
        operation = self._operation
        if error.code in operation.retried:
            return True
        is_passing = error.code == ErrorCode.REQUEST_TIMED_OUT or (is_of_all and isinstance(error, RetriableError))
        return is_passing and operation.repeatable(item)

    def _no_answer(self, asked: _Asked[Item], error: KafkaError) -> None:
        for item in asked.items:
            self._router.lost(self._operation.target(item), asked.node)
            self._waiting[item].is_uncertain = True
            if isinstance(error, DisconnectedError) and self._operation.repeatable(item):
                self._ask_again(item, error, 0)
            else:
                self._settle(item, error)

    def _ask_again(self, item: Item, error: KafkaError, throttled_ms: float) -> None:
        waiting = self._waiting[item]
        waiting.attempts += 1
        waiting.failure = error
        if waiting.attempts > self._ports.retries:
            self._settle(item, error)
            return
        waiting.is_asked = False
        backoff_ms = self._ports.backoff.delay_ms(waiting.attempts)
        waiting.not_before_ms = self._ports.now_ms() + max(backoff_ms, throttled_ms)

    def _settle(self, item: Item, error: KafkaError) -> None:
        self.errors[item] = error
        del self._waiting[item]

    def _time_out(self) -> None:
        for item, waiting in self._waiting.items():
            target = self._operation.target(item)
            failure = waiting.failure or self._router.trouble(target)
            what = "was not answered" if waiting.is_asked else "could not be asked"
            why = f": {failure}" if failure is not None else ""
            error = KafkaTimeoutError(f"{self._operation.name}: {described(target)} {what} in time{why}")
            error.__cause__ = failure
            self.errors[item] = error
        self._waiting.clear()
