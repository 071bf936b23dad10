"""Starting a reassignment, and seeing it through: throttles are set before it and removed when it is done."""

import argparse
from collections.abc import Mapping, Set
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.cli.counting import counted
from kavka.cli.failing import Failure
from kavka.cli.reassign.cluster_view import log_dirs_of, racks_of, replicas_now, sizes_of
from kavka.cli.reassign.following import follow, note
from kavka.cli.reassign.json_files import Reassignment
from kavka.cli.reassign.moves import bytes_to_move, moves
from kavka.cli.reassign.states import State, checked
from kavka.cli.reassign.throttles import clear_throttles, throttle_log_dirs, throttle_moves
from kavka.client.admin import PartitionReassignment, TopicPartitionReplica
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.api_errors import KafkaError
from kavka.client.errors import DisconnectedError
from kavka.client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin

SHOWN: Final = 3


class Limits(NamedTuple):
    """Bytes per second, None for no limit: of what brokers copy from each other, and between their own directories."""

    between_brokers: int | None = None
    between_log_dirs: int | None = None

    @property
    def are_any(self) -> bool:
        return self.between_brokers is not None or self.between_log_dirs is not None


class Before(NamedTuple):
    """The cluster before a reassignment."""

    living: frozenset[int]
    current: dict[TopicPartition, tuple[int, ...]]
    ongoing: dict[TopicPartition, PartitionReassignment]
    bytes_to_move: dict[TopicPartition, int]


def before(admin: "Admin", wanted: Reassignment, *, is_additional: bool) -> Before:
    """Look at what it will change. Raises Failure for brokers and partitions that are not there.

    And for a reassignment that goes on, if this one is not to be in addition to that.
    """
    ongoing = admin.list_partition_reassignments()
    if ongoing and not is_additional:
        names = ", ".join(map(str, sorted(ongoing)[:SHOWN])) + (", ..." if len(ongoing) > SHOWN else "")
        raise Failure(
            f"{counted(len(ongoing), 'partition moves', 'partitions move')} already: {names}",
            "--additional begins this one as well, and changes throttles",
        )
    living = frozenset(racks_of(admin))
    unknown = {broker_id for replicas in wanted.replicas.values() for broker_id in replicas} - living
    if unknown:
        raise Failure(f"no broker {', '.join(map(str, sorted(unknown)))}")
    current = replicas_now(admin, wanted.replicas)
    held = {broker_id for replicas in current.values() for broker_id in replicas} & living
    sizes = sizes_of(log_dirs_of(admin, held))
    return Before(living, current, ongoing, bytes_to_move(wanted.replicas, current, sizes))


def execute(admin: "Admin", wanted: Reassignment, there: Before, limits: Limits, args: argparse.Namespace) -> int:
    """Begin, wait until it is done unless it is not to be waited for, and remove the throttles; the exit code.

    Raises KafkaError, ItemErrors, KeyboardInterrupt, after it was said what goes on nevertheless.
    """
    with Leftovers(args.reassignment_json_file) as leftovers:
        failed = start(admin, wanted, there, limits, leftovers)
        begun = wanted.replicas.keys() - (failed.errors.keys() if failed is not None else ())
        start_directories(admin, _of_partitions(wanted.log_dirs, begun), args.timeout)
        if not args.no_wait:
            follow(admin, wanted)
            if limits.are_any:
                note(finish(admin, wanted))
    if args.no_wait and limits.are_any:
        note("throttles stay until kavka reassign verify is run, and finds it done")
    if failed is not None:
        raise failed
    if not args.no_wait and not (found := checked(admin, wanted)).is_done:
        lost = [str(row.partition) for row in found.rows if row.state is not State.COMPLETED]
        raise Failure(f"not as wanted after all: {', '.join(lost[:SHOWN])}", "kavka reassign verify says more of it")
    return 0


class Leftovers:
    """Whatever ends its block before its time, Ctrl-C too: says that brokers go on, and which throttles stay."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.is_moving = False
        self.is_throttled = False

    def __enter__(self) -> "Leftovers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not (self.is_moving or self.is_throttled):
            return
        what = " and ".join(
            text
            for text, is_so in (("what has begun goes on", self.is_moving), ("throttles stay set", self.is_throttled))
            if is_so
        )
        removes = " and removes them" if self.is_throttled else ""
        note(
            f"kavka reassign execute: {what}; `kavka reassign verify --wait --reassignment-json-file {self._file}`"
            f" waits for the end{removes}, `kavka reassign cancel --reassignment-json-file {self._file}` gives it up"
        )


def start(
    admin: "Admin", wanted: Reassignment, there: Before, limits: Limits, leftovers: Leftovers
) -> ItemErrors | None:
    """Set throttles and begin; the error of what could not be begun, if something else could.

    Throttles do not stay if nothing was begun and nothing else moves. Raises KafkaError, ItemErrors.
    """
    leftovers.is_throttled = limits.are_any
    if limits.between_brokers is not None:
        found = moves(wanted.replicas, there.current, there.ongoing)
        throttle_moves(admin, found, limits.between_brokers, there.living)
    if limits.between_log_dirs is not None:
        throttle_log_dirs(admin, {each.broker_id for each in wanted.log_dirs}, limits.between_log_dirs)
    leftovers.is_moving = True
    try:
        admin.alter_partition_reassignments(wanted.replicas)
    except ItemErrors as error:
        if error.results:
            return error
        _take_back(admin, wanted, there, leftovers)
        raise
    except DisconnectedError:
        # It may have begun.
        raise
    except KafkaError:
        _take_back(admin, wanted, there, leftovers)
        raise
    return None


def start_directories(admin: "Admin", log_dirs: Mapping[TopicPartitionReplica, str], timeout_ms: int) -> None:
    """Have replicas move to other directories; those that have yet to come to their broker are waited for."""
    if log_dirs:
        admin.alter_replica_log_dirs(log_dirs, timeout_ms=timeout_ms)


def finish(admin: "Admin", wanted: Reassignment) -> str:
    """Remove the throttles, unless something else moves, which they hold for, too; says what it did.

    As Kafka's tool: of all brokers that live, and of the topics that were reassigned.
    """
    others = admin.list_partition_reassignments()
    if others:
        return f"throttles stay: {counted(len(others), 'other partition is', 'other partitions are')} on the move"
    brokers = sorted(racks_of(admin))
    topics = sorted({partition.topic for partition in wanted.replicas})
    clear_throttles(admin, topics, brokers)
    return f"throttles are removed from brokers {','.join(map(str, brokers))} and topics {','.join(topics)}"


def _of_partitions(
    log_dirs: Mapping[TopicPartitionReplica, str], partitions: Set[TopicPartition]
) -> dict[TopicPartitionReplica, str]:
    return {
        replica: directory
        for replica, directory in log_dirs.items()
        if TopicPartition(replica.topic, replica.partition) in partitions
    }


def _take_back(admin: "Admin", wanted: Reassignment, there: Before, leftovers: Leftovers) -> None:
    """Nothing has begun: there is nothing to throttle, unless something else moves."""
    leftovers.is_moving = False
    if leftovers.is_throttled and not there.ongoing:
        clear_throttles(admin, {each.topic for each in wanted.replicas}, there.living)
        leftovers.is_throttled = False
