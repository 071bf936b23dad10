"""What becomes of a request that a fault hits."""

import time
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.faults.error_answers import failed_fetch, failed_metadata, refusal
from kavka.broker.faults.held import after, swallow
from kavka.broker.faults.hit import Hit, changed, release_records
from kavka.broker.faults.parting import PARTED, joined, parted
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.cluster.promise import Promise
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.protocol.messages.metadata import MetadataResponse

ACKS_0: Final = 0


class Fail:
    """Answers with an error and does nothing; where partitions fail one by one, those that are not hit are served."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self._code = code
        self._message = message

    def run(self, hit: Hit) -> Any:
        """See Action."""
        code, request, target = self._code, hit.request, hit.target
        api_key, version = hit.context.api_key, hit.context.api_version
        if api_key == ApiKey.METADATA:

            def failed(response: Any) -> "MetadataResponse":
                return failed_metadata(hit.decoded(response), hit.services, code, target.names, target.partition)

            return changed(hit.serve(), failed)
        if api_key == ApiKey.FETCH:
            return failed_fetch(request, version, hit.services, code, target.names)
        rest = None
        if target.topic is not None and api_key in PARTED and getattr(request, "acks", None) != ACKS_0:
            request, rest = parted(request, hit.services.metadata.current.names_by_id, target.names)
        refused = refusal(hit.handler, request, version, code, self._message)
        if refused is None:
            raise CloseConnection(f"a fault made it fail with {code.name}, and no answer can say so")
        return refused if rest is None else changed(hit.serve(rest), lambda response: joined(response, refused))


class Delay:
    """Runs the request later."""

    def __init__(self, delay_ms: float) -> None:
        self._delay_ms = delay_ms

    def run(self, hit: Hit) -> Any:
        """See Action."""
        return after(self._delay_ms, hit.fault, hit.context, hit.services, hit.serve_late)


class Drop:
    """Does what was asked for, and never answers."""

    def run(self, hit: Hit) -> Any:
        """See Action."""
        try:
            answer = hit.serve()
        except BrokerError:
            # That is an answer too.
            answer = Promise[Any]()
        if answer is None:
            # acks=0 has none.
            return None
        if isinstance(answer, Promise):
            answer.watch(lambda response, _: release_records(response))
        else:
            release_records(answer)
        return swallow(hit.fault, hit.context, hit.services)


class Cut:
    """Closes the connection, before the request is done or when it is."""

    def __init__(self, *, after_work: bool) -> None:
        self._after_work = after_work

    def run(self, hit: Hit) -> Any:
        """See Action."""
        if not self._after_work:
            raise CloseConnection("a fault cut it before the work")
        try:
            answer = hit.serve()
        except BrokerError as failure:
            # That is an answer too.
            raise _cut_after_work() from failure
        if not isinstance(answer, Promise):
            release_records(answer)
            raise _cut_after_work()
        cut: Promise[Any] = Promise(effects_complete=answer.effects_complete)

        def settle(response: Any, _: BaseException | None) -> None:
            release_records(response)
            cut.fail(_cut_after_work())

        answer.watch(settle)
        return cut


class Throttle:
    """Answers at once that a quota was exceeded, and reads on when the time is up, as Kafka does (KIP-219)."""

    def __init__(self, throttle_time_ms: int) -> None:
        self._throttle_time_ms = throttle_time_ms

    def run(self, hit: Hit) -> Any:
        """See Action."""

        def throttled(response: Any) -> Any:
            session: Any = hit.context.session
            session.mute(hit.fault, time.monotonic() + self._throttle_time_ms / 1000)
            if response is None:
                # acks=0 has none; the connection is muted all the same.
                return None
            response = hit.decoded(response)
            if hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = self._throttle_time_ms
            return response

        return changed(hit.serve(), throttled)


def _cut_after_work() -> CloseConnection:
    return CloseConnection("a fault cut it after the work")
