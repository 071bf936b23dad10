"""The ordinary way of a request, which all pass that are not prepared: header, version, handler, errors, answer.

Authentication, authorisation and quotas stand here and in `Context`; handlers know of none of it.
"""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from kavka.broker.network.answers import NO_ANSWER, Answer, Part
from kavka.broker.requests.handling import Context, Handler
from kavka.cluster.promise import Promise, without_frames
from kavka.protocol import api
from kavka.protocol.codec import decoder, encode_parts, encoder
from kavka.protocol.errors import BrokerError, DecodeError, ErrorCode
from kavka.protocol.headers import ResponseHead, decode_request_header

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection
    from kavka.broker.network.request_queue import RequestQueue
    from kavka.broker.quotas.charging import Charge
    from kavka.broker.services import Services

API_VERSIONS_KEY: Final = 18
FETCH_KEY: Final = 1

log = logging.getLogger(__name__)


class CloseConnection(Exception):  # noqa: N818 - it asks for something, it does not name a fault
    """Raised by a handler to close the connection: the only answer that acks=0 can get."""


class Route:
    """How one version of one API is decoded, handled and encoded."""

    __slots__ = (
        "decode",
        "encode",
        "function",
        "handler",
        "head",
        "in_parts",
        "name",
        "response_class",
        "version",
    )

    def __init__(self, handler: Handler, version: int) -> None:
        spec = api.spec(handler.api_key)
        self.handler = handler
        self.version = version
        self.name: str = spec.name
        self.function = handler.function
        self.response_class: type[Any] = spec.response_class
        # Some clients leave bytes behind a request's last field (librdkafka in Metadata v13), and Kafka lets them.
        self.decode: Callable[[memoryview, int], Any] = decoder(spec.request_class, version, trailing=True)
        self.encode: Callable[[Any], bytes] = encoder(spec.response_class, version)
        self.head: Final = ResponseHead(handler.api_key, version)
        self.in_parts = handler.api_key == FETCH_KEY


class Dispatcher:
    """Runs requests. One for the broker; called by I/O and network threads, and by whoever completes a promise.

    Threads: `_routes` grows by single assignments of equal values, so that two threads building the same route do no
    harm.
    """

    def __init__(
        self,
        handlers: dict[int, Handler],
        services: "Services",
        queue: "RequestQueue",
        on_rejected: Callable[["Connection", str], None],
    ) -> None:
        self._handlers = handlers
        self._services = services
        self._queue = queue
        self._on_rejected = on_rejected
        self._routes: dict[int, Route] = {}
        self.turns: Final = services.turns
        """Of who runs requests."""

    def execute(self, context: Context, *, is_let_in: bool = False) -> bool:
        """Run one request; False when its connection has to wait for the answer before it runs the next.

        Where the client is not known it is for the gate to say what becomes of it; `is_let_in`: it has said so.
        """
        if context.session.gate is not None and not is_let_in:
            return context.session.gate.execute(context, self)
        frame = context.frame
        connection = context.connection
        assert frame is not None
        try:
            header = decode_request_header(frame)
            context.api_key = key = header.api_key
            context.api_version = version = header.api_version
            context.correlation_id = header.correlation_id
            context.client_id = header.client_id
            route = self._routes.get(key << 16 | version) or self._find_route(key, version)
            connection.answers.slots.append(context)
            if route is None:
                return self._answer_unknown_api_versions(context)
            context.route = route
            context.generation = self._services.generation
            quotas = self._services.quotas
            if quotas is not None and context.session.gate is None:
                context.charge = quotas.charge(key, context.session.principal, header.client_id)
            request = route.decode(frame, header.body_offset)
        except DecodeError as failure:
            return self.reject(context, str(failure))
        try:
            result = route.function(request, context, self._services)
        except CloseConnection as wish:
            if context.charge is not None:
                context.charge.ran(context.api_key, frame.nbytes, request, wish)
            self._queue.release(context.charged_size_bytes)
            connection.close_answered(str(wish), context)
            return False
        except Exception as failure:  # noqa: BLE001 - becomes the request's error answer
            return self._fail(context, route, request, failure)
        if context.charge is not None:
            context.charge.ran(context.api_key, frame.nbytes, request)
        context.frame = None
        if context.charged_size_bytes:
            self._queue.release(context.charged_size_bytes)
        context.local_done_ns = time.monotonic_ns()
        if result.__class__ is Promise:
            return self._await(context, route, request, result)
        self._put_answer(context, route, result)
        return context.charge is None or _goes_on(context.charge, connection)

    def _fail(self, context: Context, route: Route, request: Any, failure: Exception) -> bool:
        if context.charge is not None and context.frame is not None:
            context.charge.ran(context.api_key, context.frame.nbytes, request, failure)
        context.frame = None
        self._queue.release(context.charged_size_bytes)
        context.local_done_ns = time.monotonic_ns()
        if self._put_error(context, route, request, failure):
            return context.charge is None or _goes_on(context.charge, context.connection)
        context.connection.close_answered(_unanswerable(route, failure), context)
        return False

    def _await(self, context: Context, route: Route, request: Any, promise: Promise[Any]) -> bool:
        # A produce or fetch that is parked must not keep its request's buffer alive.
        kept = request if context.api_key not in (0, FETCH_KEY) else None
        effects_complete = promise.effects_complete

        def answer(response: Any, error: BaseException | None) -> None:
            context.completed_ns = time.monotonic_ns()
            connection = context.connection
            if error is None:
                self._put_answer(context, route, response)
            elif isinstance(error, CloseConnection) or not self._put_error(context, route, kept, error):
                # Held until it is closed, as where a handler raises this: nothing may be answered any more.
                if effects_complete:
                    # Requests behind it have run, and cannot be told from those before it.
                    connection.close(_unanswerable(route, error))
                else:
                    connection.close_answered(_unanswerable(route, error), context)
                return
            if context.charge is not None:
                context.charge.answered(later=True)
            connection.flush()
            if connection.answers.slots:
                connection.hold_up_large(context)
            if effects_complete:
                self._queue.wake(connection)
            elif context.charge is None or not context.charge.mute(connection):
                self._queue.go_on(connection)
            if not connection.reading:
                connection.thread.call(connection.thread.resume, connection)

        promise.watch(answer)
        # Where others may run meanwhile they are not to, if there have been too many.
        return effects_complete and (context.charge is None or not context.charge.mute(context.connection))

    def _put_answer(self, context: Context, route: Route, response: Any) -> None:
        """Encode and fill the slot; the caller flushes."""
        if context.charge is not None:
            response = context.charge.told(response, context.api_version)
        if response is None:
            context.answer = NO_ANSWER
            return
        try:
            answer = self._encode(context, route, response)
        except Exception:
            # Nothing can be said about it on the wire any more: the client sees a closed connection, not a wrong
            # answer. The slot stays open, so that no later answer takes its place.
            log.exception("encoding failed api=%s version=%d", route.name, route.version)
            context.connection.close("the answer could not be encoded")
            return
        if isinstance(answer, bytes):
            context.answer = answer
        else:
            context.connection.put_parts(context, answer)

    def _put_error(self, context: Context, route: Route, request: Any, failure: BaseException) -> bool:
        """Fill the slot with the error. False if nothing can carry it: the slot stays open, the connection must go."""
        response = self._error_response(route, request, failure, context)
        without_frames(failure)
        if response is None:
            return False
        self._put_answer(context, route, response)
        return True

    def _encode(self, context: Context, route: Route, response: Any) -> Answer:
        head = route.head
        if not route.in_parts:
            # A handler that keeps encoded answers returns the body itself.
            body = response if response.__class__ is bytes else route.encode(response)
            return head.pack(head.counted_size_bytes + len(body), context.correlation_id) + body
        # The parts that are not in memory are those that the fetch handler put in: pieces of files.
        parts = cast(list[Part], encode_parts(response, route.version))
        size = head.counted_size_bytes
        for part in parts:
            size += len(part) if isinstance(part, bytes | memoryview) else part.size_bytes
        packed = head.pack(size, context.correlation_id)
        first = parts[0]
        if len(parts) == 1 and isinstance(first, bytes):
            return packed + first
        return [packed, *parts]

    def _find_route(self, key: int, version: int) -> Route | None:
        """The route of a served API version. Raises DecodeError for others; None for those of ApiVersions (KIP-511)."""
        handler = self._handlers.get(key)
        if handler is not None and handler.min_version <= version <= handler.max_version:
            route = self._routes[key << 16 | version] = Route(handler.ready(), version)
            return route
        if key == API_VERSIONS_KEY:
            return None
        raise DecodeError(f"api key {key} version {version} is not served")

    def _answer_unknown_api_versions(self, context: Context) -> bool:
        handler = self._handlers[API_VERSIONS_KEY]
        assert handler.error_answer is not None
        response = handler.error_answer(None, ErrorCode.UNSUPPORTED_VERSION, None)
        assert response is not None
        context.frame = None
        context.route = None
        self._queue.release(context.charged_size_bytes)
        context.local_done_ns = time.monotonic_ns()
        route = Route(handler, 0)
        context.answer = route.head.framed(context.correlation_id, route.encode(response))
        return True

    def release(self, context: Context) -> None:
        """Give back what holds the request's bytes: nobody reads them any more."""
        context.frame = None
        if context.charged_size_bytes:
            self._queue.release(context.charged_size_bytes)

    def reject(self, context: Context, reason: str) -> bool:
        """Close the connection when the requests before this one are answered; always False."""
        self.release(context)
        self._on_rejected(context.connection, reason)
        context.connection.close_answered(reason, context)
        return False

    def _error_response(self, route: Route, request: Any, failure: BaseException, context: Context) -> Any:
        """The response that carries the error; None if there is no place for one, or no answer at all (acks=0)."""
        if isinstance(failure, BrokerError):
            code, message = failure.code, failure.message
        else:
            log.error(
                "handler failed api=%s version=%d correlation_id=%d client_id=%r",
                route.name,
                route.version,
                context.correlation_id,
                context.client_id,
                exc_info=failure,
            )
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        if route.handler.error_answer is not None:
            # A request that is forgotten while its answer is awaited cannot be answered entry by entry.
            return None if request is None else route.handler.error_answer(request, code, message)
        response = route.response_class()
        if not hasattr(response, "error_code"):
            return None
        response.error_code = code
        if message is not None and hasattr(response, "error_message"):
            response.error_message = message
        return response


def _goes_on(charge: "Charge", connection: "Connection") -> bool:
    """An answer was made at once: whether the connection's next request may run. If not, it pauses."""
    charge.answered()
    return not charge.mute(connection)


def _unanswerable(route: Route, failure: BaseException) -> str:
    return f"{route.name} failed, and no answer can say so: {failure}"
