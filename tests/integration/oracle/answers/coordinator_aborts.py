"""Producers whose transaction the coordinator aborted, because its time was up or another producer came.

What they are told, by request and version, and whether they may come back (KIP-588, KIP-890).
"""

from collections.abc import Callable, Mapping
from typing import Final

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kavka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.integration.oracle.answers.stage import KAFKA_39, KAFKA_43, Stage, scenario
from tests.integration.oracle.answers.transactor import Producer
from tests.support.processes import wait_until

TIME_TO_ABORT_S: Final = 90.0
SHORT_MS, LONG_MS = 1000, 300_000
EPOCH_FIELD: Final = "producer_epoch"


def come_back(producer: Producer, version: int) -> None:
    """InitProducerId with the epoch that was, again with it, and with the one that was given."""
    stage, old = producer.stage, {"producer_id": producer.id, EPOCH_FIELD: producer.epoch}
    for label in ("comes back", "comes back again"):
        producer.init(f"{producer.name}: {label}", version, **old)
    producer.init(f"{producer.name}: goes on", version, producer_id=producer.id, producer_epoch=producer.epoch)
    stage.ask(f"{producer.name}: late", producer.init_request(**old), version)


def begin_anew(producer: Producer, version: int) -> None:
    """InitProducerId as a program that has been started again, and then as the one before."""
    old = {"producer_id": producer.id, EPOCH_FIELD: producer.epoch}
    producer.init(f"{producer.name}: starts", version)
    producer.stage.ask(f"{producer.name}: the one before", producer.init_request(**old), 4)


def end(committed: bool) -> Callable[[Producer, int], None]:
    """EndTxn with the epoch that was, twice; then with the epoch that follows it, and a new transaction."""

    def act(producer: Producer, version: int) -> None:
        old = {"producer_id": producer.id, EPOCH_FIELD: producer.epoch}
        for label in ("ends", "ends again"):
            producer.end(f"{producer.name}: {label}", committed=committed, version=version, **old)
        after = {"producer_id": old["producer_id"], EPOCH_FIELD: old[EPOCH_FIELD] + 1}
        producer.end(f"{producer.name}: the next epoch ends", committed=committed, version=version, **after)
        producer.rest()
        producer.init(f"{producer.name}: comes back then", 4, **old)

    return act


def add(producer: Producer, version: int) -> None:
    """Another partition."""
    producer.add(f"{producer.name}: adds", (producer.stage.name, 0), version=version)


def add_offsets(producer: Producer, version: int) -> None:
    """A group's offsets."""
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.name, producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
    )
    producer.stage.ask(f"{producer.name}: adds offsets", request, version)


def produce(producer: Producer, version: int) -> None:
    """Another batch."""
    producer.put(f"{producer.name}: produces", producer.stage.name, producer.batch(1), version=version)


ACTS: Final[tuple[tuple[str, ApiKey, tuple[int, ...], Callable[[Producer, int], None]], ...]] = (
    ("back", ApiKey.INIT_PRODUCER_ID, (3, 4, 5), come_back),
    ("anew", ApiKey.INIT_PRODUCER_ID, (2, 5), begin_anew),
    ("commit", ApiKey.END_TXN, (1, 3, 4, 5), end(True)),
    ("abort", ApiKey.END_TXN, (1, 3, 4, 5), end(False)),
    ("add", ApiKey.ADD_PARTITIONS_TO_TXN, (1, 2, 3), add),
    ("offsets", ApiKey.ADD_OFFSETS_TO_TXN, (1, 3), add_offsets),
    ("produce", ApiKey.PRODUCE, (8, 11, 12), produce),
)
"""(name, in which versions of which request, what the producer does)."""
NEWEST_OF_39: Final = {ApiKey.END_TXN: 4, ApiKey.PRODUCE: 11}
NEWEST_OF_43: Final = {ApiKey.END_TXN: 5, ApiKey.PRODUCE: 12}


def abandoned(
    stage: Stage, topic: str, newest: Mapping[ApiKey, int], *, of_version_2: bool, timeout_ms: int
) -> list[tuple[Producer, Callable[[], None]]]:
    """A producer with an open transaction for each act, with that act."""
    found = []
    for name, key, versions, act in ACTS:
        for version in versions:
            if version > newest.get(key, version):
                continue
            producer = Producer(stage, f".{name}-{version}", timeout_ms)
            producer.init(f"{producer.name}: comes")
            if of_version_2:
                producer.put(f"{producer.name}: begins", topic, producer.batch(0), version=12)
            else:
                producer.add(f"{producer.name}: begins", (topic, 0))
            found.append((producer, _bound(act, producer, version)))
    return found


def _bound(act: Callable[[Producer, int], None], producer: Producer, version: int) -> Callable[[], None]:
    return lambda: act(producer, version)


def await_aborts(stage: Stage, producers: list[Producer]) -> None:
    names = [producer.name for producer in producers]

    def all_aborted() -> bool:
        answer = stage.client.ask(DescribeTransactionsRequest(transactional_ids=names), 0)
        return {each.transaction_state for each in answer.transaction_states} == {"CompleteAbort"}

    wait_until(all_aborted, TIME_TO_ABORT_S, "the coordinator does not abort")


def fence(stage: Stage, producers: list[Producer]) -> None:
    """Another producer comes for each, and is told to come again."""
    for producer in producers:
        request = InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=LONG_MS)
        stage.ask(f"{producer.name}: another comes", request, 5)


def _play(stage: Stage, newest: Mapping[ApiKey, int], *, of_version_2: bool, fenced: bool) -> None:
    topic = stage.topic()
    # Those that are fenced must not have been timed out before, however long it takes to come to them.
    timeout_ms = LONG_MS if fenced else SHORT_MS
    acts = abandoned(stage, topic, newest, of_version_2=of_version_2, timeout_ms=timeout_ms)
    producers = [producer for producer, _ in acts]
    if fenced:
        fence(stage, producers)
    await_aborts(stage, producers)
    for producer, act in acts:
        producer.timeout_ms = LONG_MS
        act()
        if fenced:
            answer = producer.settled(producer.init_request(), 5, lambda each: int(each.error_code))
            stage.note(f"{producer.name}: another", [ErrorCode(answer.error_code).name, answer.producer_epoch])


@scenario(ApiKey.INIT_PRODUCER_ID, "5-5", oracles=(KAFKA_39,))
def transactions_time_out(stage: Stage) -> None:
    _play(stage, NEWEST_OF_39, of_version_2=False, fenced=False)


@scenario(ApiKey.INIT_PRODUCER_ID, "5-5", oracles=(KAFKA_39,))
def transactions_are_fenced(stage: Stage) -> None:
    _play(stage, NEWEST_OF_39, of_version_2=False, fenced=True)


@scenario(ApiKey.INIT_PRODUCER_ID, "5-5", oracles=(KAFKA_43,))
def transactions_of_both_versions_time_out(stage: Stage) -> None:
    _play(stage, NEWEST_OF_43, of_version_2=False, fenced=False)


@scenario(ApiKey.INIT_PRODUCER_ID, "5-5", oracles=(KAFKA_43,))
def transactions_of_version_2_time_out(stage: Stage) -> None:
    _play(stage, NEWEST_OF_43, of_version_2=True, fenced=False)


@scenario(ApiKey.INIT_PRODUCER_ID, "5-5", oracles=(KAFKA_43,))
def transactions_of_version_2_are_fenced(stage: Stage) -> None:
    _play(stage, NEWEST_OF_43, of_version_2=True, fenced=True)
