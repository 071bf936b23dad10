"""Blocks of producer ids: each once, whoever takes it, and only for a broker that lives."""

import pytest

from kavka.cluster.controller.producer_id_blocks import reserve_through, take_block
from kavka.cluster.controller.requests import ProducerIdBlock
from kavka.cluster.znodes.producer_id_block import PRODUCER_ID_BLOCK_PATH
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Stage, wait


def test_the_empty_node_that_kafkas_brokers_make_means_that_none_was_given(stage: Stage) -> None:
    stage.brokers(1)
    stage.registry.create(PRODUCER_ID_BLOCK_PATH, b"")

    assert wait(stage.controller().allocate_producer_id_block(1)) == ProducerIdBlock(0, 999)


def test_ids_are_reserved_where_the_node_is_empty(stage: Stage) -> None:
    stage.registry.create(PRODUCER_ID_BLOCK_PATH, b"")

    reserve_through(stage.registry, 1, 1500)

    assert take_block(stage.registry, 1) == ProducerIdBlock(2000, 2999)


def test_brokers_that_take_blocks_themselves_and_the_controller_give_none_twice(stage: Stage) -> None:
    stage.brokers(1, 2)
    controller = stage.controller()

    assert [
        wait(controller.allocate_producer_id_block(1)),
        take_block(stage.registry, 2),
        wait(controller.allocate_producer_id_block(2)),
        take_block(stage.registry, 1),
    ] == [ProducerIdBlock(first, first + 999) for first in (0, 1000, 2000, 3000)]


@pytest.mark.parametrize(
    ("broker_id", "is_early", "code"),
    [(2, False, ErrorCode.BROKER_ID_NOT_REGISTERED), (1, True, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_who_is_not_alive_gets_none(stage: Stage, broker_id: int, is_early: bool, code: ErrorCode) -> None:
    cluster = stage.brokers(1)
    controller = stage.controller()
    epoch = cluster.epoch(1)

    with pytest.raises(BrokerError) as refusal:
        wait(controller.allocate_producer_id_block(broker_id, epoch - is_early))

    assert refusal.value.code is code
    assert wait(controller.allocate_producer_id_block(1, epoch)) == ProducerIdBlock(0, 999)
