"""Which brokers hold a new partition: pure functions of the live brokers and where to start.

Round robin from a random start; the followers of each partition are shifted once more on every lap, so that a broker's
load is spread over all others when it fails. With racks, brokers are taken in turn from each rack and replicas of a
partition share a rack only when every rack has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kavka.protocol.errors import BrokerError, ErrorCode


def assign_replicas(
    racks: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    start_shift: int,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Replicas of `partition_count` partitions numbered from `first_partition`, the preferred leader first.

    `racks` maps the live brokers to their racks; if any of them has none, racks are not looked at. `start_index` and
    `start_shift` are drawn at random for a new topic. Raises BrokerError(INVALID_PARTITIONS or
    INVALID_REPLICATION_FACTOR).
    """
    if partition_count <= 0:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(racks):
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(racks)}.",
        )
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    brokers = _alternate_racks(known) if len(known) == len(racks) else sorted(racks)
    start = start_index % len(brokers)
    shift = start_shift
    assignment: dict[int, tuple[int, ...]] = {}
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        leader = (partition + start) % len(brokers)
        if len(known) == len(racks):
            assignment[partition] = _spread_over_racks(brokers, known, leader, replication_factor, shift)
        else:
            followers = (_shifted(leader, shift, each, len(brokers)) for each in range(replication_factor - 1))
            assignment[partition] = (brokers[leader], *(brokers[each] for each in followers))
    return assignment


def validate_assignment(
    assignment: Mapping[int, Sequence[int]],
    live: Mapping[int, object],
    *,
    first_partition: int = 0,
    replication_factor: int | None = None,
) -> None:
    """Check replicas that somebody chose: partitions without gaps from `first_partition`, live and distinct brokers,
    one replication factor (`replication_factor` if given). Raises BrokerError(INVALID_REPLICA_ASSIGNMENT).
    """
    expected = range(first_partition, first_partition + len(assignment))
    if sorted(assignment) != list(expected):
        raise _invalid(f"partitions should be a consecutive sequence from {first_partition}: {sorted(assignment)[:20]}")
    for partition in expected:
        replicas = assignment[partition]
        if not replicas:
            raise _invalid(f"partition {partition} has no replicas")
        if len(set(replicas)) != len(replicas):
            raise _invalid(f"partition {partition} names a broker twice: {list(replicas)}")
        replication_factor = replication_factor or len(replicas)
        if len(replicas) != replication_factor:
            raise _invalid(
                f"partition {partition} has {len(replicas)} replicas, others of the topic {replication_factor}"
            )
        unknown = [broker for broker in replicas if broker not in live]
        if unknown:
            raise _invalid(f"partition {partition} names brokers that are not alive: {unknown}")


def _shifted(leader: int, shift: int, follower: int, broker_count: int) -> int:
    return (leader + 1 + (shift + follower) % (broker_count - 1)) % broker_count


def _alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Brokers in turn from each rack: 0 (a), 3 (b), 1 (a), 4 (b), ..."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, columns))
    return [column[row] for row in range(longest) for column in columns if row < len(column)]


def _spread_over_racks(
    brokers: Sequence[int], racks: Mapping[int, str], leader: int, replication_factor: int, shift: int
) -> tuple[int, ...]:
    replicas = [brokers[leader]]
    rack_count = len(set(racks.values()))
    used_racks = {racks[brokers[leader]]}
    step = 0
    while len(replicas) < replication_factor:
        # A full lap over the other racks comes before any rack serves twice.
        offset = 1 + (shift * rack_count + step) % max(1, len(brokers) - 1) if len(brokers) > 1 else 0
        broker = brokers[(leader + offset) % len(brokers)]
        step += 1
        is_fresh_rack = racks[broker] not in used_racks or len(used_racks) == rack_count
        if broker not in replicas and is_fresh_rack:
            replicas.append(broker)
            used_racks.add(racks[broker])
    return tuple(replicas)


def _invalid(reason: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Invalid replica assignment: {reason}.")
