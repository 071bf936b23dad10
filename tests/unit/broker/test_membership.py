"""A broker's place in its cluster: when it is ready, and how it hands over what it leads."""

import logging
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.membership import OUT_OF_TOUCH_MS, Membership
from kavka.broker.metadata.metadata_cache import MetadataCache
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import OutOfReachError
from kavka.config.broker_config import BrokerConfig
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.broker_handlers import BROKER_ID, update_metadata

OTHER = BROKER_ID + 1
ALONE = {BROKER_ID: ("broker.example", 9092)}
BOTH = {**ALONE, OTHER: ("other.example", 9092)}
AN_HOUR_MS = "3600000"


class Controller:
    """Answers a hand-over as it was told to, one after the other."""

    def __init__(self, outcomes: Sequence[Any]) -> None:
        self.outcomes = list(outcomes)
        self.timeouts_ms: list[float] = []

    def controlled_shutdown(self, timeout_ms: float) -> Promise[list[tuple[str, int]]]:
        self.timeouts_ms.append(timeout_ms)
        outcome = self.outcomes.pop(0)
        promise: Promise[list[tuple[str, int]]] = Promise()
        if isinstance(outcome, BrokerError):
            promise.fail(outcome)
        else:
            promise.complete(outcome)
        return promise


def member(settings: dict[str, str] | None = None, outcomes: Sequence[Any] | None = None) -> tuple[Membership, Any]:
    config = BrokerConfig({"controlled.shutdown.retry.backoff.ms": "1", **(settings or {})})
    services: Any = SimpleNamespace(
        broker_id=BROKER_ID,
        config=SimpleNamespace(current=config),
        metadata=MetadataCache(BROKER_ID),
        replicas=SimpleNamespace(partitions={}),
        registry=SimpleNamespace(exists=lambda path: None),
    )
    scheduler: Any = None
    made = Membership(services, scheduler, lambda: 0, pytest.fail)
    services.metadata.apply(update_metadata({"visits": [BROKER_ID] * 4}, replicas=(BROKER_ID, OTHER), brokers=BOTH))
    if outcomes is not None:
        services.metadata.on_change(made.cluster_changed)
        links: Any = SimpleNamespace(controller=Controller(outcomes))
        made._links = links
    return made, services


def test_a_broker_is_settled_when_it_hosts_all_that_the_controller_says_it_has() -> None:
    membership, services = member()
    services.metadata = MetadataCache(BROKER_ID)
    assert not membership.is_settled()

    services.metadata.apply(update_metadata({"visits": [BROKER_ID, OTHER]}, replicas=(BROKER_ID, OTHER)))
    services.metadata.apply(update_metadata({"elsewhere": [OTHER]}, replicas=(OTHER,)))
    services.replicas.partitions["visits", 0] = object()
    assert not membership.is_settled()

    services.replicas.partitions["visits", 1] = object()
    assert membership.is_settled()

    services.replicas.partitions.clear()
    assert membership.is_settled(), "who serves may have fewer partitions for a moment"


def test_it_asks_until_it_leads_nothing_any_more(caplog: pytest.LogCaptureFixture) -> None:
    refused = BrokerError(ErrorCode.NOT_CONTROLLER)
    membership, _ = member(outcomes=[refused, [("visits", 3)], []])

    with caplog.at_level(logging.INFO):
        membership.hand_over()

    first, second, done = (record.getMessage() for record in caplog.records)
    assert "could not be handed over" in first
    assert "visits-3" in second
    assert "handed over" in done


def test_it_gives_up_after_as_many_tries_as_are_configured() -> None:
    membership, _ = member({"controlled.shutdown.max.retries": "2"}, [[("visits", 3)]] * 3)

    membership.hand_over()

    assert membership._links is not None
    controller: Any = membership._links.controller
    assert len(controller.outcomes) == 1


@pytest.mark.parametrize(
    "outcomes", [[[("visits", 3)]], [BrokerError(ErrorCode.NOT_CONTROLLER)]], ids=["leads", "no controller"]
)
def test_who_is_alone_with_its_partitions_waits_for_nobody(outcomes: Sequence[Any]) -> None:
    membership, services = member({"controlled.shutdown.retry.backoff.ms": AN_HOUR_MS}, outcomes)
    services.metadata.apply(update_metadata({}, brokers=ALONE))

    membership.hand_over()


def test_brokers_without_a_replica_take_nothing_over() -> None:
    membership, services = member({"controlled.shutdown.retry.backoff.ms": AN_HOUR_MS}, [[("visits", 3)]])
    stranger = OTHER + 1
    services.metadata.apply(update_metadata({}, brokers={**ALONE, stranger: ("stranger.example", 9092)}))

    membership.hand_over()


@pytest.mark.parametrize("outcome", [[("visits", 3)], BrokerError(ErrorCode.REQUEST_TIMED_OUT), []])
def test_one_try_is_made_while_the_registry_is_out_of_reach(outcome: Any) -> None:
    membership, services = member({"controlled.shutdown.retry.backoff.ms": AN_HOUR_MS}, [outcome])

    def exists(path: str) -> None:
        raise OutOfReachError("no connection")

    services.registry.exists = exists

    membership.hand_over()

    assert membership._links is not None
    controller: Any = membership._links.controller
    assert controller.timeouts_ms == [OUT_OF_TOUCH_MS]


def test_the_last_other_broker_is_waited_for_no_longer_than_it_lives() -> None:
    membership, services = member({"controlled.shutdown.retry.backoff.ms": AN_HOUR_MS}, [[("visits", 3)]])
    leaves = threading.Thread(target=services.metadata.apply, args=[update_metadata({}, brokers=ALONE)])
    leaves.start()

    membership.hand_over()

    leaves.join()


@pytest.mark.parametrize(
    ("settings", "outcomes"), [({"controlled.shutdown.enable": "false"}, ["never asked"]), ({}, None)]
)
def test_nobody_is_asked_where_that_is_off_or_there_is_nobody(
    settings: dict[str, str], outcomes: Sequence[Any] | None
) -> None:
    membership, _ = member(settings, outcomes)

    membership.hand_over()
