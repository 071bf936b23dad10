"""KRaft's quorum as kafka-metadata-quorum shows it."""

import datetime
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.showing import Report, Table, Value, cell_text
from kavka.protocol.schema import uuid_to_text

if TYPE_CHECKING:
    from kavka.client.admin import QuorumInfo, ReplicaState

REPLICATION: Final = (
    "node",
    "directory_id",
    "log_end_offset",
    "lag",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "status",
)


def status(quorum: "QuorumInfo", cluster_id: str | None) -> Report:
    """Who leads, and how far the slowest follower is."""
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)
    end = leader.log_end_offset if leader is not None else 0
    followers = [each for each in (*quorum.voters, *quorum.observers) if each.replica_id != quorum.leader_id]
    slowest = min(followers, key=lambda each: each.log_end_offset, default=None)
    shown: dict[str, Any] = {
        "cluster_id": cluster_id,
        "leader": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_follower_lag": end - slowest.log_end_offset if slowest is not None else 0,
        "max_follower_lag_time_ms": _lag_time_ms(leader, slowest),
        "voters": [_member(quorum, each) for each in quorum.voters],
        "observers": [_member(quorum, each) for each in quorum.observers],
    }
    return Report("quorum-status", [shown], lambda: [_line(name, value) for name, value in shown.items()])


def _lag_time_ms(leader: "ReplicaState | None", slowest: "ReplicaState | None") -> int | None:
    """How long ago the slowest follower had all; None where that is not told, or it never had."""
    if leader is None or slowest is None:
        return 0
    if leader.last_caught_up_timestamp_ms < 0 or slowest.last_caught_up_timestamp_ms < 0:
        return None
    return max(leader.last_caught_up_timestamp_ms - slowest.last_caught_up_timestamp_ms, 0)


def _member(quorum: "QuorumInfo", state: "ReplicaState") -> dict[str, Any]:
    endpoints = quorum.endpoints.get(state.replica_id, ())
    return {
        "id": state.replica_id,
        "directory_id": uuid_to_text(state.directory_id) if any(state.directory_id) else None,
        "endpoints": [f"{each.name}://{each.host}:{each.port}" for each in endpoints],
    }


def _line(name: str, value: Any) -> str:
    if isinstance(value, list):
        value = [" ".join((str(each["id"]), *each["endpoints"])) for each in value]
    return f"{name.replace('_', ' '):<26}{cell_text(value)}"


def replication(quorum: "QuorumInfo", now_ms: int, *, is_readable: bool) -> Table:
    """A row for each node. With `is_readable` times are dates (UTC), with how long ago they were."""
    leader_end = next((each.log_end_offset for each in quorum.voters if each.replica_id == quorum.leader_id), 0)
    voters = sorted(quorum.voters, key=lambda each: (each.replica_id != quorum.leader_id, each.replica_id))
    rows = [_row(each, leader_end, "Leader" if each.replica_id == quorum.leader_id else "Follower") for each in voters]
    rows += [_row(each, leader_end, "Observer") for each in sorted(quorum.observers)]
    if is_readable:
        rows = [[*row[:4], _when(row[4], now_ms), _when(row[5], now_ms), row[6]] for row in rows]
    return Table("quorum-replication", REPLICATION, rows)


def _row(state: "ReplicaState", leader_end: int, role: str) -> list[Value]:
    return [
        state.replica_id,
        uuid_to_text(state.directory_id) if any(state.directory_id) else None,
        state.log_end_offset,
        leader_end - state.log_end_offset,
        _told(state.last_fetch_timestamp_ms),
        _told(state.last_caught_up_timestamp_ms),
        role,
    ]


def _told(timestamp_ms: int) -> int | None:
    return timestamp_ms if timestamp_ms >= 0 else None


def _when(timestamp_ms: Value, now_ms: int) -> Value:
    if not isinstance(timestamp_ms, int):
        return None
    moment = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z ({(now_ms - timestamp_ms) / 1000:.1f} s ago)"
