"""A transaction coordinator over a simulated cluster's logs, in both versions of transactions."""

import random
from typing import Any

from kavka.client.coordinators import CoordinatorKind
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kavka.protocol.messages.end_txn import EndTxnResponse
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kavka.protocol.messages.init_producer_id import InitProducerIdResponse
from kavka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kavka.protocol.records.batch import read_header
from kavka.protocol.schema import Response
from tests.component.client.producer.simulated_cluster import Sent, SimulatedCluster

GROUP = "readers"
BUSY = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)


class SimulatedCoordinator:
    """Of one transactional id, and of the group GROUP, by another node. `committed` has the values of each log in their
    order, `committed_offsets` the group's by partition.
    """

    def __init__(self, cluster: SimulatedCluster, dice: random.Random, *, is_v2: bool) -> None:
        self.cluster = cluster
        self.dice = dice
        self.is_v2 = is_v2
        self.node = 0
        self.id = 500
        self.epoch = -1
        self.partitions: set[int] = set()
        self.is_ongoing = False
        self.last_end: bool | None = None
        self.known_before = -1
        """The epoch for which the present one was given, if it was by InitProducerId."""
        self.group_node = len(cluster.nodes) - 1
        self.has_group = False
        self.pending_offsets: dict[int, int] = {}
        self.committed_offsets: dict[int, int] = {}
        self.transactions = 0
        """How many have begun."""
        self._cut_in: dict[int, int] = {}
        """By request that may come late: which transaction was the last one when its connection ended."""
        self.is_troubled = False
        self.committed: dict[int, list[bytes]] = {number: [] for number in cluster.logs}
        self.decided = dict.fromkeys(cluster.logs, 0)
        cluster.features = {"transaction.version": 2} if is_v2 else {}
        cluster.handlers |= {
            ApiKey.FIND_COORDINATOR: self._find,
            ApiKey.INIT_PRODUCER_ID: self._init,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add,
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.TXN_OFFSET_COMMIT: self._commit_offsets,
            ApiKey.END_TXN: self._end,
            ApiKey.PRODUCE: self._produce,
        }
        self._plain_produce = cluster._produce
        cluster.verify = self._verify
        # In the first version a late end would end the next transaction, which is of the same epoch: why there is a
        # second one. In both the first request for an id fences whoever has it, were it the same producer.
        late = (ApiKey.PRODUCE, ApiKey.END_TXN) if is_v2 else (ApiKey.PRODUCE,)
        cluster.may_stray = lambda sent: sent.api_key in late

    def have_late_requests(self, *also: ApiKey) -> None:
        """Requests for transactions come late, too, and those of these APIs.

        In the first version one that ends the transaction, or commits offsets, is of the same epoch as the next
        transaction, and would do that there: it is lost once that has begun.
        """
        ending = (ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN)
        late = (ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, *ending, *also)

        def may_stray(sent: Sent) -> bool:
            self._cut_in[id(sent)] = self.transactions
            return sent.api_key in late

        def is_outdated(sent: Sent) -> bool:
            return not self.is_v2 and sent.api_key in ending and self._cut_in[id(sent)] != self.transactions

        self.cluster.may_stray, self.cluster.is_outdated = may_stray, is_outdated

    def take_over(self) -> None:
        """Another producer comes with the transactional id."""
        if self.is_ongoing:
            self._decide(commits=False)
        self.epoch += 1
        self.known_before = -1
        self.last_end = None

    def _trouble(self, node: int, coordinator: int | None = None) -> int:
        if node != (self.node if coordinator is None else coordinator):
            return ErrorCode.NOT_COORDINATOR
        if self.is_troubled and self.dice.random() < 0.1:
            return self.dice.choice(BUSY)
        return 0

    def _find(self, node: int, request: Any) -> Response:
        number = self.node if request.key_type == CoordinatorKind.TRANSACTION else self.group_node
        port = 9000 + number
        if not request.coordinator_keys:
            return FindCoordinatorResponse(error_code=0, node_id=number, host="sim", port=port, coordinators=[])
        rows = [
            Coordinator(key=key, node_id=number, host="sim", port=port, error_code=0, error_message=None)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows, error_code=0, error_message="", node_id=0, host="", port=0)

    def _init(self, node: int, request: Any) -> Response:
        code = self._trouble(node)
        known = (request.producer_id, request.producer_epoch)
        is_again = known == (self.id, self.known_before)
        if not code and request.producer_id >= 0 and known != (self.id, self.epoch) and not is_again:
            code = ErrorCode.PRODUCER_FENCED
        if code:
            return InitProducerIdResponse(error_code=code, producer_epoch=-1)
        if self.is_ongoing and request.producer_id >= 0:
            # As Kafka's: it takes that for another producer of the same id, and the next try meets the epoch after it.
            self.take_over()
            return InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=-1)
        if self.is_ongoing:
            self._decide(commits=False)
        if not is_again:
            self.known_before = request.producer_epoch
            self.epoch += 1
            self.last_end = None
        return InitProducerIdResponse(error_code=0, producer_id=self.id, producer_epoch=self.epoch)

    def _add(self, node: int, request: Any) -> Response:
        code = self._trouble(node)
        rows = request.v3_and_below_topics
        if not code and (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch) != (
            self.id,
            self.epoch,
        ):
            code = ErrorCode.PRODUCER_FENCED
        if not code:
            for topic in rows:
                self._join(topic.partitions)
        results = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in rows
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=[], results_by_topic_v3_and_below=results)

    def _add_offsets(self, node: int, request: Any) -> Response:
        code = self._trouble(node)
        if not code and (request.producer_id, request.producer_epoch) != (self.id, self.epoch):
            code = ErrorCode.PRODUCER_FENCED
        if not code:
            assert not self.is_v2
            assert request.group_id == GROUP
            self._join([])
            self.has_group = True
        return AddOffsetsToTxnResponse(error_code=code)

    def _commit_offsets(self, node: int, sent: Sent) -> Response:
        """Some partitions at a time, where there is trouble."""
        request: Any = sent.request
        assert (sent.version >= 5) == self.is_v2
        answers = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                code = self._trouble(node, self.group_node)
                if not code and (request.producer_id, request.producer_epoch) != (self.id, self.epoch):
                    code = ErrorCode.INVALID_PRODUCER_EPOCH
                if not code and not self.is_v2 and not self.has_group:
                    code = ErrorCode.INVALID_TXN_STATE
                if not code:
                    self._join([])
                    self.pending_offsets[row.partition_index] = row.committed_offset
                rows.append(TxnOffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code))
            answers.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows))
        return TxnOffsetCommitResponse(topics=answers)

    def _join(self, partitions: list[int]) -> None:
        self.transactions += not self.is_ongoing
        self.is_ongoing = True
        self.last_end = None
        self.partitions.update(partitions)

    def _produce(self, node: int, sent: Sent) -> Response:
        """Records of no transaction would be there for ever: each batch has to be of one that is open."""
        request: Any = sent.request
        for topic in request.topic_data:
            for part in topic.partition_data:
                header = read_header(bytes(part.records))
                assert header.is_transactional
                if self.cluster.leaders[part.index] != node or header.producer_epoch != self.epoch:
                    continue
                if self.is_v2:
                    assert sent.version >= 12
                    self._join([part.index])
                else:
                    assert sent.version <= 11
        for number in self.cluster.logs:
            state = self.cluster.logs[number].producers.get(self.id)
            if state is not None and self.epoch > state.epoch:
                # The markers of the epoch before have fenced it.
                state.epoch = self.epoch
                state.batches.clear()
        return self._plain_produce(node, sent)

    def _verify(self, partition: int, data: bytes) -> int:
        if read_header(data).producer_epoch != self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE if partition in self.partitions else ErrorCode.INVALID_TXN_STATE

    def _end(self, node: int, request: Any) -> Response:
        code = self._trouble(node)
        known = (request.producer_id, request.producer_epoch)
        is_again = self.is_v2 and known == (self.id, self.epoch - 1) and self.last_end == request.committed
        if not code and known != (self.id, self.epoch) and not is_again:
            code = ErrorCode.PRODUCER_FENCED
        if not code and not is_again:
            if self.is_ongoing or (self.is_v2 and not request.committed):
                # In the second version an abort may come before the first record has.
                self._decide(commits=request.committed)
                self.last_end = request.committed
                if self.is_v2:
                    self.epoch += 1
            elif self.last_end != request.committed:
                code = ErrorCode.INVALID_TXN_STATE
        if code:
            return EndTxnResponse(error_code=code)
        return EndTxnResponse(error_code=0, producer_id=self.id, producer_epoch=self.epoch)

    def _decide(self, *, commits: bool) -> None:
        for number in self.partitions:
            log = self.cluster.logs[number]
            if commits:
                self.committed[number] += log.values[self.decided[number] :]
        for number, log in self.cluster.logs.items():
            if number not in self.partitions:
                assert len(log.values) == self.decided[number], "records of a partition that takes no part"
            self.decided[number] = len(log.values)
        if commits:
            self.committed_offsets |= self.pending_offsets
        self.pending_offsets.clear()
        self.partitions.clear()
        self.is_ongoing = self.has_group = False
