"""One broker with the faults before it: its handlers, its connections' sessions and its files."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from kavka.broker.faults.full_disk import FillableFiles
from kavka.broker.faults.held import LONGEST_HOLD_MS, after, thawed
from kavka.broker.faults.hit import Hit, served_late
from kavka.broker.faults.session import WatchedSession
from kavka.broker.faults.standing import StandingFaults
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.requests.handling import Context, Handler
from kavka.cluster.promise import Promise

if TYPE_CHECKING:
    from kavka.broker.services import Services
    from kavka.storage.files import Files

log = logging.getLogger(__name__)


class Door(Protocol):
    """Where others ask for faults."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class HookedBroker:
    """What `broker/server.py` puts in the place of the plain parts.

    Threads: made, started and stopped by who starts and stops the broker; requests come on its I/O threads.
    """

    session_kind = WatchedSession

    def __init__(
        self, standing: StandingFaults, services: "Services", files: "Files", door: "Door | None" = None
    ) -> None:
        """`door` starts and stops with the broker."""
        self._door = door
        self.services: Final = services
        self.files: Final = FillableFiles(files)
        self._standing = standing

    @property
    def broker_id(self) -> int:
        """The broker's id, once it has one."""
        return self.services.broker_id

    def handlers(self, handlers: Mapping[int, Handler]) -> dict[int, Handler]:
        """The same handlers, each with the faults before it. None is small: I/O threads run all of them."""
        return {key: self._hooked(handler.ready()) for key, handler in handlers.items()}

    def started(self) -> None:
        """It serves: faults can reach it."""
        self._standing.attach(self)
        if self._door is not None:
            self._door.start()

    def stopping(self) -> None:
        """It stops: what was held back must not hold that up. Faults that stand hit it again after a restart."""
        # First, as those who asked by the door may wait for what a frozen broker does not do.
        self._standing.detach(self)
        if self._door is not None:
            self._door.stop()

    def _hooked(self, handler: Handler) -> Handler:
        return Handler(
            handler.request_class,
            (handler.min_version, handler.max_version),
            handler.advertised_min,
            partial(self._run, handler),
            handler.error_answer,
            in_clusters=handler.in_clusters,
        )

    def _run(self, handler: Handler, request: Any, context: Context, services: "Services") -> Any:
        """What the dispatcher calls for each request."""
        if self._standing.is_idle:
            return self._watched(handler.function(request, context, services), context)
        session: Any = context.session
        muted = session.take_mute()
        if muted is not None:
            return after(muted[1], muted[0], context, services, self._later(handler, request, context))
        return self._meet(handler, request, context)

    def _meet(self, handler: Handler, request: Any, context: Context) -> Any:
        services = self.services
        frozen = self._standing.freeze_of(services.broker_id)
        if frozen is not None and frozen.take():
            return after(LONGEST_HOLD_MS, frozen, context, services, self._later(handler, request, context))
        found = self._standing.meet(request, context, services)
        if found is None:
            return self._watched(handler.function(request, context, services), context)
        fault, target, action = found
        log.info("a fault hits fault=%s client_id=%r", fault, context.client_id)
        return self._watched(action.run(Hit(fault, target, request, context, services, handler)), context)

    def _later(self, handler: Handler, request: Any, context: Context) -> Callable[[], Any]:
        return partial(served_late, handler, request, partial(self._meet, handler, request, context))

    def _watched(self, answer: Any, context: Context) -> Any:
        """An answer that comes later must not come while the broker is frozen."""
        if not isinstance(answer, Promise):
            return answer
        later: Promise[Any] = Promise(effects_complete=answer.effects_complete)

        def settle(response: Any, error: BaseException | None) -> None:
            frozen = self._standing.freeze_of(self.services.broker_id)
            if frozen is None or isinstance(error, CloseConnection):
                later.settle(response, error)
            else:
                thawed(frozen, answer, context, self.services).watch(later.settle)

        answer.watch(settle)
        return later
