"""The interface to the shared tree: ZooKeeper's own terms and guarantees, whoever keeps the tree.

Guarantees
- Writes are atomic, durable before they are answered, and totally ordered by zxid; zxids grow over restarts.
- `multi` applies all of its operations or none. `pipeline` applies each by itself, in order, in few round trips.
- A watch fires once: after any change that follows the read which set it, sooner or later. It may fire without one,
  and later than the answer of a read that shows the change: what it says is "read again".
- An ephemeral node lives as long as the session that made it. A sequential node's name ends in ten digits that grow
  with every child its parent ever had.
- A lost connection is waited out. Watches stay, and a write that it cut off is looked for in the tree before it is sent
  again: nobody is refused what he did himself (KAFKA-1382). A sequential node needs data that no other writer's
  has, to be known again.
- A lost session ends the ephemeral nodes and the watches; listeners hear of it, and of the next one.

Watches and session listeners run on the registry's own threads. They must return at once (post to a queue) and must not
call the registry, which raises RuntimeError rather than waiting for itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Final, NamedTuple, Protocol

log = logging.getLogger(__name__)

ANY_VERSION = -1
"""As an expected version: whatever the version is."""

MAX_DATA_SIZE_BYTES = 8 << 20
"""What one node may hold at most. ZooKeeper takes 1 MiB; a topic of 10,000 partitions with long lists needs more."""


class Stat(NamedTuple):
    """A node's bookkeeping. Zxids number transactions; times are milliseconds since the epoch."""

    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    ephemeral_owner: int
    data_size_bytes: int
    num_children: int


class Created(NamedTuple):
    """A node that was made: where (with its sequence number), and the zxid of its creation."""

    path: str
    czxid: int


class EventType(Enum):
    """What happened to a watched node. A children watch sees DELETED and CHILDREN_CHANGED, the others the rest."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data changed"
    CHILDREN_CHANGED = "children changed"


class WatchEvent(NamedTuple):
    """Says only that something changed: the watch is spent, read again to see what and to watch on."""

    type: EventType
    path: str


class SessionEvent(Enum):
    """EXPIRED: ephemeral nodes and watches are gone. ESTABLISHED: a new session stands, register and read again."""

    EXPIRED = "expired"
    ESTABLISHED = "established"


Watch = Callable[[WatchEvent], None]
SessionListener = Callable[[SessionEvent], None]


class Create(NamedTuple):
    """Make a node; its parent must exist and not be ephemeral. Result: the path with its sequence number."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Replace a node's data. Result: the new Stat."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node without children. Result: None."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Fail unless the node exists with this version. Result: None."""

    path: str
    version: int = ANY_VERSION


Operation = Create | SetData | Delete | Check
Result = str | Stat | None


class RegistryError(Exception):
    """An operation failed and changed nothing (but see SessionLostError). `path` says where, when it was at a node."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{message}: {path}" if path else message)
        self.path = path


class NoNodeError(RegistryError):
    """The node, or for a create its parent, does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__("no such node", path)


class NodeExistsError(RegistryError):
    def __init__(self, path: str) -> None:
        super().__init__("the node exists", path)


class BadVersionError(RegistryError):
    """Someone else wrote first."""

    def __init__(self, path: str) -> None:
        super().__init__("the node has another version", path)


class NotEmptyError(RegistryError):
    def __init__(self, path: str) -> None:
        super().__init__("the node has children", path)


class NoChildrenForEphemeralsError(RegistryError):
    def __init__(self, path: str) -> None:
        super().__init__("an ephemeral node cannot have children", path)


class InvalidNodeError(RegistryError):
    """A path that is not absolute and clean, or data beyond the limit."""


class RegistryUnavailableError(RegistryError):
    """Closed, out of reach, or the disk failed; a write may be retried once it is back."""


class OutOfReachError(RegistryUnavailableError):
    """There is no connection, and who stops does not wait for one."""


class SessionLostError(OutOfReachError):
    """The session ended while a write was on its way: nobody knows whether it was done."""


class NotPermittedError(RegistryError):
    """ZooKeeper does not let this login do that."""


class RegistryCorruptError(RegistryError):
    """What is stored cannot be read; starting on would lose the cluster's state."""


class RegistryInUseError(RegistryError):
    """Another broker holds the registry, and this kind serves one."""


class RegistryVersionError(RegistryError):
    """Stored by a newer version of Kavka."""


class Registry(Protocol):
    """The tree. All methods may be called by any thread but the registry's own, and block until answered.

    `path` is absolute (`/brokers/ids/1`). Raises the errors above.
    """

    @property
    def session_id(self) -> int:
        """Owner of the ephemeral nodes made here; 0 between a session's end and the next one."""

    def is_own_session(self, session_id: int) -> bool:
        """Whether it is this registry's session, or was one before."""

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> Created: ...

    def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Data and Stat; the watch sees DATA_CHANGED or DELETED. NoNodeError leaves no watch behind."""

    def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[tuple[bytes, Stat] | None]:
        """Data and Stat of many nodes in few round trips, None for those that do not exist.

        The watch sees what `get`'s would, once for each node that exists; it is left on no other.
        """

    def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Its Stat or None; the watch sees CREATED, DATA_CHANGED or DELETED."""

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names, sorted; the watch sees CHILDREN_CHANGED or DELETED."""

    def children_of_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names below many nodes in few round trips, None for nodes that do not exist."""

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """All or none. The error of the first operation that failed is raised; its `path` says which."""

    def pipeline(self, operations: Sequence[Operation], guard: Check | None = None) -> list[Result | RegistryError]:
        """Each by itself, in order, each with its result or its error; with a guard, each only while the guard holds.

        One that cannot be sent, its data being too much, say, has InvalidNodeError for its result.

        BadVersionError with the guard's path is raised as soon as the guard fails: what came before it stands.
        """

    def on_session_event(self, listener: SessionListener) -> None:
        """Call `listener` for the rest of the registry's life."""

    def stop_waiting(self) -> None:
        """From now on a call that finds no connection raises RegistryUnavailableError, and so do those that wait."""

    def close(self) -> None:
        """End the session: ephemeral nodes go, later calls raise RegistryUnavailableError. May be called twice."""


def create_path(registry: Registry, path: str) -> None:
    """Make `path` and its missing ancestors, as empty persistent nodes. Racing makers are welcome."""
    create_paths(registry, [path])


def create_paths(registry: Registry, paths: Sequence[str]) -> None:
    """Make all of `paths` with their missing ancestors in one go."""
    wanted: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")[1:]
        for depth in range(1, len(parts) + 1):
            wanted["/" + "/".join(parts[:depth])] = None
    for result in registry.pipeline([Create(path) for path in wanted]):
        if isinstance(result, RegistryError) and not isinstance(result, NodeExistsError):
            raise result


def get_permitted(
    registry: Registry,
    paths: Iterable[str],
    on_refused: Callable[[NotPermittedError], object],
    watch: Watch | None = None,
) -> dict[str, tuple[bytes, Stat] | None]:
    """As `Registry.get_many`, by path, without the nodes that this login may not read: `on_refused` is told of each.

    One node with another owner's ACL must not hide all that was asked for with it.
    """
    asked = dict.fromkeys(paths)
    while True:
        try:
            return dict(zip(asked, registry.get_many(list(asked), watch), strict=True))
        except NotPermittedError as error:
            if error.path not in asked:
                raise
            del asked[error.path]
            on_refused(error)


def get_readable(
    registry: Registry, paths: Sequence[str], watch: Watch | None = None
) -> list[tuple[bytes, Stat] | None]:
    """As `Registry.get_many`, but a node that this login may not read is logged, and counts as not there."""
    found = get_permitted(registry, paths, partial(log.error, "a node is left out: %s"), watch)
    return [found.get(path) for path in paths]


def children_or_none(registry: Registry, path: str, watch: Watch | None = None) -> list[str]:
    """As `Registry.children`; a node that is missing has none, and the watch hears of its creation."""
    while True:
        try:
            return registry.children(path, watch)
        except NoNodeError:
            if watch is None or registry.exists(path, watch) is None:
                return []


def delete_trees(registry: Registry, paths: Sequence[str], guard: Check | None = None) -> dict[str, RegistryError]:
    """Remove `paths` and everything below them, children first, in one go. What is gone already is no error.

    Gives those of `paths` that are still there, or something below them, with the reason.
    """
    found = [(path, path) for path in paths]
    level = list(found)
    while level:
        names = registry.children_of_many([path for path, _ in level])
        level = [
            (f"{parent}/{name}", top) for (parent, top), below in zip(level, names, strict=True) for name in below or ()
        ]
        found += level
    found.reverse()
    left: dict[str, RegistryError] = {}
    results = registry.pipeline([Delete(path) for path, _ in found], guard)
    for (_, top), result in zip(found, results, strict=True):
        if isinstance(result, RegistryError) and not isinstance(result, NoNodeError):
            left.setdefault(top, result)
    return left


def validate_path(path: str) -> None:
    """Raise InvalidNodeError unless `path` is absolute, without empty parts, `.`, `..` or characters that ZooKeeper
    takes in no path; whatever it lists as a child can be asked for.
    """
    if path == "/":
        return
    parts = path.split("/")
    clean = parts[0] == "" and all(part not in ("", ".", "..") for part in parts[1:]) and len(parts) > 1
    if not clean or _NO_CHARACTER.search(path):
        raise InvalidNodeError("not a path", repr(path[:200]))


_NO_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
"""Of ZooKeeper's `PathUtils`, which sees what is beyond 16 bits as two surrogates."""


def validate_data(path: str, data: bytes) -> None:
    """Raise InvalidNodeError when a node may not hold that much."""
    if len(data) > MAX_DATA_SIZE_BYTES:
        raise InvalidNodeError(f"{len(data)} bytes are more than the {MAX_DATA_SIZE_BYTES} a node may hold", path)


def refusal_of(operation: Operation) -> InvalidNodeError | None:
    """Why an operation may not even be tried; None if it may."""
    try:
        validate_path(operation.path)
        if isinstance(operation, Create | SetData):
            validate_data(operation.path, operation.data)
    except InvalidNodeError as error:
        return error
    return None
