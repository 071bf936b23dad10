"""What `send` gives back."""

import asyncio
import logging
import time
from collections.abc import Callable, Generator
from typing import Any

from kavka.client.api_errors import KafkaError, KafkaTimeoutError
from kavka.client.producer.delivery import Delivery, RecordMetadata

log = logging.getLogger(__name__)


class SendFuture:
    """A record that was sent, and what becomes of it. Two slots: a million of them may be kept.

        future = producer.send("birds", b"kavka")
        print(future.result(timeout=10).offset)
        print((await producer.send("birds", b"jackdaw")).offset)   # in a coroutine

    Threads: any.
    """

    __slots__ = ("delivery", "index")

    delivery: Delivery
    index: int

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record lies; waits for that up to `timeout` seconds.

        Raises the KafkaError that kept it from being delivered, or KafkaTimeoutError when it is still under way.
        Not from a callback: the thread that calls back would wait for itself.
        """
        delivery, index = self._wait(timeout)
        error = delivery.error(index)
        if error is not None:
            # A copy for each who asks: one exception for many records would gather the tracebacks of all.
            raise _copy(error) from error.__cause__
        return delivery.metadata(index)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Why the record was not delivered, None if it was; waits as `result` does."""
        delivery, index = self._wait(timeout)
        return delivery.error(index)

    def done(self) -> bool:
        """Whether `result` would not wait."""
        return self.delivery.resolve(self.index)[0].is_done

    def add_done_callback(self, callback: "Callable[[SendFuture], Any]") -> None:
        """Call `callback(self)` when it is done: on the client's thread after the record's own callback, or now.

        What it raises is logged.
        """

        def call() -> None:
            try:
                callback(self)
            except BaseException:
                log.exception("a future's callback failed partition='%s'", self.delivery.topic_partition)

        self.delivery.listen(self.index, call)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            self.delivery.listen(self.index, lambda: _call_in(loop, waiter))
            yield from waiter
        return self.result(0)

    def _wait(self, timeout: float | None) -> tuple[Delivery, int]:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            delivery, index = self.delivery.resolve(self.index)
            if delivery.is_done:
                return delivery, index
            left = None if deadline is None else deadline - time.monotonic()
            if (left is not None and left <= 0) or not delivery.wait(left):
                raise KafkaTimeoutError(f"a record to {delivery.topic_partition} is still on its way after {timeout} s")


def new_future(delivery: Delivery, index: int) -> SendFuture:
    """The future of a batch's record."""
    future = SendFuture()
    future.delivery = delivery
    future.index = index
    return future


def _call_in(loop: asyncio.AbstractEventLoop, waiter: "asyncio.Future[None]") -> None:
    try:
        loop.call_soon_threadsafe(_set, waiter)
    except RuntimeError:
        log.debug("a record is done, and the loop that waited for it is closed")


def _set(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def _copy(error: KafkaError) -> KafkaError:
    copied: KafkaError = type(error).__new__(type(error), *error.args)
    copied.args = error.args
    copied.__dict__.update(error.__dict__)
    return copied
