"""The ACLs that count, on the thread that reads and writes them: what a broker's authorizer goes by.

One thread does both, so that what it knows never goes back: the notices that others leave are read, and what this
broker is asked to change is written, each in its turn. Who asked is answered once the change counts here.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from kavka.cluster.acls import Acls, AclUpdate, prepare_acl_tree, read_all_acls, read_changed_acls, update_acls
from kavka.cluster.notices import RETRY_S, Notices
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import (
    InvalidNodeError,
    Registry,
    RegistryError,
    SessionEvent,
    WatchEvent,
    validate_path,
)
from kavka.cluster.znodes.acl import AclChange, AclNode, ResourcePattern
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

AllAcls = Mapping[ResourcePattern, Acls]
OnAcls = Callable[[AllAcls], None]
Change = Callable[[AllAcls], Mapping[ResourcePattern, AclUpdate]]
"""What to write, chosen by what is known; runs on the thread."""
Outcome = tuple[Acls, Acls] | BrokerError
"""A pattern's entries before and after, or why they are as they were."""

MOST_WAITING: Final = 1_000
"""So many changes may wait to be written."""
STOP_PATIENCE_S: Final = 30.0
PARENTS: Final = (AclChange.LITERAL_PARENT, AclChange.PREFIXED_PARENT)


class AclChanges:
    """Knows all ACLs, tells of each change, and makes those that it is asked for.

    Threads: `start` loads on the caller's; everything else happens on `kavka-acl-changes`, which alone has `_acls`,
    `_hidden` and `_notices`. `change` by any; the registry's counts `_sessions`. `on_acls` must not block.
    """

    def __init__(
        self,
        registry: Registry,
        on_acls: OnAcls,
        now_ms: Callable[[], int],
        on_death: Callable[[BaseException], None],
    ) -> None:
        """`on_acls(acls)`: all that count from now on, as a mapping that never changes."""
        self._registry = registry
        self._on_acls = on_acls
        self._on_death = on_death
        self._acls: dict[ResourcePattern, Acls] = {}
        self._notices = Notices(registry, PARENTS, now_ms)
        self._waiting: deque[tuple[Change, Promise[dict[ResourcePattern, Outcome]]]] = deque()
        self._wake = threading.Event()
        self._is_stopped = False
        self._sessions = self._sessions_read = 0
        self._hidden: frozenset[ResourcePattern] = frozenset()
        """What denies types whose folders may not be listed, whatever is stored there. They are tried again."""
        self._thread = threading.Thread(target=self._run, name=thread_name("kavka-acl-changes"), daemon=True)

    def start(self) -> None:
        """Load all there are, and follow what comes. Raises RegistryError: then nothing is known."""
        prepare_acl_tree(self._registry)
        self._registry.on_session_event(self._on_session_event)
        # In this order: what is written between the two is read twice.
        self._notices.begin(self._on_watch)
        self._load(is_first=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_PATIENCE_S)
        self._refuse_waiting()

    def change(self, change: Change) -> Promise[dict[ResourcePattern, Outcome]]:
        """A promise of what became of each pattern that `change` names, once that counts here. Settled on the thread.

        BrokerError: too many wait (REQUEST_TIMED_OUT), or the broker stops.
        """
        promise: Promise[dict[ResourcePattern, Outcome]] = Promise()
        if len(self._waiting) >= MOST_WAITING:
            promise.fail(BrokerError(ErrorCode.REQUEST_TIMED_OUT, "Too many changes of ACLs wait."))
            return promise
        self._waiting.append((change, promise))
        if self._is_stopped:
            self._refuse_waiting()
        self._wake.set()
        return promise

    def _on_watch(self, event: WatchEvent) -> None:
        self._wake.set()

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.ESTABLISHED:
            # The watches went with the session before, and notices may have been purged meanwhile.
            self._sessions += 1
            self._wake.set()

    def _run(self) -> None:
        try:
            has_read = True
            while True:
                self._wake.wait(None if has_read else RETRY_S)
                self._wake.clear()
                if self._is_stopped:
                    return
                self._write_waiting()
                has_read = self._look()
        except BaseException as failure:  # noqa: BLE001 - handed on to the broker, which cannot go on without
            self._on_death(failure)

    def _write_waiting(self) -> None:
        # Those that come meanwhile have their turn when the others' changes were looked for.
        for _ in range(len(self._waiting)):
            try:
                change, promise = self._waiting.popleft()
            except IndexError:
                # Refused meanwhile: the broker stops.
                return
            try:
                outcomes = {pattern: self._write(pattern, update) for pattern, update in change(self._acls).items()}
            except Exception as failure:  # noqa: BLE001 - handed on to the one who asked
                promise.fail(failure)
                continue
            self._swap({pattern: each[1] for pattern, each in outcomes.items() if isinstance(each, tuple)})
            promise.complete(outcomes)

    def _write(self, pattern: ResourcePattern, update: AclUpdate) -> Outcome:
        try:
            return update_acls(self._registry, pattern, update)
        except BrokerError as error:
            return error
        except RegistryError as error:
            log.error("ACLs were not written pattern=%s reason=%s", pattern, error)
            return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))

    def _look(self) -> bool:
        """Read what is new, and hear of what comes next. False if that has to be tried again."""
        try:
            sessions = self._sessions
            changed = self._told_of(self._notices.new(self._on_watch))
            is_known = not self._hidden and sessions == self._sessions_read
            if changed is None or self._notices.has_missed or not is_known:
                self._load()
                self._sessions_read = sessions
            elif changed:
                self._swap(read_changed_acls(self._registry, changed))
            self._notices.done()
        except RegistryError as error:
            log.warning("changes of ACLs are not heard: %s", error)
            return False
        return not self._hidden

    def _load(self, *, is_first: bool = False) -> None:
        hidden: dict[ResourcePattern, RegistryError] = {}
        # At a start that is a reason not to begin; later the others' changes must not wait for it.
        acls = read_all_acls(self._registry, None if is_first else hidden.__setitem__)
        self._hidden = frozenset(hidden)
        for error in hidden.values():
            log.error("all of that type is denied but to super users: %s", error)
        if is_first or acls != self._acls:
            self._acls = acls
            self._on_acls(acls)
            log.info("ACLs loaded patterns=%d entries=%d", len(acls), sum(map(len, acls.values())))

    def _told_of(self, notices: Mapping[str, bytes]) -> list[ResourcePattern] | None:
        """The patterns that have changed. None: nobody knows which, as a notice is in no form that is known."""
        patterns: dict[ResourcePattern, None] = {}
        is_whole = True
        for path, data in notices.items():
            try:
                pattern = AclChange.decode(path, data)
                validate_path(AclNode.path(pattern))
                patterns[pattern] = None
            except ZnodeError as error:
                log.error("all ACLs are read: %s", error)
                is_whole = False
            except InvalidNodeError as error:
                log.error("ignored: %s", error)
        return list(patterns) if is_whole else None

    def _swap(self, changed: Mapping[ResourcePattern, Acls]) -> None:
        """Have these count from now on, beside all others; but what denies a type does until it can be listed."""
        acls = dict(self._acls)
        for pattern, entries in changed.items():
            if pattern in self._hidden:
                continue
            if entries:
                acls[pattern] = entries
            else:
                acls.pop(pattern, None)
        if acls != self._acls:
            self._acls = acls
            self._on_acls(acls)

    def _refuse_waiting(self) -> None:
        while self._waiting:
            try:
                _, promise = self._waiting.popleft()
            except IndexError:
                # The thread was faster.
                return
            promise.fail(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker stops."))
