"""What moves, which throttles that takes, and how much is left of it."""

from kavka.cli.reassign.following import line_of
from kavka.cli.reassign.json_files import Reassignment
from kavka.cli.reassign.moves import Move, brokers_of, bytes_to_move, follower_throttles, leader_throttles, moves
from kavka.cli.reassign.progress import Left, bytes_left, left, size_text
from kavka.cli.reassign.states import State, directory_state, partition_state
from kavka.client.admin import (
    LogDirDescription,
    PartitionReassignment,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartition,
    TopicPartitionReplica,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_throttles_are_for_sources_and_destinations_of_what_moves_and_of_what_moves_already() -> None:
    ongoing = {B0: PartitionReassignment((4, 5, 6), (6,), (4,))}
    found = moves({A0: (2, 3), A1: (1, 2)}, {A0: (1, 2), A1: (1, 2)}, ongoing)
    assert found == {
        B0: Move(frozenset({4, 5}), frozenset({6})),
        A0: Move(frozenset({1, 2}), frozenset({3})),
        A1: Move(frozenset({1, 2}), frozenset()),
    }
    assert leader_throttles(found) == {"a": "0:1,0:2,1:1,1:2", "b": "0:4,0:5"}
    assert follower_throttles(found) == {"a": "0:3", "b": "0:6"}
    assert brokers_of(found) == [1, 2, 3, 4, 5, 6]


def test_a_move_that_is_replaced_has_the_sources_it_had() -> None:
    ongoing = {A0: PartitionReassignment((1, 2, 3), (3,), (1,))}
    assert moves({A0: (2, 4)}, {A0: (1, 2, 3)}, ongoing) == {A0: Move(frozenset({1, 2}), frozenset({4}))}


def test_bytes_are_counted_for_each_broker_that_has_none_yet() -> None:
    current = {A0: (1, 2), A1: (1, 2)}
    assert bytes_to_move({A0: (3, 4), A1: (2, 1)}, current, {A0: 100, A1: 7}) == {A0: 200, A1: 0}


def log_dirs(**sizes: int) -> dict[str, LogDirDescription]:
    """`log_dirs(a0=5)`: one directory with these replicas."""
    replicas = {TopicPartition(name[0], int(name[1:])): ReplicaInfo(size, 0, False) for name, size in sizes.items()}
    return {"/data": LogDirDescription(None, replicas)}


def test_bytes_that_are_left_are_what_new_brokers_lack() -> None:
    ongoing = {A0: PartitionReassignment((1, 3, 4), (3, 4), (1,))}
    there = {1: log_dirs(a0=100), 3: log_dirs(a0=30), 4: {}}
    assert bytes_left(ongoing, there) == {A0: 170}


class Asked:
    """An administrator's client that answers with these."""

    def __init__(
        self, ongoing: dict[TopicPartition, PartitionReassignment], dirs: dict[int, dict[str, LogDirDescription]]
    ) -> None:
        self.ongoing, self.dirs = ongoing, dirs

    def list_partition_reassignments(self, _partitions: object) -> dict[TopicPartition, PartitionReassignment]:
        return self.ongoing

    def describe_log_dirs(self, broker_ids: list[int]) -> dict[int, dict[str, LogDirDescription]]:
        return {each: self.dirs[each] for each in broker_ids}


def test_moves_between_log_directories_count_until_the_copy_takes_its_place() -> None:
    wanted = Reassignment({A0: (1,)}, {TopicPartitionReplica("a", 0, 1): "/new"})
    old = {"/old": LogDirDescription(None, {A0: ReplicaInfo(50, 0, False)})}
    copy = {"/new": LogDirDescription(None, {A0: ReplicaInfo(20, 30, True)})}
    done = {"/new": LogDirDescription(None, {A0: ReplicaInfo(50, 0, False)})}
    assert left(Asked({}, {1: old | copy}), wanted) == Left(0, 1, 30)  # type: ignore[arg-type]  # of Admin two calls
    assert left(Asked({}, {1: done}), wanted).is_nothing  # type: ignore[arg-type]  # of Admin two calls


def test_what_is_left_is_a_line() -> None:
    assert line_of(Left(1, 0, 1536)) == "1 partition left, 1.5 KiB to copy"
    assert line_of(Left(12, 1, 5)) == "12 partitions and 1 log directory move left, 5 B to copy"
    assert line_of(Left(0, 0, 0)) == "all moves are done"
    assert [size_text(each) for each in (0, 1023, 1024, 3 * 1024**3, 2**70)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "3.0 GiB",
        "1048576.0 PiB",
    ]


def test_states_of_partitions() -> None:
    assert partition_state(A0, (1, 2), {A0: (1, 2, 3)}, [A0]) is State.IN_PROGRESS
    assert partition_state(A0, (1, 2), {A0: (1, 2)}, []) is State.COMPLETED
    # In another order the preferred leader is another.
    assert partition_state(A0, (1, 2), {A0: (2, 1)}, []) is State.OTHERWISE
    assert partition_state(A0, (1, 2), {}, []) is State.MISSING


def test_states_of_log_directories() -> None:
    assert directory_state(ReplicaLogDirInfo("/a", 0, "/b", 5), "/b") is State.IN_PROGRESS
    assert directory_state(ReplicaLogDirInfo("/a", 0, "/c", 5), "/b") is State.OTHERWISE
    assert directory_state(ReplicaLogDirInfo("/b", 0, None, -1), "/b") is State.COMPLETED
    assert directory_state(ReplicaLogDirInfo("/a", 0, None, -1), "/b") is State.OTHERWISE
    assert directory_state(ReplicaLogDirInfo(None, -1, None, -1), "/b") is State.MISSING
