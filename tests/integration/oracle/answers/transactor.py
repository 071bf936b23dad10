"""A transactional producer on the stage of compared answers, and what readers see of what it wrote."""

from collections.abc import Callable
from typing import Any, Final

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kavka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kavka.protocol.messages.end_txn import EndTxnRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.schema import Request
from tests.integration.oracle.answers.stage import Stage, batch, produce_request
from tests.support.processes import wait_until

INIT, ADD, END, ADD_OFFSETS, OLD_PRODUCE = 4, 3, 4, 3, 11
TRANSACTION: Final = 1
TIME_TO_SETTLE_S: Final = 90.0
NOT_YET: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Producer:
    """One transactional producer; what it asks is put off until the coordinator is through with what was before."""

    def __init__(self, stage: Stage, suffix: str = "", timeout_ms: int = 60_000) -> None:
        self.stage = stage
        self.name = stage.name + suffix
        self.id, self.epoch = -1, -1
        self.timeout_ms = timeout_ms
        self.find()

    def find(self) -> None:
        request = FindCoordinatorRequest(key=self.name, key_type=TRANSACTION)
        wait_until(lambda: self.stage.client.ask(request, 2).error_code == 0, TIME_TO_SETTLE_S, "no coordinator")

    def settled(self, request: Request, version: int, code: Callable[[Any], int]) -> Any:
        """The answer, once it isn't that something else must be done first."""
        answers: list[Any] = []

        def is_settled() -> bool:
            answers[:] = [self.stage.client.ask(request, version)]
            return code(answers[0]) not in NOT_YET

        wait_until(is_settled, TIME_TO_SETTLE_S, lambda: f"still {answers}")
        return answers[0]

    def init(self, label: str, version: int = INIT, **fields: Any) -> Any:
        request = self.init_request(**fields)
        answer = self.settled(request, version, lambda each: int(each.error_code))
        self.stage.note(label, self.stage.plain(answer))
        if answer.error_code == 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def init_request(self, **fields: Any) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            **{"transactional_id": self.name, "transaction_timeout_ms": self.timeout_ms, **fields}
        )

    def add_request(self, *partitions: tuple[str, int], **fields: Any) -> AddPartitionsToTxnRequest:
        given = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch, **fields}
        return AddPartitionsToTxnRequest(
            v3_and_below_topics=topics_of(partitions),
            **{f"v3_and_below_{name}": value for name, value in given.items()},
        )

    def add(self, label: str, *partitions: tuple[str, int], version: int = ADD, **fields: Any) -> None:
        request = self.add_request(*partitions, **fields)
        answer = self.settled(
            request,
            version,
            lambda each: each.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
        self.note_codes(label, answer)

    def note_codes(self, label: str, answer: Any) -> None:
        plain = self.stage.plain(answer)
        self.stage.note(label, plain)

    def end_request(self, *, committed: bool, **fields: Any) -> EndTxnRequest:
        given = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch, **fields}
        return EndTxnRequest(committed=committed, **given)

    def end(self, label: str, *, committed: bool, version: int = END, **fields: Any) -> Any:
        request = self.end_request(committed=committed, **fields)
        answer = self.settled(request, version, lambda each: int(each.error_code))
        self.stage.note(label, self.stage.plain(answer))
        if version >= 5 and answer.error_code == 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def batch(self, sequence: int, count: int = 1, **fields: Any) -> bytes:
        given = {"producer_id": self.id, "producer_epoch": self.epoch, "transactional": True, **fields}
        return batch(count, base_sequence=sequence, **given)

    def put(self, label: str, topic: str, records: bytes, partition: int = 0, version: int = OLD_PRODUCE) -> None:
        """Produce and record the answer."""
        topic_id = self.stage.id_of(topic) if version >= 13 else bytes(16)
        request = produce_request(topic, records, partition, topic_id=topic_id, transactional_id=self.name)
        self.stage.ask(label, request, version)

    def rest(self) -> None:
        """Wait until no transaction is being ended."""
        request = DescribeTransactionsRequest(transactional_ids=[self.name])

        def rests() -> bool:
            (state,) = self.stage.client.ask(request, 0).transaction_states
            return not str(state.transaction_state).startswith("Prepare")

        wait_until(rests, TIME_TO_SETTLE_S, "a transaction does not end")


def topics_of(partitions: tuple[tuple[str, int], ...]) -> list[AddPartitionsToTxnTopic]:
    names = list(dict.fromkeys(name for name, _ in partitions))
    return [
        AddPartitionsToTxnTopic(name=name, partitions=[index for each, index in partitions if each == name])
        for name in names
    ]


def read(stage: Stage, topic: str) -> None:
    """What readers of both isolation levels see."""
    for level in (0, 1):
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            isolation_level=level,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[part])],
            forgotten_topics_data=[],
        )
        (found,) = stage.client.ask(request, 11).responses[0].partitions
        aborted = [each.first_offset for each in found.aborted_transactions or ()]
        stage.note(
            f"fetched, level {level}", [found.error_code, found.last_stable_offset, aborted, bool(found.records)]
        )
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        listing = ListOffsetsRequest(
            replica_id=-1, isolation_level=level, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
        )
        stage.note(f"listed, level {level}", stage.client.ask(listing, 7).topics[0].partitions[0].offset)
