"""The tree of znodes in one SQLite file: what each operation does to it. No threads, no watches, no sessions' lives.

    node     (parent, name) -> data, the Stat's numbers, children_created
    counter  last_zxid, last_session: they grow for ever

The file is in WAL mode with synchronous=FULL: one fsync makes a transaction durable. Locking is exclusive, which
refuses a second process and keeps the WAL's index in plain memory instead of a mapping (a store to a mapped file on a
full disk kills the process). Nobody but its owner may read it: users' credentials and passwords lie in it.

Threads: one thread opens and uses it (SQLite checks that).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kavka.cluster.registry.base import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    RegistryCorruptError,
    RegistryError,
    RegistryInUseError,
    RegistryUnavailableError,
    RegistryVersionError,
    Result,
    Stat,
    WatchEvent,
)

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = int.from_bytes(b"Kavk", "big")

_SCHEMA: Final = (
    """CREATE TABLE node (
        parent TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
        czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, pzxid INTEGER NOT NULL,
        ctime_ms INTEGER NOT NULL, mtime_ms INTEGER NOT NULL, version INTEGER NOT NULL,
        ephemeral_owner INTEGER NOT NULL, num_children INTEGER NOT NULL, children_created INTEGER NOT NULL,
        PRIMARY KEY (parent, name)) WITHOUT ROWID""",
    "CREATE INDEX ephemeral ON node (ephemeral_owner) WHERE ephemeral_owner != 0",
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counter VALUES ('last_zxid', 0), ('last_session', 0)",
    "INSERT INTO node VALUES ('', '', x'', 0, 0, 0, 0, 0, 0, 0, 0, 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
# The fields of Stat. ZooKeeper's cversion counts creations and deletions of children.
_STAT: Final = (
    "czxid, mzxid, pzxid, ctime_ms, mtime_ms, version, 2 * children_created - num_children, ephemeral_owner,"
    " length(data), num_children"
)
_GET: Final = f"SELECT data, {_STAT} FROM node WHERE parent = ? AND name = ?"
_HEAD: Final = "SELECT version, num_children FROM node WHERE parent = ? AND name = ?"
_PARENT: Final = "SELECT ephemeral_owner, children_created FROM node WHERE parent = ? AND name = ?"
_INSERT: Final = "INSERT INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 0, 0)"
_CHILD_ADDED: Final = (
    "UPDATE node SET num_children = num_children + 1, children_created = children_created + 1, pzxid = ?"
    " WHERE parent = ? AND name = ?"
)
_CHILD_REMOVED: Final = "UPDATE node SET num_children = num_children - 1, pzxid = ? WHERE parent = ? AND name = ?"
_SET: Final = (
    "UPDATE node SET data = ?, version = version + 1, mzxid = ?, mtime_ms = ? WHERE parent = ? AND name = ?"
    f" RETURNING {_STAT}"
)
_DELETE: Final = "DELETE FROM node WHERE parent = ? AND name = ?"
_CHILDREN: Final = "SELECT name FROM node WHERE parent = ? ORDER BY name"

_BUSY: Final = frozenset({5, 6})
_OUT_OF_ORDER: Final = frozenset({8, 10, 13, 14})
"""SQLite's READONLY, IOERR, FULL and CANTOPEN: the disk's state, not the file's contents."""


class SqliteTree:
    """An open registry file. Every method raises `sqlite3.Error` as it comes; `explain` turns it into ours."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        """Open or make the file. Raises Registry{InUse,Corrupt,Version,Unavailable}Error."""
        self.path = path
        self._now_ms = now_ms
        self._last_zxid = 0
        try:
            _keep_private(path)
            self._db = sqlite3.connect(path, timeout=0, isolation_level=None, cached_statements=64)
        except OSError as error:
            raise RegistryUnavailableError(
                f"the registry's file cannot be used ({error.strerror})", str(path)
            ) from error
        except sqlite3.Error as error:
            raise explain(error, path) from error
        try:
            self._open()
        except sqlite3.Error as error:
            self._db.close()
            raise explain(error, path) from error
        except RegistryError:
            self._db.close()
            raise

    def _open(self) -> None:
        execute = self._db.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA synchronous = FULL")
        # Before the switch to WAL, which would write to a stranger's file.
        application_id = execute("PRAGMA application_id").fetchone()[0]
        stored_version = execute("PRAGMA user_version").fetchone()[0]
        is_new = application_id == 0 and execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not is_new and application_id != APPLICATION_ID:
            raise RegistryCorruptError("not a Kavka registry", str(self.path))
        if stored_version > SCHEMA_VERSION:
            raise RegistryVersionError(
                f"the registry has schema version {stored_version}, this Kavka knows {SCHEMA_VERSION};"
                " start the newer Kavka again",
                str(self.path),
            )
        execute("PRAGMA journal_mode = WAL")
        if is_new:
            execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                execute(statement)
            execute("COMMIT")
        self._last_zxid = self._counter("last_zxid")

    def close(self) -> None:
        self._db.close()

    # Transactions

    def begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Durable when it returns."""
        self._db.execute("UPDATE counter SET value = ? WHERE name = 'last_zxid'", (self._last_zxid,))
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._last_zxid = self._counter("last_zxid")

    def savepoint(self) -> None:
        self._db.execute("SAVEPOINT multi")

    def release(self) -> None:
        self._db.execute("RELEASE multi")

    def rollback_to_savepoint(self) -> None:
        self._db.execute("ROLLBACK TO multi")
        self._db.execute("RELEASE multi")

    def next_zxid(self) -> int:
        self._last_zxid += 1
        return self._last_zxid

    def begin_session(self) -> int:
        """Within a transaction: number a session, and remove what earlier ones left behind."""
        session_id = self._counter("last_session") + 1
        self._db.execute("UPDATE counter SET value = ? WHERE name = 'last_session'", (session_id,))
        self.remove_ephemerals()
        return session_id

    def remove_ephemerals(self) -> None:
        """Within a transaction: delete every ephemeral node; a registry of one broker has one session at a time."""
        rows = self._db.execute("SELECT parent, name FROM node WHERE ephemeral_owner != 0").fetchall()
        if rows:
            zxid = self.next_zxid()
            for parent, name in rows:
                self._db.execute(_DELETE, (parent, name))
                self._db.execute(_CHILD_REMOVED, (zxid, *_split(parent)))

    # Reading

    def get(self, path: str) -> tuple[bytes, Stat] | None:
        row = self._db.execute(_GET, _split(path)).fetchone()
        return None if row is None else (row[0], Stat._make(row[1:]))

    def children(self, path: str) -> list[str] | None:
        """Names, sorted; None without such a node."""
        names = [row[0] for row in self._db.execute(_CHILDREN, (path,))]
        if not names and self._db.execute(_HEAD, _split(path)).fetchone() is None:
            return None
        return names

    # Writing: each checks everything before it changes anything

    def apply(self, operation: Operation, zxid: int, session_id: int, events: list[WatchEvent]) -> Result:
        """Do it within the transaction that is open, and say in `events` what watchers will hear."""
        if isinstance(operation, Create):
            return self._create(operation, zxid, session_id, events)
        if isinstance(operation, Delete):
            self._delete(operation, zxid, events)
            return None
        if isinstance(operation, Check):
            self._expect(operation.path, operation.version)
            return None
        self._expect(operation.path, operation.version)
        parent, name = _split(operation.path)
        row = self._db.execute(_SET, (operation.data, zxid, self._now_ms(), parent, name)).fetchone()
        events.append(WatchEvent(EventType.DATA_CHANGED, operation.path))
        return Stat._make(row)

    def _create(self, operation: Create, zxid: int, session_id: int, events: list[WatchEvent]) -> str:
        parent, name = _split(operation.path)
        parent_key = _split(parent)
        found = self._db.execute(_PARENT, parent_key).fetchone() if parent else None
        if found is None:
            raise NodeExistsError("/") if operation.path == "/" else NoNodeError(parent)
        parent_owner, children_created = found
        if parent_owner:
            raise NoChildrenForEphemeralsError(parent)
        path = operation.path
        if operation.sequential:
            name = f"{name}{children_created:010d}"
            path = f"{path}{children_created:010d}"
        now_ms = self._now_ms()
        owner = session_id if operation.ephemeral else 0
        try:
            self._db.execute(_INSERT, (parent, name, operation.data, zxid, zxid, zxid, now_ms, now_ms, owner))
        except sqlite3.IntegrityError:
            raise NodeExistsError(path) from None
        self._db.execute(_CHILD_ADDED, (zxid, *parent_key))
        events.append(WatchEvent(EventType.CREATED, path))
        events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent))
        return path

    def _delete(self, operation: Delete, zxid: int, events: list[WatchEvent]) -> None:
        if self._expect(operation.path, operation.version) or operation.path == "/":
            raise NotEmptyError(operation.path)
        parent, name = _split(operation.path)
        self._db.execute(_DELETE, (parent, name))
        self._db.execute(_CHILD_REMOVED, (zxid, *_split(parent)))
        events.append(WatchEvent(EventType.DELETED, operation.path))
        events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent))

    def _expect(self, path: str, version: int) -> int:
        """The node's number of children; raises unless it exists with `version`."""
        row = self._db.execute(_HEAD, _split(path)).fetchone()
        if row is None:
            raise NoNodeError(path)
        if version not in (ANY_VERSION, row[0]):
            raise BadVersionError(path)
        return int(row[1])

    def _counter(self, name: str) -> int:
        row = self._db.execute("SELECT value FROM counter WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise RegistryCorruptError(f"the registry has no counter {name}", str(self.path))
        return int(row[0])


def explain(error: sqlite3.Error, path: Path) -> RegistryError:
    """Our error for SQLite's: busy, the disk's fault, or else the file is not what it should be."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in _BUSY:
        return RegistryInUseError("another broker uses the embedded registry, which serves one", str(path))
    if code in _OUT_OF_ORDER:
        return RegistryUnavailableError(f"the registry's file cannot be used ({error})", str(path))
    return RegistryCorruptError(f"the registry's file is damaged ({error}); restore it from a copy", str(path))


def _keep_private(path: Path) -> None:
    """Make the file if there is none; what was made before by another version is closed to others, its log too.

    SQLite gives its log the permissions of the file. Opens none that is there: to close it again would end the locks
    that this process has on it. Raises OSError.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for each in (path, path.with_name(f"{path.name}-wal")):
            with contextlib.suppress(FileNotFoundError):
                if each.stat().st_mode & 0o077:
                    each.chmod(0o600)


def _split(path: str) -> tuple[str, str]:
    """Parent and name; the root is ("", "")."""
    parent, _, name = path.rpartition("/")
    return (parent or ("/" if name else ""), name)
