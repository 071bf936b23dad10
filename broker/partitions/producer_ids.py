"""Producer ids for this broker, out of blocks that the controller hands out (KIP-730).

Ids are unique in the cluster and never given twice; what is left of a block when the broker stops is lost.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.cluster.controller.requests import ProducerIdBlock

MAX_WAITING: Final = 10_000
"""How many requests may wait for a block at a time; further ones are told to come again."""


class ProducerIds:
    """Gives the next producer id, asking the controller for a block when one is needed.

    `allocate_block()` asks the controller for a block and gives a promise of (first id, last id), both inclusive.

    Threads: any. `_lock` guards all attributes; it is never held while a promise is settled or a block asked for.
    """

    def __init__(self, allocate_block: Callable[[], "Promise[ProducerIdBlock]"]) -> None:
        self._allocate_block = allocate_block
        self._lock = threading.Lock()
        self._next_id = 0
        self._end_id = 0
        self._waiting: deque[Promise[int]] = deque()
        self._asking = False

    def next_id(self) -> Promise[int]:
        """A promise of a producer id; done already unless a new block is needed.

        It fails with BrokerError(COORDINATOR_LOAD_IN_PROGRESS), which clients retry, when the controller gives no block
        or too many are waiting for one.
        """
        promise: Promise[int] = Promise()
        with self._lock:
            producer_id = self._take()
            if producer_id is None:
                if len(self._waiting) >= MAX_WAITING:
                    raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "too many wait for producer ids")
                self._waiting.append(promise)
                ask, self._asking = not self._asking, True
        if producer_id is not None:
            promise.complete(producer_id)
        elif ask:
            self._ask()
        return promise

    def _take(self) -> int | None:
        if self._next_id >= self._end_id:
            return None
        self._next_id += 1
        return self._next_id - 1

    def _ask(self) -> None:
        try:
            block = self._allocate_block()
        except Exception as error:  # noqa: BLE001 - handed on to those who wait
            self._refuse(error)
            return
        block.watch(self._received)

    def _received(self, block: "ProducerIdBlock | None", error: BaseException | None) -> None:
        if block is None:
            self._refuse(error)
            return
        first_id, last_id = block
        with self._lock:
            self._next_id, self._end_id = first_id, last_id + 1
            served = []
            while self._waiting and (producer_id := self._take()) is not None:
                served.append((self._waiting.popleft(), producer_id))
            ask = self._asking = bool(self._waiting)
        for promise, producer_id in served:
            promise.complete(producer_id)
        if ask:
            self._ask()

    def _refuse(self, error: BaseException | None) -> None:
        with self._lock:
            refused = list(self._waiting)
            self._waiting.clear()
            self._asking = False
        for promise in refused:
            promise.fail(BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no block of producer ids: {error}"))
