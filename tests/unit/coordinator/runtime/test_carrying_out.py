"""How a decision is carried out: append, replay, answer; and what is left when that fails."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kavka.coordinator.runtime.append_errors import is_too_large
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Producer, Result
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue
from kavka.protocol.records.batch import Codec, read_header
from tests.support.internal_log import MemoryLog
from tests.support.tiny_shard import Answers, TinyShard, TinyWorld, not_refused, record_of


class Scene:
    """One partition that is served."""

    def __init__(self, **options: Any) -> None:
        self.world = TinyWorld(**options)
        self.log = MemoryLog()
        self.world.lead(self.log)

    @property
    def shard(self) -> TinyShard:
        (shard,) = self.world.runtime.shards()
        return shard

    def run(self, result: Result) -> Answers:
        answers = Answers()
        self.world.runtime.run(0, lambda _: result, answers.refuse)
        return answers


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.world.runtime.stop()


def test_what_is_put_is_in_the_log_in_memory_and_answered(scene: Scene) -> None:
    answers = scene.world.put("g", 5)

    assert (answers.replies, answers.errors) == ([5], [])
    assert (scene.world.offsets(), scene.log.end_offset, scene.log.woken) == ({"g": 5}, 1, 1)


def test_several_records_are_one_batch(scene: Scene) -> None:
    scene.run(Result([record_of("a", 1), record_of("b", 2), record_of("a", None)]))

    assert [read_header(batch).count for _, batch in scene.log.batches] == [3]
    assert scene.world.offsets() == {"b": 2}


def test_the_log_is_given_what_a_producers_records_were_verified_with(scene: Scene) -> None:
    scene.run(Result([record_of("a", 1)], producer=Producer(7, 0), guard=9))
    scene.world.put("g", 5)

    assert scene.log.guards == [9, 0]


def test_who_is_to_be_answered_is_also_when_nobody_could_be_woken(scene: Scene) -> None:
    def broken() -> None:
        raise RuntimeError("a mistake of ours")

    scene.log.appended = broken  # type: ignore[method-assign]  # what a log must not do

    assert scene.world.put("g", 5).replies == [5]


@pytest.mark.parametrize("is_registered", [True, False])
def test_who_cannot_wait_for_the_high_watermark_is_refused_once(scene: Scene, is_registered: bool) -> None:
    scene.log.holds_high_watermark = True
    when_committed = scene.log.when_committed

    def broken(end_offset: int, done: Any) -> None:
        if is_registered:
            when_committed(end_offset, done)
        raise RuntimeError("a mistake of ours")

    scene.log.when_committed = broken  # type: ignore[method-assign]  # what a log must not do
    answers = scene.world.put("g", 5)
    scene.log.commit(1)

    assert (answers.replies, answers.errors) == ([], [ErrorCode.UNKNOWN_SERVER_ERROR])


def test_what_was_decided_is_answered_though_what_follows_fails(scene: Scene) -> None:
    answers = Answers()

    def fails(_error: object) -> None:
        raise RuntimeError("a mistake of ours")

    def appended() -> Result:
        scene.log.failures.append(BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS))
        return Result([record_of("b", 2)], failed=fails)

    result = Result([record_of("a", 1)], [(answers.reply, "done")], appended=appended)
    scene.world.runtime.run(0, lambda _: result, answers.refuse)

    assert (answers.replies, answers.errors, scene.log.woken) == (["done"], [], 1)


def test_a_marker_that_was_withdrawn_is_not_written(scene: Scene) -> None:
    ended = Answers()
    scene.world.runtime.end_transaction(0, Producer(7, 0), 3, True, ended.end, 0, lambda: True)

    assert (ended.replies, ended.errors, scene.log.end_offset) == ([], [ErrorCode.NOT_COORDINATOR], 0)


def test_the_codec_of_the_settings_is_used() -> None:
    scene = Scene(codec=Codec.GZIP)
    scene.world.put("g", 5)
    scene.world.runtime.stop()

    assert read_header(scene.log.batches[0][1]).codec == Codec.GZIP


def test_replies_wait_for_the_high_watermark_and_reads_for_what_they_may_have_seen(scene: Scene) -> None:
    scene.log.holds_high_watermark = True

    written, read = scene.world.put("g", 5), scene.world.get("g")
    assert (written.replies, read.replies, scene.world.offsets()) == ([], [], {"g": 5})
    scene.log.commit(1)

    assert (written.replies, read.replies) == ([5], [5])
    assert scene.world.get("g").replies == [5]


def test_a_wait_for_the_high_watermark_that_fails_is_refused_as_clients_understand_it(scene: Scene) -> None:
    scene.log.holds_high_watermark = True
    late, deposed = scene.world.put("g", 5), scene.world.put("g", 6)

    first, second = scene.log.waiting
    first[1](BrokerError(ErrorCode.REQUEST_TIMED_OUT))
    second[1](BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    assert (late.errors, deposed.errors) == ([ErrorCode.COORDINATOR_NOT_AVAILABLE], [ErrorCode.NOT_COORDINATOR])


def test_others_who_wait_for_the_high_watermark_too_are_told_by_the_decision(scene: Scene) -> None:
    scene.log.holds_high_watermark = True
    other = Answers()
    asked = scene.run(
        Result(
            [record_of("g", 5)],
            [(other.reply, "well")],
            uncommitted=lambda error: [(other.reply, error.code)],
        )
    )

    scene.log.waiting[0][1](BrokerError(ErrorCode.REQUEST_TIMED_OUT))

    assert (other.replies, asked.errors) == ([ErrorCode.COORDINATOR_NOT_AVAILABLE], [])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_an_append_that_fails_changes_nothing_and_is_refused(scene: Scene, said: ErrorCode, told: ErrorCode) -> None:
    scene.world.put("g", 5)
    scene.log.failures.append(BrokerError(said))

    answers = scene.world.put("g", 6)

    assert (answers.replies, answers.errors) == ([], [told])
    assert (scene.world.offsets(), scene.log.end_offset) == ({"g": 5}, 1)
    assert scene.world.put("g", 7).replies == [7]


def test_failed_says_what_to_answer_instead(scene: Scene) -> None:
    scene.log.failures.append(BrokerError(ErrorCode.MESSAGE_TOO_LARGE))
    seen: list[BrokerError] = []
    answers = Answers()

    def failed(error: BrokerError) -> Result:
        seen.append(error)
        return Result(replies=[(answers.reply, "failed")])

    refused = scene.world.put("g", 6, failed=failed)

    assert (answers.replies, refused.replies, refused.errors) == (["failed"], [], [])
    assert seen[0].code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert is_too_large(seen[0])


def test_a_decision_may_be_followed_by_another(scene: Scene) -> None:
    answers = Answers()

    def appended() -> Result:
        assert scene.world.offsets() == {"a": 1}
        return Result([record_of("b", 2)], [(answers.reply, "b")])

    scene.run(Result([record_of("a", 1)], [(answers.reply, "a")], appended=appended))

    assert answers.replies == ["a", "b"]
    assert scene.world.offsets() == {"a": 1, "b": 2}


def test_nobody_is_answered_twice_when_what_follows_fails(scene: Scene) -> None:
    answers = Answers()

    def appended() -> Result:
        scene.log.failures.append(BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS))
        return Result([record_of("b", 2)])

    with_reply = scene.run(Result([record_of("a", 1)], [(answers.reply, "a")], appended=appended))
    without = scene.run(Result([record_of("a", 1)], appended=appended))

    assert (answers.replies, with_reply.errors) == (["a"], [])
    assert without.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_records_need_not_be_replayed(scene: Scene) -> None:
    scene.run(Result([record_of("g", 5)], replays=False, appended=lambda: None))

    assert (scene.world.offsets(), scene.log.end_offset) == ({}, 1)


def test_an_operation_that_raises_is_refused_without_a_trace(scene: Scene) -> None:
    answers = Answers()

    def refuse(_: TinyShard) -> Result:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    scene.world.runtime.run(0, refuse, answers.refuse)
    with pytest.raises(ZeroDivisionError):
        scene.world.runtime.run(0, lambda _: Result([record_of("g", 1 // 0)]), answers.refuse)

    assert answers.errors == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert scene.world.put("g", 1).replies == [1]


def test_records_that_cannot_be_written_are_refused(scene: Scene) -> None:
    bad = CoordinatorRecord(
        OffsetCommitKey(group="g", topic="t", partition=0),
        OffsetCommitValue(offset=2**63, metadata="", commit_timestamp=0),
        3,
    )

    assert scene.run(Result([bad])).errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert (scene.log.end_offset, scene.world.put("g", 1).replies) == (0, [1])


@pytest.mark.parametrize("breaks", [{"appended": lambda: 1 // 0}, {"records": [record_of("poison", 1)]}], ids=sorted)
def test_a_shard_that_breaks_while_it_replays_is_loaded_anew(scene: Scene, breaks: dict[str, Any]) -> None:
    scene.world.put("g", 5)
    waiting = Answers()
    scene.world.runtime.run(0, lambda shard: shard.wait(waiting.reply), waiting.refuse)
    first = scene.shard

    answers = scene.run(Result(**{"records": [record_of("h", 6)]} | breaks))
    assert answers.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert scene.world.put("g", 9).errors == [ErrorCode.NOT_COORDINATOR]
    scene.world.poison = None
    scene.world.run_jobs()
    scene.world.wait_for(ShardState.ACTIVE)

    assert waiting.replies == [ErrorCode.NOT_COORDINATOR]
    assert scene.shard is not first
    assert scene.world.offsets() in ({"g": 5, "h": 6}, {"g": 5, "poison": 1})


def test_no_lock_is_held_while_replies_go_out(scene: Scene) -> None:
    answers = Answers()

    def reply(_: object) -> None:
        scene.world.runtime.run(0, lambda shard: shard.put("nested", 2, answers.reply), answers.refuse)

    scene.run(Result([record_of("g", 1)], [(reply, None)]))

    assert answers.replies == [2]


def test_a_reply_that_fails_keeps_nobody_else_from_an_answer(scene: Scene) -> None:
    answers = Answers()

    scene.run(Result(replies=[(lambda _: 1 // 0, None), (answers.reply, "b")]))

    assert answers.replies == ["b"]


def test_transactional_records_are_pending_until_their_marker(scene: Scene) -> None:
    kept, dropped, ended = Producer(7, 1), Producer(8, 0), Answers()
    scene.run(Result([record_of("kept", 1)], producer=kept))
    scene.run(Result([record_of("dropped", 2)], producer=dropped))
    assert scene.world.offsets() == {}

    scene.world.runtime.end_transaction(0, kept, 3, True, ended.end)
    scene.world.runtime.end_transaction(0, dropped, 3, False, ended.end)

    assert ended.replies == [None, None]
    assert (scene.world.offsets(), scene.shard.pending) == ({"kept": 1}, {})
    headers = [read_header(batch) for _, batch in scene.log.batches]
    assert [(header.is_transactional, header.is_control, header.producer_id) for header in headers] == [
        (True, False, 7),
        (True, False, 8),
        (True, True, 7),
        (True, True, 8),
    ]


def test_a_marker_that_cannot_be_appended_leaves_the_transaction_open(scene: Scene) -> None:
    scene.run(Result([record_of("g", 1)], producer=Producer(7, 1)))
    scene.log.failures.append(BrokerError(ErrorCode.TRANSACTION_COORDINATOR_FENCED))
    ended, elsewhere = Answers(), Answers()

    scene.world.runtime.end_transaction(0, Producer(7, 1), 3, True, ended.end)
    scene.world.runtime.end_transaction(2, Producer(7, 1), 3, True, elsewhere.end)

    assert ended.errors == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    assert elsewhere.errors == [ErrorCode.NOT_COORDINATOR]
    assert scene.shard.pending == {7: {"g": 1}}


def test_operations_of_many_threads_come_one_after_the_other(scene: Scene) -> None:
    def add(shard: TinyShard) -> Result:
        return Result([record_of("n", shard.offsets.get("n", 0) + 1)])

    def add_often() -> None:
        for _ in range(200):
            scene.world.runtime.run(0, add, not_refused)

    threads = [threading.Thread(target=add_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (scene.world.offsets()["n"], scene.log.end_offset) == (800, 800)


def test_nothing_is_nothing(scene: Scene) -> None:
    assert scene.run(NOTHING).errors == []
    assert (scene.log.end_offset, scene.log.woken) == (0, 0)
