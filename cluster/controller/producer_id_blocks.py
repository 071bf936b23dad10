"""Handing out blocks of a thousand producer ids (KIP-730), each once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kavka.cluster.controller.requests import ProducerIdBlock
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    NodeExistsError,
    NoNodeError,
    Operation,
    Registry,
    SetData,
)
from kavka.cluster.znodes.json_data import INT64_MAX, ZnodeError
from kavka.cluster.znodes.producer_id_block import PRODUCER_ID_BLOCK_PATH, LatestProducerIdBlock
from kavka.protocol.errors import BrokerError, ErrorCode

BLOCK_SIZE: Final = 1000

log = logging.getLogger(__name__)


def allocate_block(registry: Registry, term: Term, broker_id: int, broker_epoch: int) -> ProducerIdBlock:
    """A block for a live broker. Raises BrokerError(BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH)."""
    info = term.context.brokers.get(broker_id)
    if info is None:
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not alive.")
    if broker_epoch not in (-1, info.epoch):
        raise BrokerError(
            ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} has epoch {info.epoch}, not {broker_epoch}."
        )
    try:
        return _take(registry, lambda operation: term.store.write_all([operation]), broker_id)
    except ZnodeError as error:
        # Any client may ask for an id: that must not cost the controller its term.
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def take_block(registry: Registry, broker_id: int) -> ProducerIdBlock:
    """A block for the broker that asks the registry itself, in a cluster whose controllers hand out none."""
    return _take(registry, lambda operation: registry.multi([operation]), broker_id)


def _take(registry: Registry, write: Callable[[Operation], object], broker_id: int) -> ProducerIdBlock:
    """Take the block after the last one taken. Raises ZnodeError rather than hand out ids twice."""
    while True:
        operation: Operation
        try:
            data, stat = registry.get(PRODUCER_ID_BLOCK_PATH)
        except NoNodeError:
            first = 0
            block = LatestProducerIdBlock(broker_id, 0, BLOCK_SIZE - 1)
            operation = Create(PRODUCER_ID_BLOCK_PATH, block.encode())
        else:
            first = _last_of(data) + 1
            if first > INT64_MAX - BLOCK_SIZE:
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids are used up.")
            block = LatestProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)
            operation = SetData(PRODUCER_ID_BLOCK_PATH, block.encode(), stat.version)
        try:
            write(operation)
        except (BadVersionError, NodeExistsError, NoNodeError):
            continue
        return ProducerIdBlock(block.first, block.last)


def reserve_through(registry: Registry, broker_id: int, producer_id: int) -> None:
    """See to it that no block holds `producer_id` or one below: logs that came from elsewhere know such producers.

    A new producer with the id of an old one would have its first batches taken for repetitions, and lost.
    """
    while True:
        operation: Operation
        last = producer_id - producer_id % BLOCK_SIZE + BLOCK_SIZE - 1
        reserved = LatestProducerIdBlock(broker_id, last - BLOCK_SIZE + 1, last).encode()
        try:
            data, stat = registry.get(PRODUCER_ID_BLOCK_PATH)
        except NoNodeError:
            operation = Create(PRODUCER_ID_BLOCK_PATH, reserved)
        else:
            try:
                if _last_of(data) >= producer_id:
                    return
            except ZnodeError as error:
                # While it cannot be read nobody is given a block, and so none with ids that are in use.
                log.error("no producer ids can be given: %s", error)
                return
            operation = SetData(PRODUCER_ID_BLOCK_PATH, reserved, stat.version)
        try:
            registry.multi([operation])
        except (BadVersionError, NodeExistsError, NoNodeError):
            continue
        return


def _last_of(data: bytes) -> int:
    """The last producer id that was given; -1 for the empty node that Kafka's brokers make. Raises ZnodeError."""
    return LatestProducerIdBlock.decode(data).last if data else -1
