"""Producer ids: never twice, in order of blocks, waiting while a block comes."""

import threading
from concurrent.futures import Future

import pytest

from kavka.broker.partitions import producer_ids
from kavka.broker.partitions.producer_ids import ProducerIds
from kavka.cluster.controller.requests import ProducerIdBlock
from kavka.protocol.errors import BrokerError, ErrorCode


class Blocks:
    """The controller's side: futures that the test completes."""

    def __init__(self) -> None:
        self.asked: list[Future[ProducerIdBlock]] = []

    def allocate(self) -> "Future[ProducerIdBlock]":
        self.asked.append(Future())
        return self.asked[-1]


def test_requests_wait_for_a_block_and_are_served_in_order() -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    waiting = [ids.next_id() for _ in range(3)]
    assert not any(future.done() for future in waiting)
    assert len(blocks.asked) == 1

    blocks.asked[0].set_result(ProducerIdBlock(1000, 1001))

    assert [future.result(0) for future in waiting[:2]] == [1000, 1001]
    assert not waiting[2].done()
    blocks.asked[1].set_result(ProducerIdBlock(5000, 5999))
    assert waiting[2].result(0) == 5000
    assert ids.next_id().result(0) == 5001
    assert len(blocks.asked) == 2


@pytest.mark.parametrize("failure", [BrokerError(ErrorCode.NOT_CONTROLLER), RuntimeError("stopped")])
def test_a_refused_block_fails_those_who_wait_and_the_next_one_asks_again(failure: Exception) -> None:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    waiting = ids.next_id()

    blocks.asked[0].set_exception(failure)

    error = waiting.exception(0)
    assert isinstance(error, BrokerError)
    assert error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again = ids.next_id()
    blocks.asked[1].set_result(ProducerIdBlock(7, 8))
    assert again.result(0) == 7


def test_a_controller_that_cannot_even_be_asked_fails_those_who_wait() -> None:
    def allocate() -> "Future[ProducerIdBlock]":
        raise RuntimeError("stopped")

    assert isinstance(ProducerIds(allocate).next_id().exception(0), BrokerError)


def test_the_number_of_those_who_wait_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_ids, "MAX_WAITING", 2)
    ids = ProducerIds(Blocks().allocate)
    waiting = [ids.next_id(), ids.next_id()]

    with pytest.raises(BrokerError) as raised:
        ids.next_id()

    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not any(future.done() for future in waiting)


def test_no_id_is_given_twice_however_many_threads_ask() -> None:
    numbers = iter(range(0, 10**6, 10))

    def allocate() -> "Future[ProducerIdBlock]":
        block: Future[ProducerIdBlock] = Future()
        first = next(numbers)
        threading.Thread(target=block.set_result, args=(ProducerIdBlock(first, first + 9),)).start()
        return block

    ids = ProducerIds(allocate)
    got: list[int] = []

    def ask() -> None:
        got.extend(ids.next_id().result(10) for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(got)) == len(got) == 400
