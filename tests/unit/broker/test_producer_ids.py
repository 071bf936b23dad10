"""Producer ids: never twice, in order of blocks, waiting while a block comes."""

import threading

import pytest

from kavka.broker.partitions import producer_ids
from kavka.broker.partitions.producer_ids import ProducerIds
from kavka.cluster.controller.requests import ProducerIdBlock
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode


class Blocks:
    """The controller's side: promises that the test settles."""

    def __init__(self) -> None:
        self.asked: list[Promise[ProducerIdBlock]] = []

    def allocate(self) -> Promise[ProducerIdBlock]:
        self.asked.append(Promise())
        return self.asked[-1]


def test_requests_wait_for_a_block_and_are_served_in_order() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    waiting = [ids.next_id() for _ in range(3)]
    assert not any(promise.done for promise in waiting)
    assert len(blocks.asked) == 1

    blocks.asked[0].complete(ProducerIdBlock(1000, 1001))

    assert [promise.result() for promise in waiting[:2]] == [1000, 1001]
    assert not waiting[2].done
    blocks.asked[1].complete(ProducerIdBlock(5000, 5999))
    assert waiting[2].result() == 5000
    assert ids.next_id().result() == 5001
    assert len(blocks.asked) == 2


@pytest.mark.parametrize("failure", [BrokerError(ErrorCode.NOT_CONTROLLER), RuntimeError("stopped")])
def test_a_refused_block_fails_those_who_wait_and_the_next_one_asks_again(failure: Exception) -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    waiting = ids.next_id()

    blocks.asked[0].fail(failure)

    with pytest.raises(BrokerError) as refused:
        waiting.result()
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again = ids.next_id()
    blocks.asked[1].complete(ProducerIdBlock(7, 8))
    assert again.result() == 7


def test_a_controller_that_cannot_even_be_asked_fails_those_who_wait() -> None:
    def allocate() -> Promise[ProducerIdBlock]:
        raise RuntimeError("stopped")

    with pytest.raises(BrokerError):
        ProducerIds(allocate).next_id().result()


def test_the_number_of_those_who_wait_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_ids, "MAX_WAITING", 2)
    ids = ProducerIds(Blocks().allocate)
    waiting = [ids.next_id(), ids.next_id()]

    with pytest.raises(BrokerError) as raised:
        ids.next_id()

    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not any(promise.done for promise in waiting)


def test_no_id_is_given_twice_however_many_threads_ask() -> None:
    numbers = iter(range(0, 10**6, 10))

    def allocate() -> Promise[ProducerIdBlock]:
        block: Promise[ProducerIdBlock] = Promise()
        first = next(numbers)
        threading.Thread(target=block.complete, args=(ProducerIdBlock(first, first + 9),)).start()
        return block

    ids = ProducerIds(allocate)
    got: list[int] = []

    def ask() -> None:
        got.extend(ids.next_id().result(60) for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(got)) == len(got) == 400
