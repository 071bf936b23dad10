"""What many transactions ask one broker at the same time goes there in one request; the next one when that is answered.

A marker, or a question, waits at the other broker until its replicas have it: one request each would have all wait for
all before them.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from kavka.protocol.errors import BrokerError, ErrorCode

MAX_IN_BATCH: Final = 500
MAX_WAITING: Final = 10_000
"""Items of one broker that are not sent yet."""

Item = TypeVar("Item")
Answer = Callable[[Any], object]
"""Takes the whole answer to the request that the item was in, or the BrokerError in its place."""
SendBatch = Callable[[int, list[Item], Answer], None]


class _Waiting(Generic[Item]):
    __slots__ = ("answer", "is_withdrawn", "item", "key")

    def __init__(self, key: Hashable, item: Item, answer: Answer, is_withdrawn: Callable[[], bool]) -> None:
        self.key: Final = key
        self.item: Final = item
        self.answer: Final = answer
        self.is_withdrawn: Final = is_withdrawn


class BatchedRequests(Generic[Item]):
    """`send_batch(broker_id, items, on_answer)` sends one request, and calls `on_answer` once, on another thread.

    Threads: any. `_lock` guards `_waiting`, which has an entry for each broker that is being asked; nobody is called
    with it held.
    """

    def __init__(self, send_batch: "SendBatch[Item]") -> None:
        self._send_batch: Final = send_batch
        self._lock: Final = threading.Lock()
        self._waiting: dict[int, deque[_Waiting[Item]]] = {}

    def put(
        self,
        broker_id: int,
        key: Hashable,
        item: Item,
        answer: Answer,
        is_withdrawn: Callable[[], bool] = lambda: False,
    ) -> None:
        """Ask that broker, now or with the next request; items of one key never go in the same one.

        `answer` is called once: REQUEST_TIMED_OUT, at once, when too many wait; NOT_COORDINATOR when it was withdrawn
        before it was sent.
        """
        waiting = _Waiting(key, item, answer, is_withdrawn)
        with self._lock:
            queue = self._waiting.get(broker_id)
            is_first = queue is None
            if queue is None:
                queue = self._waiting[broker_id] = deque()
            is_full = len(queue) >= MAX_WAITING
            if not is_full:
                queue.append(waiting)
        if is_full:
            answer(BrokerError(ErrorCode.REQUEST_TIMED_OUT, f"too much waits for broker {broker_id}"))
        elif is_first:
            self._send(broker_id)

    def _send(self, broker_id: int) -> None:
        """What waits for that broker, which is asked nothing now."""
        batch: list[_Waiting[Item]] = []
        withdrawn: list[_Waiting[Item]] = []
        with self._lock:
            queue = self._waiting[broker_id]
            keys: set[Hashable] = set()
            again: list[_Waiting[Item]] = []
            while queue and len(batch) < MAX_IN_BATCH:
                each = queue.popleft()
                if each.is_withdrawn():
                    withdrawn.append(each)
                elif each.key in keys:
                    again.append(each)
                else:
                    keys.add(each.key)
                    batch.append(each)
            queue.extendleft(reversed(again))
            if not batch:
                del self._waiting[broker_id]
        for each in withdrawn:
            each.answer(BrokerError(ErrorCode.NOT_COORDINATOR, "it was withdrawn before it was sent"))
        if batch:
            self._send_batch(
                broker_id, [each.item for each in batch], lambda answer: self._answered(broker_id, batch, answer)
            )

    def _answered(self, broker_id: int, batch: list[_Waiting[Item]], answer: Any) -> None:
        # First: what follows from an answer must not hold up the others.
        self._send(broker_id)
        for each in batch:
            each.answer(answer)
