"""A request that a fault has hit: what there is of it, and the ways it can go on."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kavka.broker.network.file_part import FilePart
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.cluster.promise import Promise
from kavka.protocol.codec import decoder
from kavka.protocol.errors import BrokerError

if TYPE_CHECKING:
    from kavka.broker.faults.fault import Fault
    from kavka.broker.faults.target import Target
    from kavka.broker.requests.handling import Context, Handler, Services


class Hit(NamedTuple):
    """One request, hit by `fault`, whose rule for it has `target`."""

    fault: "Fault"
    target: "Target"
    request: Any
    context: "Context"
    services: "Services"
    handler: "Handler"
    """The API's own, without faults."""

    def serve(self, request: Any = None) -> Any:
        """What the broker answers without the fault: a response, a promise, or None. Raises as the handler does."""
        return self.handler.function(request or self.request, self.context, self.services)

    def serve_late(self) -> Any:
        """As `serve`, in a promise: what the handler refuses is an answer of its own there. Raises CloseConnection."""
        return served_late(self.handler, self.request, self.serve)

    def decoded(self, response: Any) -> Any:
        """A response as an object, also where the handler keeps it encoded."""
        if response.__class__ is bytes:
            return decoder(self.context.route.response_class, self.context.api_version)(memoryview(response))
        return response


class Action(Protocol):
    """What becomes of a request that a fault hits."""

    def run(self, hit: Hit) -> Any:
        """The response, a promise of it, or None for no answer; may raise, as a handler. On an I/O thread."""


def changed(answer: Any, change: Callable[[Any], Any]) -> Any:
    """`change(response)` of a response or of one that is promised; whether its effects are complete stays so."""
    if not isinstance(answer, Promise):
        return change(answer)
    later: Promise[Any] = Promise(effects_complete=answer.effects_complete)

    def settle(response: Any, error: BaseException | None) -> None:
        if error is not None:
            later.fail(error)
        else:
            later.settle_by(lambda: change(response))

    answer.watch(settle)
    return later


def served_late(handler: "Handler", request: Any, serve: Callable[[], Any]) -> Any:
    """What `serve()` gives; for what it refuses (BrokerError) the answer that says so, else CloseConnection is raised.

    The dispatcher does that at once, but forgets the requests of produces and fetches that are answered by a promise.
    """
    try:
        return serve()
    except BrokerError as failure:
        if handler.error_answer is None:
            raise
        answer = handler.error_answer(request, failure.code, failure.message)
        if answer is None:
            raise CloseConnection(f"it failed late, and no answer can say so: {failure}") from failure
        return answer


def release_records(response: Any) -> None:
    """Let go of the files that a fetch's answer pins, which is not sent."""
    for topic in getattr(response, "responses", None) or ():
        for partition in getattr(topic, "partitions", ()):
            records = getattr(partition, "records", None)
            if isinstance(records, FilePart):
                records.release()
