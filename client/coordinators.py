"""Who coordinates a group or a transactional id: asked for, remembered, and asked for again when it was lost."""

import enum
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import KafkaError, RetriableError, error_of
from kavka.client.backoff import ExponentialBackoff
from kavka.client.metadata import Metadata
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.protocol.api import VERSIONS, ApiKey
from kavka.protocol.errors import EncodeError
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest

_SEVERAL: Final = 4
"""The first version that takes several keys (KIP-699)."""
_KNOWN: Final = (VERSIONS[ApiKey.FIND_COORDINATOR].oldest, VERSIONS[ApiKey.FIND_COORDINATOR].newest)
_MOST_KEYS: Final = 1_000
_INFINITY: Final = float("inf")

log = logging.getLogger(__name__)


class CoordinatorKind(enum.IntEnum):
    """What is coordinated; the numbers are FindCoordinator's."""

    GROUP = 0
    TRANSACTION = 1


class _Search(NamedTuple):
    """A key that is looked for: attempts that failed, and when the next may be made; None: to be said by the clock."""

    failures: int
    not_before_ms: float | None


class _Found(NamedTuple):
    """A coordinator, and the version of the metadata when it was found."""

    node: Node
    version: int


_Key = tuple[CoordinatorKind, str]


class Coordinators:
    """Finds coordinators by asking any node, one request at a time for each kind.

    Bounds: an entry for each key asked for, until `forget`. Threads: the client's owner alone.
    """

    def __init__(
        self,
        network: NetworkPort,
        metadata: Metadata,
        backoff: ExponentialBackoff,
        *,
        on_found: Callable[[CoordinatorKind, str], None] | None = None,
    ) -> None:
        """`on_found` is called, from a callback, when a key's coordinator or its failure is known."""
        self._network: Final = network
        self._metadata: Final = metadata
        self._backoff: Final = backoff
        self._on_found: Final = on_found
        self._found: Final[dict[_Key, _Found]] = {}
        self._failed: Final[dict[_Key, KafkaError]] = {}
        self._wanted: Final[dict[_Key, _Search]] = {}
        self._out: Final[dict[_Key, _Search]] = {}
        """Those that were asked for, and not answered yet."""

    def node(self, kind: CoordinatorKind, key: str) -> Node | None:
        """The coordinator; None while it is looked for, which begins with this, or after a failure.

        One that newer metadata have at another address is looked for anew: who else talks to that broker over the same
        connection would make it anew in turn with this one, each time to the other address.
        """
        found = self._found.get((kind, key))
        if found is not None and self._is_elsewhere(found):
            del self._found[kind, key]
            found = None
        if found is None and (kind, key) not in self._failed and (kind, key) not in self._out:
            self._wanted.setdefault((kind, key), _Search(0, 0.0))
        return found.node if found is not None else None

    def failure(self, kind: CoordinatorKind, key: str) -> KafkaError | None:
        """Why there is none to be found, and no use in looking: not authorised, not a key. `forget` lets try again."""
        return self._failed.get((kind, key))

    def lost(self, kind: CoordinatorKind, key: str, node: Node) -> None:
        """`node` does not coordinate the key, or cannot be reached; ignored if another one is known by now."""
        found = self._found.get((kind, key))
        if found is not None and found.node == node:
            del self._found[kind, key]

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        """Keep nothing of the key: neither coordinator nor failure, nor the wish to know."""
        self._found.pop((kind, key), None)
        self._failed.pop((kind, key), None)
        self._wanted.pop((kind, key), None)
        self._out.pop((kind, key), None)

    def work(self, now_ms: float) -> float:
        """Ask for what is wanted; how long until there is something to do."""
        if not self._wanted:
            return _INFINITY
        for key, search in self._wanted.items():
            if search.not_before_ms is None:
                self._wanted[key] = search._replace(not_before_ms=now_ms + self._backoff.delay_ms(search.failures))
        return min(self._ask(kind, now_ms) for kind in CoordinatorKind)

    def _ask(self, kind: CoordinatorKind, now_ms: float) -> float:
        wanted = [(key, each.not_before_ms or 0.0) for key, each in self._wanted.items() if key[0] is kind]
        if not wanted or any(key[0] is kind for key in self._out):
            return _INFINITY
        due = [key for key, not_before_ms in wanted if not_before_ms <= now_ms]
        if not due:
            return min(not_before_ms for _, not_before_ms in wanted) - now_ms
        nodes = self._metadata.nodes()
        node = self._network.least_loaded(nodes)
        if node is None:
            if all(self._network.served(each) is None for each in nodes):
                self._metadata.request_update()
            return min((self._network.delay_ms(each) for each in nodes), default=_INFINITY)
        if not self._network.ready(node):
            return self._network.delay_ms(node)
        return self._send(kind, node, due[:_MOST_KEYS])

    def _send(self, kind: CoordinatorKind, node: Node, keys: Sequence[_Key]) -> float:
        """How long until there is something to do: at once if nothing was sent, as then nobody will call back."""
        served = self._network.served(node)
        newest = served.newest(ApiKey.FIND_COORDINATOR, _KNOWN) if served is not None else None
        if newest is None or newest < _SEVERAL:
            keys = keys[:1]
            request = FindCoordinatorRequest(key=keys[0][1], key_type=kind, coordinator_keys=[])
            versions = (_KNOWN[0], _SEVERAL - 1)
        else:
            request = FindCoordinatorRequest(key="", key_type=kind, coordinator_keys=[key for _, key in keys])
            versions = (_SEVERAL, _KNOWN[1])
        for key in keys:
            self._out[key] = self._wanted.pop(key)
        try:
            self._network.send(node, request, lambda answer: self._answered(keys, answer), versions=versions)
        except (KafkaError, EncodeError) as error:
            for key in keys:
                self._fail(key, error if isinstance(error, KafkaError) else KafkaError(str(error)))
            return 0.0
        return _INFINITY

    def _answered(self, keys: Sequence[_Key], answer: Any) -> None:
        if isinstance(answer, KafkaError):
            for key in keys:
                self._fail(key, answer)
            return
        rows = {row.key: row for row in answer.coordinators} if answer.coordinators else {keys[0][1]: answer}
        for key in keys:
            row = rows.get(key[1])
            if row is None:
                self._fail(key, error_of(-1, f"the broker said nothing of the coordinator of {key[1]!r}"))
            elif row.error_code:
                self._fail(key, error_of(row.error_code, row.error_message or None))
            elif key in self._out:
                del self._out[key]
                node = Node(row.node_id, row.host, row.port)
                self._found[key] = _Found(node, self._metadata.cluster.version)
                log.debug("coordinator found kind=%s key='%s' node='%s'", key[0].name, key[1], node)
                self._tell(key)

    def _fail(self, key: _Key, error: KafkaError) -> None:
        search = self._out.pop(key, None)
        if search is None:
            # Forgotten meanwhile.
            return
        if isinstance(error, RetriableError):
            self._wanted[key] = _Search(search.failures + 1, None)
            log.debug("no coordinator kind=%s key='%s' error=%r", key[0].name, key[1], str(error))
        else:
            self._failed[key] = error
            self._tell(key)

    def _is_elsewhere(self, found: _Found) -> bool:
        cluster = self._metadata.cluster
        known = cluster.nodes.get(found.node.id) if cluster.version > found.version else None
        return known is not None and (known.host, known.port) != (found.node.host, found.node.port)

    def _tell(self, key: _Key) -> None:
        if self._on_found is not None:
            self._on_found(*key)
