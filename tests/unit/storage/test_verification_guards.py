"""Guards: a transaction begins on a partition only while its coordinator's word holds (KIP-890)."""

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.storage.append_result import AppendError
from kavka.storage.producer_state import MAX_EPOCH, ProducerStates
from kavka.storage.verification_guards import (
    MAX_VERIFICATIONS,
    NEEDS_NO_VERIFICATION,
    NOT_VERIFIED,
    UnverifiedError,
    VerificationGuards,
)


class Log:
    """Producer states, written to as a log writes to them."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.offset = 0

    def begin(self, *, epoch: int = 0, sequence: int = 0, has_own_epoch: bool = False, producer_id: int = 1) -> int:
        return self.states.verifications.begin(producer_id, epoch, sequence, has_own_epoch, 1000)

    def write(self, guard: int, *, epoch: int = 0, sequence: int = 0, transactional: bool = True) -> None:
        self.states.check(1, epoch, sequence, 1, transactional, guard)
        self.states.record(1, epoch, sequence, self.offset, self.offset, 1000, transactional)
        self.offset += 1

    def end(self, *, epoch: int = 0, aborted: bool = False, version: int = 0) -> None:
        self.states.check_marker(1, epoch, 0, version)
        self.states.complete(1, epoch, 0, self.offset, 1000, aborted, version)
        self.offset += 1

    def refusal(self, guard: int, **fields: int) -> ErrorCode:
        with pytest.raises(AppendError) as caught:
            self.write(guard, **fields)  # type: ignore[arg-type]  # epoch and sequence only
        return caught.value.code


def test_a_transaction_begins_with_a_guard_and_goes_on_without() -> None:
    log = Log()
    with pytest.raises(UnverifiedError):
        log.write(NOT_VERIFIED)

    log.write(log.begin())
    log.write(NOT_VERIFIED, sequence=1)

    assert log.states.has_open_transaction(1, 0)
    assert len(log.states.verifications) == 0


def test_batches_outside_transactions_need_no_guard() -> None:
    log = Log()
    log.write(NOT_VERIFIED, transactional=False)
    log.write(NEEDS_NO_VERIFICATION, sequence=1)
    assert log.states.has_open_transaction(1, 0)


def test_a_marker_takes_the_guard_away() -> None:
    log = Log()
    guard = log.begin()
    log.end()

    assert log.refusal(guard) is ErrorCode.INVALID_TXN_STATE
    assert log.states.first_unstable_offset == -1


def test_a_marker_that_comes_late_leaves_the_next_transaction_its_guard() -> None:
    log = Log()
    log.write(log.begin(has_own_epoch=True))
    guard = log.begin(epoch=1, has_own_epoch=True)

    log.end(epoch=1, version=2)
    log.end(epoch=1, version=2)

    log.write(guard, epoch=1)
    assert log.states.has_open_transaction(1, 1)


@pytest.mark.parametrize(("epoch", "version"), [(2, 2), (1, 1)], ids=["its own", "of an end without an epoch"])
def test_a_marker_takes_the_guard_of_what_it_ends(epoch: int, version: int) -> None:
    log = Log()
    log.write(log.begin(has_own_epoch=True))
    log.end(epoch=1, version=2)
    guard = log.begin(epoch=1, has_own_epoch=True)

    log.end(epoch=epoch, version=version)

    with pytest.raises(AppendError):
        log.write(guard, epoch=1)
    assert not log.states.has_open_transaction(1, 1)
    assert len(log.states.verifications) == 0


def test_a_marker_takes_the_guard_of_a_producer_without_epochs_of_its_own() -> None:
    log = Log()
    guard = log.begin(epoch=1)

    log.end(epoch=1, version=2)

    assert log.refusal(guard, epoch=1) is ErrorCode.INVALID_TXN_STATE


def test_a_guard_of_before_the_marker_does_not_hold_beside_a_new_one() -> None:
    log = Log()
    old = log.begin()
    log.end()
    new = log.begin()

    assert log.refusal(old) is ErrorCode.INVALID_TXN_STATE
    log.write(new)


def test_an_ended_transaction_is_not_open_any_more() -> None:
    log = Log()
    log.write(log.begin())
    log.end()

    assert not log.states.has_open_transaction(1, 0)
    assert log.refusal(NOT_VERIFIED, sequence=1) is ErrorCode.INVALID_TXN_STATE


def test_a_batch_of_the_epoch_before_is_stale_whatever_its_guard() -> None:
    log = Log()
    log.write(log.begin(), sequence=0)
    guard = log.begin(epoch=1)
    log.end(epoch=1)

    assert log.refusal(NOT_VERIFIED, sequence=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.refusal(guard, epoch=1) is ErrorCode.INVALID_TXN_STATE


def test_with_an_epoch_of_its_own_a_transaction_begins_with_sequence_0() -> None:
    log = Log()
    log.write(log.begin(has_own_epoch=True))
    log.end(epoch=1)

    late = log.begin(epoch=1, sequence=1, has_own_epoch=True)
    assert log.refusal(late, epoch=1, sequence=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.write(late, epoch=1, sequence=0)


def test_an_unknown_producer_begins_with_sequence_0_where_epochs_are_bumped() -> None:
    log = Log()
    guard = log.begin(sequence=3, has_own_epoch=True)
    assert log.refusal(guard, sequence=3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    old_style = Log()
    old_style.write(old_style.begin(sequence=3), sequence=3)


def test_batches_that_waited_together_come_in_order() -> None:
    log = Log()
    second, first = log.begin(sequence=10), log.begin(sequence=0)

    assert first == second
    assert log.refusal(second, sequence=10) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.write(first, sequence=0)


def test_a_guard_is_of_one_epoch() -> None:
    log = Log()
    old = log.begin(epoch=0)
    new = log.begin(epoch=1)

    assert log.refusal(old, epoch=0) is ErrorCode.INVALID_TXN_STATE
    log.write(new, epoch=1)


def test_a_withdrawn_guard_holds_no_more() -> None:
    log = Log()
    guard = log.begin()
    log.states.verifications.withdraw(1, guard + 1)
    log.states.verifications.withdraw(1, guard)

    assert log.refusal(guard) is ErrorCode.INVALID_TXN_STATE


def test_guards_expire_with_producers_and_are_bounded() -> None:
    verifications = VerificationGuards()
    for producer_id in range(MAX_VERIFICATIONS + 5):
        verifications.begin(producer_id, 0, 0, False, producer_id)
    assert len(verifications) == MAX_VERIFICATIONS

    verifications.remove_expired(MAX_VERIFICATIONS + 100, 100)
    assert len(verifications) == 4
    states = ProducerStates()
    states.verifications.begin(1, 0, 0, False, 0)
    states.remove_expired(500, 500)
    assert len(states.verifications) == 0


@pytest.mark.parametrize("version", [0, 1])
def test_a_marker_of_version_1_has_the_epoch_of_what_it_ends(version: int) -> None:
    log = Log()
    log.write(log.begin())
    log.states.check_marker(1, 0, 0, version)


def test_a_late_marker_of_version_2_does_not_end_the_next_transaction() -> None:
    log = Log()
    log.write(log.begin())
    log.states.check_marker(1, 1, 0, 2)
    log.end(epoch=1)
    log.states.check_marker(1, 1, 0, 2)  # sent again while nothing is open: harmless
    log.write(log.begin(epoch=1), epoch=1)

    with pytest.raises(AppendError) as caught:
        log.states.check_marker(1, 1, 0, 2)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_of_the_last_epoch_of_all_is_ended_by_a_marker_of_the_same() -> None:
    log = Log()
    log.write(log.begin(epoch=MAX_EPOCH), epoch=MAX_EPOCH)
    log.states.check_marker(1, MAX_EPOCH, 0, 2)


def test_a_coordinators_batch_begins_a_transaction_with_a_guard_only() -> None:
    log = Log()
    late = log.begin()
    log.end()

    for guard in (late, NOT_VERIFIED):
        with pytest.raises(UnverifiedError) as caught:
            log.states.check_unsequenced(1, 0, True, guard)
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    log.states.check_unsequenced(1, 0, False, NOT_VERIFIED)
    log.states.check_unsequenced(1, 0, True, NEEDS_NO_VERIFICATION)
    log.states.check_unsequenced(1, 0, True, log.begin())


def test_a_coordinators_batch_goes_on_with_an_open_transaction_of_its_epoch() -> None:
    log = Log()
    log.write(log.begin())
    log.states.check_unsequenced(1, 0, True, NOT_VERIFIED)

    with pytest.raises(UnverifiedError):
        log.states.check_unsequenced(1, 1, True, NOT_VERIFIED)


def test_a_second_batch_of_one_verification_is_late_when_the_first_began_and_the_marker_came() -> None:
    log = Log()
    guard = log.begin()
    log.begin()
    log.write(guard)
    log.end()

    with pytest.raises(UnverifiedError):
        log.states.check_unsequenced(1, 0, True, guard)


@pytest.mark.parametrize("how", ["pushed out", "expired", "cleared"])
def test_a_guard_that_was_forgotten_is_refused_so_that_it_is_taken_anew(how: str) -> None:
    log = Log()
    guard = log.begin()
    if how == "pushed out":
        for other in range(MAX_VERIFICATIONS):
            log.begin(producer_id=100 + other)
    elif how == "expired":
        log.states.remove_expired(10_000, 10)
    else:
        log.states.clear(0)

    assert log.refusal(guard) is ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(UnverifiedError) as caught:
        log.states.check_unsequenced(1, 0, True, guard)
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    log.write(log.begin())


def test_a_late_batch_is_refused_however_many_others_were_verified_since() -> None:
    log = Log()
    late = log.begin()
    log.end()
    for other in range(MAX_VERIFICATIONS + 1):
        log.begin(producer_id=100 + other)

    with pytest.raises(UnverifiedError):
        log.states.check_unsequenced(1, 0, True, late)
    assert log.states.first_unstable_offset == -1


def test_the_oldest_guard_is_pushed_out_and_none_for_who_is_there_already() -> None:
    verifications = VerificationGuards()
    first = verifications.begin(0, 0, 0, False, 0)
    guards = [verifications.begin(1 + other, 0, 0, False, 0) for other in range(MAX_VERIFICATIONS - 1)]
    renewed = verifications.begin(0, 1, 0, False, 0)
    assert verifications.find(0, first) is None
    assert verifications.find(1, guards[0]) is not None

    verifications.begin(-5, 0, 0, False, 0)

    assert verifications.find(0, renewed) is not None
    assert verifications.find(1, guards[0]) is None
    assert verifications.may_be_forgotten(guards[0])
    assert not verifications.may_be_forgotten(renewed)


@pytest.mark.parametrize("refused_epoch", [4, 5])
def test_what_is_refused_to_one_batch_is_not_taken_from_another(refused_epoch: int) -> None:
    verifications = VerificationGuards()
    guard = verifications.begin(1, 5, 0, True, 0)
    other = verifications.begin(1, refused_epoch, 0, True, 0)

    verifications.withdraw(1, other)

    assert verifications.find(1, guard) is not None
    verifications.withdraw(1, guard)
    assert len(verifications) == 0


def test_a_guard_of_an_older_epoch_never_holds() -> None:
    verifications = VerificationGuards()
    verifications.begin(1, 5, 0, True, 0)

    assert verifications.find(1, verifications.begin(1, 4, 0, True, 0)) is None
