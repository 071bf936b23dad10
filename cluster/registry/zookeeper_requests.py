"""The registry's operations as ZooKeeper's requests, and ZooKeeper's answers as the registry's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kazoo import exceptions as kazoo
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    InvalidNodeError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NotPermittedError,
    Operation,
    RegistryError,
    RegistryUnavailableError,
    Result,
    SetData,
    Stat,
    refusal_of,
)
from kavka.cluster.registry.zookeeper_session import Request

MAX_REQUEST_SIZE_BYTES: Final = 0xFFFFF
"""ZooKeeper's `jute.maxbuffer`. It closes the connection of who sends more, and would again at every repetition."""
MAX_TOGETHER: Final = 100
MAX_TOGETHER_BYTES: Final = 256 << 10
_OVERHEAD_BYTES: Final = 160
"""What a request, and each operation of a transaction, has beside its path and data; both schemes of ACLs fit in."""
_SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
_OPEN: Final = "/consumers"
_OPEN_ACLS: Final[Sequence[ACL]] = OPEN_ACL_UNSAFE
_SECRET_ACLS: Final[Sequence[ACL]] = CREATOR_ALL_ACL
_PROTECTED_ACLS: Final[Sequence[ACL]] = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


class Requests:
    """Makes requests below a root.

    Threads: immutable.
    """

    __slots__ = ("_is_protected", "root")

    def __init__(self, root: str, *, set_acl: bool) -> None:
        self.root = root
        self._is_protected = set_acl

    def path(self, path: str) -> str:
        return self.root + path if path != "/" else self.root or "/"

    def below_root(self, path: str) -> str:
        """What `path` made, taken back."""
        return path[len(self.root) :] or "/"

    def acls(self, path: str) -> Sequence[ACL]:
        """As Kafka has them: old consumers write their own, secrets are read by brokers, all else by everyone."""
        if not self._is_protected or path == _OPEN:
            return _OPEN_ACLS
        if path.startswith(_SENSITIVE):
            return _SECRET_ACLS
        return _PROTECTED_ACLS

    def creation(self, create: Create) -> Request:
        """A single creation, answered with path and ZnodeStat."""
        path, acls = self.path(create.path), self.acls(create.path)
        return lambda client: client.create_async(
            path, create.data, acls, create.ephemeral, create.sequential, include_data=True
        )

    def transaction(self, operations: Sequence[Operation]) -> Request:
        def send(client: KazooClient) -> Any:
            transaction = client.transaction()
            for each in operations:
                path = self.path(each.path)
                if isinstance(each, Create):
                    transaction.create(path, each.data, self.acls(each.path), each.ephemeral, each.sequential)
                elif isinstance(each, SetData):
                    transaction.set_data(path, each.data, each.version)
                elif isinstance(each, Delete):
                    transaction.delete(path, each.version)
                else:
                    transaction.check(path, each.version)
            return transaction.commit_async()

        return send

    def results(self, operations: Sequence[Operation], answer: Any) -> list[Result] | RegistryError:
        """What a transaction gave, or the error of its first operation that failed."""
        if isinstance(answer, Exception):
            return error_of(answer, operations[0].path)
        failed = failed_at(answer)
        if failed is not None:
            return error_of(answer[failed], operations[failed].path)
        return [self.result(each) for each in answer]

    def result(self, answer: Any) -> Result:
        if isinstance(answer, ZnodeStat):
            return stat_of(answer)
        return self.below_root(answer) if isinstance(answer, str) else None


def failed_at(answer: Any) -> int | None:
    """Which operation of a transaction has failed, so that the others were not done; None if none has."""
    if isinstance(answer, Exception):
        return None
    failures = (index for index, each in enumerate(answer) if isinstance(each, Exception))
    return next((index for index in failures if not isinstance(answer[index], kazoo.RolledBackError)), None)


def size_of(operation: Operation) -> int:
    """About what an operation takes of a request, rather more than less."""
    data_bytes = len(operation.data) if isinstance(operation, Create | SetData) else 0
    return _OVERHEAD_BYTES + len(operation.path.encode()) + data_bytes


def refusal_of_size(operations: Sequence[Operation]) -> InvalidNodeError | None:
    """Why ZooKeeper would not read such a request; None if it would."""
    size_bytes = _OVERHEAD_BYTES + sum(map(size_of, operations))
    if size_bytes <= MAX_REQUEST_SIZE_BYTES:
        return None
    largest = max(operations, key=size_of)
    reason = f"{size_bytes} bytes are more than the {MAX_REQUEST_SIZE_BYTES} ZooKeeper takes"
    return InvalidNodeError(reason, largest.path)


def batches(left: Sequence[int], operations: Sequence[Operation], guard: Check | None) -> Iterator[list[int]]:
    """Runs of operations that may share a transaction, by their numbers: few and small enough for it to be short, and
    ended by one that moves the guard.
    """
    batch: list[int] = []
    size_bytes = 0
    for index in left:
        operation = operations[index]
        operation_bytes = size_of(operation)
        if batch and (len(batch) >= MAX_TOGETHER or size_bytes + operation_bytes > MAX_TOGETHER_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(index)
        size_bytes += operation_bytes
        if guard is not None and operation.path == guard.path:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


def refusal(operations: Sequence[Operation]) -> InvalidNodeError | None:
    """Why operations may not be sent together; None if they may."""
    return next(filter(None, map(refusal_of, operations)), None) or refusal_of_size(operations)


def stat_of(stat: ZnodeStat) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        pzxid=stat.pzxid,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
        version=stat.version,
        cversion=stat.cversion,
        ephemeral_owner=stat.ephemeralOwner,
        data_size_bytes=stat.dataLength,
        num_children=stat.numChildren,
    )


def error_of(error: Exception, path: str) -> RegistryError:
    """Ours for kazoo's."""
    known = _ERRORS.get(type(error))
    if known is not None:
        return known(path)
    if isinstance(error, _REFUSED_LOGIN):
        return NotPermittedError("ZooKeeper does not permit it to this login (kavka.zookeeper.digest)", path)
    if isinstance(error, kazoo.BadArgumentsError | kazoo.MarshallingError):
        return InvalidNodeError("ZooKeeper refuses the path or the data", path)
    return RegistryUnavailableError(f"ZooKeeper failed ({error!r})", path)


_ERRORS: Final[dict[type[Exception], type[RegistryError]]] = {
    kazoo.NoNodeError: NoNodeError,
    kazoo.NodeExistsError: NodeExistsError,
    kazoo.BadVersionError: BadVersionError,
    kazoo.NotEmptyError: NotEmptyError,
    kazoo.NoChildrenForEphemeralsError: NoChildrenForEphemeralsError,
}
_REFUSED_LOGIN: Final = (kazoo.NoAuthError, kazoo.InvalidACLError, kazoo.SessionClosedRequireSaslError)


def guarded(guard: Check | None, operation: Operation) -> list[Operation]:
    return [operation] if guard is None else [guard, operation]
