"""Log directories of brokers that run: how full they are, and what lies in them (KIP-113, KIP-827)."""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.cluster.members import check_brokers
from kavka.cli.failing import tried
from kavka.cli.showing import BAD, Report, Table, Value, table_lines

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ItemErrors, LogDirDescription

_DIRS: Final = ("broker", "log_dir", "replicas", "size_bytes", "usable_bytes", "total_bytes", "error")
_REPLICAS: Final = ("broker", "log_dir", "topic", "partition", "size_bytes", "offset_lag", "is_future")


def describe(admin: "Admin", args: argparse.Namespace) -> "tuple[Report, ItemErrors | None]":
    """The directories that the command line asks for, and the brokers that did not answer."""
    if args.broker_list is not None:
        check_brokers(admin, args.broker_list)
    ids = args.broker_list or sorted(node.id for node in admin.describe_cluster().nodes)
    found, failure = tried(lambda: admin.describe_log_dirs(ids))
    topics = None if args.topic_list is None else set(args.topic_list)
    dirs = [
        _object(broker, path, log_dir, topics)
        for broker, by_path in sorted(found.items())
        for path, log_dir in sorted(by_path.items())
    ]
    return Report("logdirs-describe", dirs, lambda: _lines(dirs, with_partitions=args.partitions)), failure


def _object(broker: int, path: str, log_dir: "LogDirDescription", topics: set[str] | None) -> dict[str, Any]:
    replicas: list[dict[str, Any]] = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "size_bytes": replica.size_bytes,
            "offset_lag": replica.offset_lag,
            "is_future": replica.is_future,
        }
        for each, replica in sorted(log_dir.replicas.items())
        if topics is None or each.topic in topics
    ]
    return {
        "broker": broker,
        "log_dir": path,
        "error": None if log_dir.error is None else str(log_dir.error),
        "total_bytes": _told(log_dir.total_bytes),
        "usable_bytes": _told(log_dir.usable_bytes),
        "size_bytes": sum(replica["size_bytes"] for replica in replicas),
        "replicas": replicas,
    }


def _told(size_bytes: int) -> int | None:
    return size_bytes if size_bytes >= 0 else None


def _lines(dirs: Sequence[dict[str, Any]], *, with_partitions: bool) -> Iterator[str]:
    rows: list[Sequence[Value]] = [
        [len(each[name]) if name == "replicas" else each[name] for name in _DIRS] for each in dirs
    ]
    yield from table_lines(Table("logdirs-describe", _DIRS, rows, lambda row: BAD if row[-1] is not None else None))
    if with_partitions:
        replicas = [
            [each["broker"], each["log_dir"], *(replica[name] for name in _REPLICAS[2:])]
            for each in dirs
            for replica in each["replicas"]
        ]
        yield ""
        yield from table_lines(Table("logdirs-describe", _REPLICAS, replicas))
