"""What a fetcher's next fetch says: all partitions once, then what has changed, and never one that is out of date."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.partitions.partition import Partition
from kavka.broker.replication.fetch_state import Phase, moved
from kavka.broker.replication.followed_partitions import FetchPlan, Followed, FollowedPartitions, Key, position_of
from kavka.broker.replication.throttle import ReplicationThrottle
from kavka.protocol.errors import ErrorCode
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_handlers import topic_id_of
from tests.support.function_calls import calls_of
from tests.support.partition_logs import Clock, append, open_log

ME = 1


class Scene:
    """Logs by index, and the partitions of a topic that are followed."""

    def __init__(self, directory: Path, throttle: ReplicationThrottle | None = None, **overrides: Any) -> None:
        self.followed = FollowedPartitions(throttle)
        self._directory = directory
        self._overrides = overrides
        self.logs: dict[int, PartitionLog] = {}

    def follow(self, index: int, leader_epoch: int = 1, topic_id: bytes | None = None) -> Followed:
        if index not in self.logs:
            self.logs[index] = open_log(self._directory / str(index), **self._overrides)
        partition = Partition(ME, "visits", index, topic_id_of("visits") if topic_id is None else topic_id)
        return self.followed.follow(partition, self.logs[index], leader_epoch)

    def grow(self, followed: Followed) -> None:
        append(followed.log, b"x", leader_epoch=followed.state.leader_epoch)
        self.followed.advance(followed, moved(followed.state, position_of(followed.log), 0), to_end=True)

    def plan(self, now_ms: float = 0) -> FetchPlan:
        plan = self.followed.plan(now_ms)
        assert plan is not None
        return plan


def named(plan: FetchPlan) -> list[int]:
    return [index for (_, index), _ in plan.partitions]


def forgotten(plan: FetchPlan) -> list[int]:
    return [index for _, _, index in plan.forgotten]


def of(*indexes: int) -> Iterable[Key]:
    return [("visits", index) for index in indexes]


def test_all_partitions_are_named_once_and_then_what_has_changed(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    entries = [scene.follow(index) for index in range(4)]

    first = scene.plan()
    scene.followed.answered(77)
    scene.grow(entries[2])
    second = scene.plan()
    scene.followed.answered(77)
    third = scene.plan()

    assert (first.session_id, first.session_epoch, named(first)) == (0, 0, [0, 1, 2, 3])
    assert (second.session_id, second.session_epoch, named(second)) == (77, 1, [2])
    assert second.partitions[0][1].fetch_offset == 1
    assert (third.session_epoch, third.partitions, third.forgotten) == (2, [], [])


def test_a_leader_without_room_for_a_session_is_asked_in_full_who_had_data_last(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    entries = [scene.follow(index) for index in range(3)]
    scene.plan()
    scene.followed.answered(0)

    scene.grow(entries[0])

    again = scene.plan()
    assert (again.session_epoch, named(again)) == (0, [1, 2, 0])


@pytest.mark.parametrize(
    ("code", "session_id"), [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 9)]
)
def test_a_session_that_is_refused_begins_anew(tmp_path: Path, code: ErrorCode, session_id: int) -> None:
    scene = Scene(tmp_path)
    scene.follow(0)
    scene.plan()
    scene.followed.answered(9)
    scene.plan()

    scene.followed.refused(code)

    again = scene.plan()
    assert (again.session_id, again.session_epoch, named(again)) == (session_id, 0, [0])


def test_after_no_answer_everything_is_told_anew(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.follow(0)
    scene.plan()
    scene.followed.answered(9)
    scene.plan()

    scene.followed.lost()

    again = scene.plan()
    assert (again.session_id, again.session_epoch, named(again)) == (9, 0, [0])


def test_what_is_followed_no_more_is_forgotten_and_its_answer_dropped(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for index in range(3):
        scene.follow(index)
    scene.plan()
    scene.followed.answered(9)

    assert [each.key for each in scene.followed.unfollow(of(1, 5))] == [("visits", 1)]

    assert scene.followed.asked_for(("visits", 1)) is None
    assert scene.followed.asked_for(("visits", 0)) is not None
    plan = scene.plan()
    assert (named(plan), forgotten(plan)) == ([], [1])


def test_the_last_one_that_leaves_is_forgotten_and_then_nobody_is_asked_for(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.follow(0)
    scene.plan()
    scene.followed.answered(9)

    scene.followed.unfollow(of(0))

    assert forgotten(scene.plan()) == [0]
    scene.followed.answered(0)
    assert scene.followed.plan(0) is None


def test_a_new_leader_epoch_is_told_and_what_was_asked_in_the_old_one_is_dropped(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old = scene.follow(0, leader_epoch=1)
    scene.plan()
    scene.followed.answered(9)

    new = scene.follow(0, leader_epoch=2)

    assert new is not old
    assert scene.followed.asked_for(("visits", 0)) is None
    plan = scene.plan()
    assert plan.partitions[0][1].leader_epoch == 2
    assert plan.forgotten == []
    scene.followed.advance(old, old.state._replace(fetch_offset=99))
    assert new.state.fetch_offset == 0


def test_the_same_epoch_again_changes_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    entry = scene.follow(0)
    scene.plan()
    scene.followed.answered(9)

    assert scene.follow(0) is entry
    assert scene.followed.asked_for(("visits", 0)) is not None


def test_a_topic_made_anew_replaces_the_old_one_in_the_session(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.follow(0, topic_id=b"a" * 16)
    scene.plan()
    scene.followed.answered(9)

    scene.follow(0, leader_epoch=2, topic_id=b"b" * 16)

    plan = scene.plan()
    assert plan.partitions[0][1].topic_id == b"b" * 16
    assert plan.forgotten == [("visits", b"a" * 16, 0)]
    assert scene.followed.name_of(b"a" * 16) is None
    assert scene.followed.name_of(b"b" * 16) == "visits"


def test_a_topic_without_an_id_keeps_all_from_using_ids(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.follow(0)
    assert scene.plan().uses_topic_ids
    scene.follow(1, topic_id=bytes(16))
    assert not scene.plan().uses_topic_ids
    scene.followed.unfollow(of(1))
    assert scene.plan().uses_topic_ids


def test_a_paused_partition_is_left_out_until_its_time_has_come(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    entry = scene.follow(0)
    scene.follow(1)
    scene.plan()
    scene.followed.answered(9)

    scene.followed.pause(entry, until_ms=1000)

    plan = scene.plan(999)
    assert (named(plan), forgotten(plan)) == ([], [0])
    scene.followed.answered(9)
    assert scene.followed.asked_for(("visits", 0)) is None
    assert named(scene.plan(1000)) == [0]


def test_nobody_is_asked_for_while_all_are_paused_and_the_wait_ends_with_the_first(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.followed.pause(scene.follow(0), until_ms=1000)

    assert scene.followed.plan(0) is None
    scene.followed.wait(1001, 60_000, scene.followed.orders, lambda: False)
    assert named(scene.plan(1001)) == [0]


def test_a_log_that_is_to_be_cut_first_is_not_fetched(tmp_path: Path) -> None:
    log = open_log(tmp_path / "0")
    append(log, b"a")
    log.epochs.clear()
    scene = Scene(tmp_path)
    scene.logs[0] = log
    entry = scene.follow(0)

    assert scene.followed.truncating() == [entry]
    assert entry.state.phase is Phase.TRUNCATING
    assert scene.followed.plan(0) is None
    log.truncate_to(0)
    scene.followed.advance(entry, moved(entry.state, position_of(log)))
    assert scene.followed.truncating() == []
    assert named(scene.plan()) == [0]


def test_a_given_up_partition_is_gone_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    entry = scene.follow(0)

    assert scene.followed.give_up(entry)
    assert not scene.followed.give_up(entry)
    assert scene.followed.plan(0) is None


def test_an_exceeded_throttle_keeps_out_who_is_behind_and_only_them(tmp_path: Path) -> None:
    clock = Clock()
    throttle = ReplicationThrottle(
        ME,
        lambda: 100,
        lambda config: config.follower_replication_throttled_replicas,
        window_num=2,
        window_size_ms=1000,
        now_ms=clock,
    )
    scene = Scene(tmp_path, throttle, follower_replication_throttled_replicas=f"0:{ME},1:{ME}")
    entries = [scene.follow(index) for index in range(3)]
    # Each log names itself partition 0, so all three are throttled replicas.
    scene.grow(entries[1])
    assert named(scene.plan()) == [0, 2, 1]
    scene.followed.answered(9)

    throttle.record(entries[0].log, 1000)

    plan = scene.plan()
    assert (named(plan), sorted(forgotten(plan))) == ([], [0, 2])
    scene.followed.answered(9)
    clock.ms += 2000
    assert named(scene.plan()) == [0, 2]


def test_idle_partitions_cost_the_next_fetch_nothing(tmp_path: Path) -> None:
    costs = []
    for partitions in (5, 80):
        scene = Scene(tmp_path / str(partitions))
        entries = [scene.follow(index) for index in range(partitions)]
        for _ in range(2):
            scene.plan()
            scene.followed.answered(9)
        scene.grow(entries[1])
        costs.append(calls_of(scene.plan))
    assert costs[0] == costs[1]


def test_an_order_between_the_plan_and_the_wait_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path)
    waits: list[float | None] = []
    monkeypatch.setattr(scene.followed.changed, "wait", waits.append)
    seen = scene.followed.orders
    assert scene.followed.plan(0) is None

    scene.follow(0)
    scene.followed.wait(0, 60_000, seen, lambda: False)
    scene.followed.wait_out(60_000, seen, lambda: False)
    assert waits == []

    scene.followed.wait(0, 60_000, scene.followed.orders, lambda: False)
    assert waits == [60.0]
