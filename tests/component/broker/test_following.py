"""Followers end with their leader's bytes: real logs, real Fetch handlers, fetchers that step when they are told to."""

import random
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import EpochEndOffset, FetchResponse
from tests.support.partition_logs import batch_of
from tests.support.replicas import Replicas

SMALL_SEGMENTS = {"segment.bytes": "600"}


@pytest.mark.parametrize("version", [12, 13, 17])
def test_a_follower_copies_what_its_leader_has_and_learns_what_is_committed(tmp_path: Path, version: int) -> None:
    replicas = Replicas(tmp_path, version=version, config=SMALL_SEGMENTS)
    replicas.elect(1)
    for number in range(20):
        replicas.produce(1, b"%d" % number)

    replicas.catch_up()

    assert replicas.contents(2) == replicas.contents(1) != b""
    assert replicas.log(2).epochs.entries == replicas.log(1).epochs.entries
    assert replicas.log(2).high_watermark == replicas.log(1).high_watermark == 20
    replicas.close()


def test_a_former_leader_gives_up_what_it_alone_had(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")
    replicas.catch_up()
    replicas.produce(1, b"never copied")
    replicas.elect(2)
    replicas.produce(2, b"b")
    replicas.produce(2, b"c")

    replicas.catch_up()

    assert replicas.contents(1) == replicas.contents(2)
    assert replicas.log(1).log_end_offset == 3
    assert replicas.log(1).epochs.entries == replicas.log(2).epochs.entries == ((0, 0), (1, 1))
    replicas.close()


def test_a_former_leader_that_appended_nothing_forgets_its_epoch_and_goes_on(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, count=3)
    replicas.elect(1)
    replicas.produce(1, b"a")
    replicas.catch_up()
    replicas.elect(2, tell=[2])  # nobody else hears of it, and nothing is appended
    replicas.elect(3)
    replicas.produce(3, b"b")

    replicas.catch_up()

    assert replicas.contents(1) == replicas.contents(2) == replicas.contents(3)
    assert replicas.log(2).epochs.entries == ((0, 0), (2, 1))
    replicas.close()


def test_an_empty_replica_begins_where_the_leaders_log_begins(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, config=SMALL_SEGMENTS)
    replicas.elect(1, tell=[1])
    for number in range(20):
        replicas.produce(1, b"%d" % number)
    leader = replicas.log(1)
    leader.advance_high_watermark(20)
    leader.delete_records_before(13)
    leader.delete_old_segments(0)

    replicas.order(2, 1, 0, 0)
    replicas.catch_up([2])

    assert (replicas.log(2).log_start_offset, replicas.log(2).log_end_offset) == (13, 20)
    assert replicas.contents(1).endswith(replicas.contents(2))
    replicas.close()


def test_a_replica_that_begins_inside_of_a_batch_has_the_batch(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1, tell=[1])
    replicas.produce(1, b"a", b"b", b"c")
    replicas.log(1).advance_high_watermark(3)
    replicas.log(1).delete_records_before(2)

    replicas.order(2, 1, 0, 0)
    replicas.catch_up([2])

    assert replicas.contents(2) == replicas.contents(1)
    assert replicas.log(2).log_start_offset == 2
    replicas.close()


def test_the_leaders_start_reaches_the_follower_and_the_followers_the_leader(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    for number in range(5):
        replicas.produce(1, b"%d" % number)
    replicas.catch_up()

    partition = replicas.cores[1].replicas.partitions[replicas.TOPIC, 0]
    replicas.log(1).delete_records_before(3)
    partition.wake_all()
    replicas.catch_up([2], rounds=3)

    assert replicas.log(2).log_start_offset == 3
    assert partition.followers[2].log_start_offset == 3
    replicas.close()


def test_a_replica_beyond_its_leaders_end_is_cut(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")
    replicas.catch_up()
    for number in range(4):
        replicas.produce(1, b"%d" % number)
    replicas.elect(2)  # from outside the ISR, and it appends nothing

    replicas.catch_up()

    assert replicas.log(1).log_end_offset == 1
    assert replicas.contents(1) == replicas.contents(2)
    replicas.close()


def test_a_log_without_epochs_is_cut_to_its_high_watermark(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")
    replicas.catch_up()
    replicas.produce(1, b"b")
    replicas.log(1).epochs.clear()

    replicas.elect(2)
    replicas.step(1)

    assert replicas.log(1).log_end_offset == 1
    replicas.produce(2, b"c")
    replicas.catch_up()
    assert replicas.contents(1) == replicas.contents(2)
    replicas.close()


def test_an_idle_partition_is_named_once_and_an_empty_answer_changes_nothing(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, partitions=3)
    for index in range(3):
        replicas.elect(1, index)
    replicas.produce(1, b"a", index=1)
    replicas.catch_up([2], rounds=6)

    plans = replicas.leaders[2, 1].plans
    assert [len(plan.partitions) for plan in plans][:2] == [3, 1]
    assert [len(plan.partitions) for plan in plans[3:]] == [0] * len(plans[3:])
    assert len({plan.session_id for plan in plans[1:]}) == 1
    replicas.close()


def test_a_bad_batch_is_fetched_again_after_the_back_off(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")

    def spoil(answer: FetchResponse) -> None:
        part = answer.responses[0].partitions[0]
        part.records = bytes(part.records[:-1]) + bytes([part.records[-1] ^ 1])

    way = replicas.leaders[2, 1]
    way.tamper = spoil
    replicas.step(2)

    assert (replicas.log(2).log_end_offset, replicas.log(2).size_bytes) == (0, 0)
    way.tamper = lambda answer: None
    replicas.step(2)
    assert replicas.log(2).log_end_offset == 0
    replicas.now_ms += 1000
    replicas.step(2)
    assert replicas.contents(2) == replicas.contents(1)
    assert replicas.managers[2].failed == frozenset()
    replicas.close()


def test_what_cannot_be_appended_fails_the_partition_until_its_next_order(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, partitions=2)
    for index in range(2):
        replicas.elect(1, index)
        replicas.produce(1, b"a", index=index)
    replicas.catch_up([2], rounds=2)
    for index in range(2):
        replicas.produce(1, b"b", index=index)

    def repeat(answer: FetchResponse) -> None:
        part = answer.responses[0].partitions[0]
        part.records = bytes(batch_of(b"again"))

    way = replicas.leaders[2, 1]
    way.tamper = repeat
    replicas.step(2)
    way.tamper = lambda answer: None
    replicas.catch_up([2], rounds=3)

    failed = {index for _, index in replicas.managers[2].failed}
    assert len(failed) == 1
    assert {replicas.log(2, index).log_end_offset for index in failed} == {1}
    assert {replicas.log(2, index).log_end_offset for index in {0, 1} - failed} == {2}
    replicas.elect(1, failed.pop())
    replicas.catch_up([2])
    assert replicas.managers[2].failed == frozenset()
    assert [replicas.contents(2, index) == replicas.contents(1, index) for index in range(2)] == [True, True]
    replicas.close()


def test_an_answer_for_an_epoch_that_is_over_changes_nothing(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.produce(1, b"a")
    way = replicas.leaders[2, 1]
    way.tamper = lambda answer: replicas.order(2, 2, 0, 1) if answer.responses else None

    replicas.step(2)

    assert (replicas.log(2).log_end_offset, replicas.log(2).epochs.entries) == (0, ((1, 0),))
    replicas.close()


def test_a_follower_behind_the_controller_waits_and_one_ahead_of_it_fails(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.order(2, 1, 0, 5)
    replicas.step(2)  # the leader does not know of that epoch yet
    assert replicas.managers[2].failed == frozenset()
    replicas.order(1, 1, 0, 6)
    replicas.catch_up([2], rounds=2)

    assert replicas.managers[2].failed == {(replicas.TOPIC, 0)}
    replicas.close()


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_refused_fetch_begins_another_session(tmp_path: Path, code: ErrorCode) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.catch_up([2], rounds=2)
    replicas.produce(1, b"a")
    way = replicas.leaders[2, 1]
    way.tamper = lambda answer: setattr(answer, "error_code", code)
    fetcher = replicas.managers[2].fetchers[0]
    fetcher.is_stopping = True  # waits for nothing

    replicas.step(2)
    way.tamper = lambda answer: None
    replicas.step(2)

    assert way.plans[-1].session_epoch == 0
    assert replicas.contents(2) == replicas.contents(1)
    replicas.close()


@pytest.mark.parametrize("seed", range(30))
def test_a_leader_that_lies_ends_no_fetcher_and_spoils_no_log(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    replicas = Replicas(tmp_path, partitions=2)
    for index in range(2):
        replicas.elect(1, index)
        replicas.produce(1, b"a", b"b", index=index)

    def lie(answer: FetchResponse) -> None:
        for topic in answer.responses:
            for part in topic.partitions:
                number = chance.choice([-(1 << 63), -1, 0, 1, 5, (1 << 63) - 1])
                what = chance.randrange(8)
                if what == 0:
                    part.error_code = chance.choice([-1, 1, 74, 76, 12345])
                elif what == 1:
                    part.high_watermark = number
                elif what == 2:
                    part.log_start_offset = number
                elif what == 3:
                    part.diverging_epoch = EpochEndOffset(epoch=chance.randint(-1, 9), end_offset=number)
                elif what == 4:
                    part.records = chance.randbytes(chance.randrange(200))
                elif what == 5:
                    part.partition_index = chance.choice([-1, 77])
                elif what == 6 and part.records:
                    part.records = bytes(part.records)[: chance.randrange(len(part.records))]
        if chance.random() < 0.2:
            answer.session_id = chance.randrange(1 << 31)

    fetcher, way = replicas.managers[2].fetchers[0], replicas.leaders[2, 1]
    fetcher.is_stopping = True  # waits for nothing
    way.tamper = lie
    for number in range(40):
        replicas.now_ms += chance.choice([0, 1000])
        replicas.produce(1, b"%d" % number, index=number % 2)
        replicas.step(2)

    way.tamper = lambda answer: None
    for index in range(2):
        log = replicas.log(2, index)
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        replicas.elect(1, index)
        replicas.produce(1, b"true", index=index)
    replicas.catch_up([2], rounds=30)
    for index in range(2):
        start = replicas.log(2, index).log_start_offset
        assert replicas.log(2, index).log_end_offset == replicas.log(1, index).log_end_offset
        assert replicas.bytes_from(2, start, index) == replicas.bytes_from(1, start, index)
    replicas.close()


def test_partitions_move_with_the_number_of_fetchers(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, partitions=6)
    for index in range(6):
        replicas.elect(1, index)
    manager = replicas.managers[2]

    manager.resize(3)

    assert sorted(len(fetcher.partitions) for fetcher in manager.fetchers) == [2, 2, 2]
    for index in range(6):
        replicas.produce(1, b"%d" % index, index=index)
    replicas.catch_up([2])
    assert all(replicas.contents(2, index) == replicas.contents(1, index) for index in range(6))
    manager.resize(1)
    assert [len(fetcher.partitions) for fetcher in manager.fetchers] == [6]
    replicas.close()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_all_replicas_end_byte_identical(tmp_path: Path, seed: int) -> None:
    """Appends by who leads or believes to, elections that not all hear of, lost answers, and at last one leader."""
    chance = random.Random(seed)
    replicas = Replicas(
        tmp_path, count=3, partitions=2, version=chance.choice([12, 17]), config={"segment.bytes": "400"}
    )
    for index in range(2):
        replicas.elect(chance.choice(replicas.ids), index)
    for _ in range(150):
        index = chance.randrange(2)
        broker_id = chance.choice(replicas.ids)
        what = chance.random()
        role = replicas.cores[broker_id].replicas.partitions[replicas.TOPIC, index].role
        if what < 0.35 and role.is_leader:
            replicas.produce(broker_id, *[b"%d" % chance.randrange(1000)] * chance.randint(1, 3), index=index)
        elif what < 0.8:
            replicas.now_ms += chance.choice([0, 500, 1000])
            replicas.step(broker_id)
        elif what < 0.9:
            heard = chance.sample(replicas.ids, chance.randint(1, 3))
            replicas.elect(broker_id, index, tell={broker_id, *heard})
        elif what < 0.95:
            replicas.down ^= {broker_id}
        elif role.is_leader and replicas.log(broker_id, index).high_watermark > 0:
            replicas.log(broker_id, index).delete_records_before(
                chance.randint(0, replicas.log(broker_id, index).high_watermark)
            )
    replicas.down.clear()
    leader = chance.choice(replicas.ids)
    for index in range(2):
        replicas.elect(leader, index)
        replicas.produce(leader, b"last", index=index)
    replicas.catch_up(rounds=25)

    for index in range(2):
        ends = {broker_id: replicas.log(broker_id, index).log_end_offset for broker_id in replicas.ids}
        assert set(ends.values()) == {ends[leader]}, ends
        start = max(replicas.log(broker_id, index).log_start_offset for broker_id in replicas.ids)
        read = [replicas.bytes_from(broker_id, start, index) for broker_id in replicas.ids]
        assert read[0] == read[1] == read[2] != b""
        assert len({replicas.log(broker_id, index).high_watermark for broker_id in replicas.ids}) == 1
        epochs = {
            tuple(replicas.log(broker_id, index).epoch_for_offset(offset) for offset in range(start, ends[leader]))
            for broker_id in replicas.ids
        }
        assert len(epochs) == 1
    assert not any(manager.failed for manager in replicas.managers.values())
    replicas.close()
