"""What stands before the requests of a client on a SASL listener: the exchange's verdicts carried out.

Until the client is known, and from the moment its session has expired, every request comes here (`Dispatcher.execute`).
A failure is answered, and the connection closed, after `connection.failed.authentication.delay.ms`, as in Kafka; the
connection runs nothing else meanwhile.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kavka.broker.network.answers import NO_ANSWER
from kavka.broker.security.sasl.exchange import Authenticated, Exchange, Step, Verdict
from kavka.cluster.promise import Promise
from kavka.protocol.api import ApiKey
from kavka.protocol.headers import RequestHeader

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context
    from kavka.broker.requests.session import Session
    from kavka.broker.security.authentication_counts import AuthenticationCounts
    from kavka.broker.security.sasl.sasl_listener import SaslListener
    from kavka.broker.waiting.timer import Timer, TimerEntry
    from kavka.protocol.messages.sasl_handshake import SaslHandshakeResponse

NS_IN_MS: Final = 1_000_000
NEVER_NS: Final = 1 << 80
SHORTEST_NS: Final = 1_000_000_000
"""From one re-authentication of a connection to its next (KIP-368)."""
SHORTEST_FRAME_BYTES: Final = 2
FAILED: Final = "authentication failed"
_ERROR_CODE: Final = slice(8, 10)
"""In a whole answer to ApiVersions, behind its size and correlation id."""

log = logging.getLogger(__name__)


class Passage(Protocol):
    """The ordinary way, as its gate sees it: the dispatcher."""

    def execute(self, context: "Context", *, is_let_in: bool = False) -> bool: ...

    def release(self, context: "Context") -> None: ...

    def reject(self, context: "Context", reason: str) -> bool: ...


class Surroundings(NamedTuple):
    """What gates need of the broker. `now_ns` is the timer's clock."""

    timer: "Timer"
    counts: "AuthenticationCounts"
    now_ns: Callable[[], int]


class SaslGate:
    """One connection's.

    Threads: that which holds the connection's `running`; `end` by its network thread; `rejected` by either; `_expired`,
    which only shuts the session, by the timer's.
    """

    __slots__ = (
        "_around",
        "_authenticated",
        "_begun_ns",
        "_exchange",
        "_expires_ns",
        "_expiry",
        "_listener",
        "_usual_bytes",
    )

    def __init__(self, listener: "Callable[[], SaslListener]", around: Surroundings) -> None:
        """`listener()` is the connection's as it is set now: a client that authenticates again does so by that."""
        self._listener = listener
        self._around = around
        self._exchange: Exchange | None = _exchange(listener())
        """The authentication that goes on; None while the client is known, or its session expired."""
        self._authenticated: Authenticated | None = None
        self._expiry: TimerEntry | None = None
        self._begun_ns = 0
        """When the client began to authenticate again; 0: it did not yet."""
        self._expires_ns = 0
        self._usual_bytes = 0

    def longest_frame_bytes(self, usual_bytes: int) -> int:
        """See Gate."""
        self._usual_bytes = usual_bytes
        return min(usual_bytes, self._listener().max_receive_bytes)

    def rejected(self, listener_name: str) -> None:
        """See Gate."""
        self._around.counts.failed(listener_name, is_repeated=self._authenticated is not None)

    def end(self) -> None:
        """See Gate."""
        self._stop_expiry()

    def execute(self, context: "Context", passage: Passage) -> bool:
        """See Gate."""
        frame = context.frame
        assert frame is not None
        exchange = self._exchange
        if exchange is None:
            if self._is_known(context.session):
                return passage.execute(context)
            is_handshake = frame.nbytes >= SHORTEST_FRAME_BYTES and frame[1] == ApiKey.SASL_HANDSHAKE and not frame[0]
            if not (is_handshake and self.may_begin_again()):
                return self._close_expired(context, passage)
            exchange = self._begin_again(context)
        step = exchange.take(frame)
        if step.verdict is Verdict.LET_THROUGH:
            goes_on = passage.execute(context, is_let_in=True)
            # An answer that is held back will have the versions.
            exchange.versions_told(context.answer is None or context.answer[_ERROR_CODE] == b"\0\0")
            return goes_on
        if step.verdict is Verdict.REFUSED:
            return passage.reject(context, step.reason)
        _take_place(context, exchange.header, passage)
        if step.verdict is Verdict.FAILED:
            self._fail(context, exchange, step)
            return False
        if step.verdict is Verdict.KNOWN:
            self._let_in(context, exchange)
        context.answer = step.answer
        return True

    def _is_known(self, session: "Session") -> bool:
        """Whether the session was shut for the one before it, just when this one was opened: then it is open again."""
        known = self._authenticated
        if known is None or self._around.now_ns() >= self._expires_ns:
            return False
        session.open(known.identity.principal, known.identity.is_by_token)
        if self._around.now_ns() < self._expires_ns:
            return True
        # It may have been shut meanwhile, for its own sake.
        session.shut()
        return False

    def may_begin_again(self) -> bool:
        """See Gate."""
        known = self._authenticated
        if known is None or known.lifetime_ms is None:
            return False
        return not self._begun_ns or self._around.now_ns() - self._begun_ns >= SHORTEST_NS

    def begin_again(
        self, mechanism: str, context: "Context"
    ) -> "SaslHandshakeResponse | Promise[SaslHandshakeResponse]":
        """See Gate."""
        exchange = self._begin_again(context)
        context.session.shut()
        response, reason = exchange.shake_hands(mechanism, context.api_version)
        if not reason:
            return response
        self._note_failure(context, exchange, reason)
        promise: Promise[SaslHandshakeResponse] = Promise()

        def answer() -> None:
            promise.complete(response)
            context.connection.close(FAILED)

        self._around.timer.schedule(answer, self._listener().failure_delay_ms)
        return promise

    def _begin_again(self, context: "Context") -> Exchange:
        self._stop_expiry()
        listener = self._listener()
        context.connection.reader.max_size_bytes = min(self._usual_bytes, listener.max_receive_bytes)
        self._begun_ns = self._around.now_ns()
        self._exchange = exchange = _exchange(listener, self._authenticated)
        return exchange

    def _let_in(self, context: "Context", exchange: Exchange) -> None:
        known = self._authenticated = exchange.authenticated
        assert known is not None
        self._exchange = None
        identity = known.identity
        now_ns = self._around.now_ns()
        self._expires_ns = NEVER_NS if known.lifetime_ms is None else now_ns + known.lifetime_ms * NS_IN_MS
        context.connection.reader.max_size_bytes = self._usual_bytes
        context.session.open(identity.principal, identity.is_by_token)
        if known.lifetime_ms is not None:
            self._expiry = self._around.timer.schedule(context.session.shut, known.lifetime_ms)
            if context.connection.closed:
                self._stop_expiry()
        counts, listener_name = self._around.counts, context.listener_name
        if exchange.is_repeated:
            counts.succeeded_again(listener_name, (now_ns - self._begun_ns) / NS_IN_MS)
        else:
            counts.succeeded(listener_name, known.knows_lifetimes)
        log.debug(
            "authenticated peer=%s:%d listener=%s mechanism=%s principal=%r lifetime_ms=%s",
            context.connection.peer_host,
            context.connection.peer_port,
            listener_name,
            known.mechanism,
            identity.principal,
            known.lifetime_ms,
        )

    def _fail(self, context: "Context", exchange: Exchange, step: Step) -> None:
        """Answer and close in a while. Nothing else of the connection runs until then: nobody lets go of it."""
        self._note_failure(context, exchange, step.reason)
        delay_ms = self._listener().failure_delay_ms
        answer = partial(_answer_and_close, context, step.answer)
        if delay_ms > 0:
            self._around.timer.schedule(answer, delay_ms)
        else:
            answer()

    def _note_failure(self, context: "Context", exchange: Exchange, reason: str) -> None:
        self._around.counts.failed(context.listener_name, is_repeated=exchange.is_repeated)
        log.info(
            "Failed %sauthentication peer=%s:%d listener=%s mechanism=%s reason=%r",
            "re-" if exchange.is_repeated else "",
            context.connection.peer_host,
            context.connection.peer_port,
            context.listener_name,
            exchange.mechanism,
            reason,
        )

    def _close_expired(self, context: "Context", passage: Passage) -> bool:
        passage.release(context)
        self._around.counts.expired()
        context.connection.close_answered("the session has expired")
        return False

    def _stop_expiry(self) -> None:
        expiry, self._expiry = self._expiry, None
        if expiry is not None:
            self._around.timer.cancel(expiry)


def _exchange(listener: "SaslListener", before: Authenticated | None = None) -> Exchange:
    return Exchange(listener.mechanisms, listener, before)


def _take_place(context: "Context", header: RequestHeader | None, passage: Passage) -> None:
    """The request has been read: it waits for its answer now, if it is not there."""
    context.api_key = int(ApiKey.SASL_AUTHENTICATE) if header is None else header.api_key
    context.api_version = 0 if header is None else header.api_version
    context.correlation_id = 0 if header is None else header.correlation_id
    context.client_id = None if header is None else header.client_id
    context.connection.answers.slots.append(context)
    passage.release(context)
    context.local_done_ns = time.monotonic_ns()


def _answer_and_close(context: "Context", answer: bytes) -> None:
    context.answer = answer or NO_ANSWER
    context.connection.close_answered(FAILED)
