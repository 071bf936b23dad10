"""The transaction coordinator in its broker, and what Produce and TxnOffsetCommit ask of it."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from kavka.broker.coordination.coordination import Coordination
from kavka.broker.coordination.internal_topics import TRANSACTION_STATE
from kavka.broker.coordination.workers import Workers
from kavka.cluster.features import TRANSACTION_VERSION
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage.verification_guards import NEEDS_NO_VERIFICATION, NOT_VERIFIED

if TYPE_CHECKING:
    from kavka.broker.coordination.groups import GroupCoordination
    from kavka.broker.coordination.markers import MarkerDispatch, MarkerWriter
    from kavka.broker.coordination.other_brokers import Codes, OtherBrokers, TopicPartition
    from kavka.broker.core_services import CoreServices
    from kavka.coordinator.ports import ShardContext, Surroundings
    from kavka.coordinator.runtime.result import Producer, Result
    from kavka.coordinator.runtime.runtime import CoordinatorRuntime
    from kavka.coordinator.transaction.ports import MarkersWanted, ProducerIdWanted
    from kavka.coordinator.transaction.shard import TransactionShard

VERSION_2: Final = 2
RETRY_MS: Final = 20
RETRIES: Final = 5
ADDS_SINCE_TXN_OFFSET_COMMIT: Final = 5
ABORTABLE_SINCE_TXN_OFFSET_COMMIT: Final = 4

log = logging.getLogger(__name__)


class TransactionCoordination(Coordination["TransactionShard"]):
    """Transactions: `run(transactional_id, operation, refused)`, see Coordination; and the shards' ports.

    Threads: any. `_markers` is made on first use; two threads that make it at once do no harm. `others`, the way to
    the other brokers of a cluster, is set before the first partition is led.
    """

    def __init__(
        self,
        services: "CoreServices",
        groups: "GroupCoordination",
        surroundings: "Callable[[], Surroundings]",
        workers: Workers,
    ) -> None:
        super().__init__(TRANSACTION_STATE, services, surroundings, workers, self._make_transaction_runtime)
        self._groups: Final = groups
        self._given_surroundings = surroundings
        self._markers: tuple[MarkerWriter, MarkerDispatch] | None = None
        self.others: OtherBrokers | None = None

    @property
    def marker_writer(self) -> "MarkerWriter":
        """What writes markers into this broker's partitions."""
        return self._marker_parts()[0]

    def verify_partitions(
        self,
        transactional_id: str,
        producer: "Producer",
        partitions: "Iterable[TopicPartition]",
        done: "Callable[[Codes], None]",
    ) -> None:
        """Whether partitions take part in the producer's transaction; see `TransactionShard.verify`.

        `done` is called once, at once where that is possible, with no lock held; with the coordinator's refusal
        (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, ...) for all partitions where it cannot be asked, and
        UNKNOWN_SERVER_ERROR where it fails. It may raise nothing. The coordinator may be another broker.
        """
        asked = frozenset(partitions)
        if (others := self._others_of(transactional_id)) is not None:
            self._ask_other(others, transactional_id, producer, asked, done, verify_only=True)
            return
        self._ask(
            transactional_id,
            lambda shard: shard.verify(transactional_id, producer, asked, done),
            lambda error: done(dict.fromkeys(asked, error.code)),
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: "Producer",
        partitions: "Iterable[TopicPartition]",
        done: "Callable[[Codes], None]",
    ) -> None:
        """Have partitions take part in the producer's transaction (of version 2); see `TransactionShard.add`.

        `done` as for `verify_partitions`. Where the transaction before is being completed it is tried again for a
        moment, so that the client need not.
        """
        asked = frozenset(partitions)

        def attempt(retries: int) -> None:
            def answered(codes: "Codes") -> None:
                if retries > 0 and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values():
                    execute, delays = self.workers.appends, self._given_surroundings().delays
                    delays.schedule(lambda: execute(lambda: attempt(retries - 1)), RETRY_MS)
                else:
                    done(codes)

            def of_all(code: ErrorCode) -> None:
                answered(dict.fromkeys(asked, code))

            if (others := self._others_of(transactional_id)) is not None:
                self._ask_other(others, transactional_id, producer, asked, answered, verify_only=False)
                return
            self._ask(
                transactional_id,
                lambda shard: shard.add(transactional_id, producer, asked, VERSION_2, of_all),
                lambda error: of_all(error.code),
            )

        attempt(RETRIES)

    def admit_offsets(
        self,
        transactional_id: str,
        producer: "Producer",
        group_partition: int,
        api_version: int,
        done: Callable[[ErrorCode, int], None],
    ) -> None:
        """Whether a TxnOffsetCommit of that version may write to a partition of `__consumer_offsets`.

        From v5 on it joins the transaction by this. `done` as for `verify_partitions`, with the client's error code and
        the guard to append with, which an end of the transaction meanwhile takes away.
        """
        adds = api_version >= ADDS_SINCE_TXN_OFFSET_COMMIT
        key = (GROUP_METADATA_TOPIC, group_partition)
        partition = self._services.replicas.partitions.get(key)
        log = None if partition is None else partition.log
        if log is None:
            # Without a guard it would be refused for good, should the partition come here in the meantime.
            done(ErrorCode.NOT_COORDINATOR, NOT_VERIFIED)
            return
        if not adds and not self._services.config.current.transaction_partition_verification_enable:
            done(ErrorCode.NONE, NEEDS_NO_VERIFICATION)
            return
        if log.producers.has_open_transaction(*producer):
            done(ErrorCode.NONE, NOT_VERIFIED)
            return
        guard = log.verify(*producer, 0, self._services.now_ms(), has_own_epoch=adds)

        def answered(codes: "Codes") -> None:
            code = codes[key]
            if code is not ErrorCode.NONE:
                log.withdraw(producer.producer_id, guard)
            if code is ErrorCode.NETWORK_EXCEPTION:
                # Which these clients do not expect; this one they retry here, where the group's coordinator is.
                code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            done(told_to_producer(code, api_version >= ABORTABLE_SINCE_TXN_OFFSET_COMMIT), guard)

        ask = self.add_partitions if adds else self.verify_partitions
        ask(transactional_id, producer, [key], answered)

    # The shards' ports.

    @property
    def transaction_version(self) -> int:
        """See TransactionPorts."""
        return self._services.features.level(TRANSACTION_VERSION)

    def give_producer_id(self, wanted: "ProducerIdWanted") -> None:
        """See TransactionPorts."""
        try:
            self._services.producer_ids.next_id().watch(partial(self._given, wanted))
        except BrokerError as refusal:
            self._refuse_id(wanted, refusal)
        except Exception as failure:
            # Else the transactional id would wait for ever, and everybody with it.
            self._refuse_id(wanted, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)))
            raise

    def write_markers(self, wanted: "MarkersWanted") -> None:
        """See TransactionPorts."""
        self._marker_parts()[1].send(
            wanted,
            lambda answers: self.runtime.run(
                wanted.partition, lambda shard: shard.markers_answered(wanted, answers), _moved_away
            ),
        )

    def _given(self, wanted: "ProducerIdWanted", producer_id: int | None, error: BaseException | None) -> None:
        if producer_id is None:
            refusal = error if isinstance(error, BrokerError) else BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            self._refuse_id(wanted, refusal)
            return
        self.runtime.run(wanted.partition, lambda shard: shard.producer_id_given(wanted, producer_id), wanted.refuse)

    def _refuse_id(self, wanted: "ProducerIdWanted", refusal: BrokerError) -> None:
        self.runtime.run(wanted.partition, lambda shard: shard.producer_id_refused(wanted, refusal), wanted.refuse)

    def _others_of(self, transactional_id: str) -> "OtherBrokers | None":
        """The other brokers, if it is one of them that coordinates that id; None where this broker is to be asked."""
        if self.others is None:
            return None
        led = self._services.replicas.partitions.get((self.topic.name, self.partition_of(transactional_id)))
        return None if led is not None and led.role.is_leader else self.others

    def _ask_other(
        self,
        others: "OtherBrokers",
        transactional_id: str,
        producer: "Producer",
        asked: "frozenset[TopicPartition]",
        done: "Callable[[Codes], None]",
        *,
        verify_only: bool,
    ) -> None:
        from kavka.protocol.messages.add_partitions_to_txn import (
            AddPartitionsToTxnTopic,
            AddPartitionsToTxnTransaction,
        )

        led = self._services.metadata.current.partition(self.topic.name, self.partition_of(transactional_id))
        if led is None or led.leader < 0:
            done(dict.fromkeys(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=[index for _, index in of_topic])
                for name, of_topic in groupby(sorted(asked), key=lambda each: each[0])
            ],
        )

        def answered(codes: "Codes | None", error: BaseException | None) -> None:
            if codes is None:
                log.error("the coordinator was not asked transactional_id=%r", transactional_id, exc_info=error)
            done(dict.fromkeys(asked, ErrorCode.UNKNOWN_SERVER_ERROR) if codes is None else codes)

        others.add_partitions(led.leader, transaction).watch(answered)

    def _ask(
        self,
        transactional_id: str,
        operation: "Callable[[TransactionShard], Result]",
        refused: Callable[[BrokerError], None],
    ) -> None:
        try:
            self.run(transactional_id, operation, refused)
        except BrokerError as refusal:
            refused(refusal)
        except Exception as failure:
            # It may be the timer that asks again: nobody but the client, who waits, would hear of it.
            log.exception("the coordinator failed transactional_id=%r", transactional_id)
            refused(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(failure)))

    def _marker_parts(self) -> "tuple[MarkerWriter, MarkerDispatch]":
        parts = self._markers
        if parts is None:
            from kavka.broker.coordination.markers import LocalMarkerChannel, MarkerDispatch, MarkerWriter

            writer = MarkerWriter(self._services, self._groups, self.workers.flushes)
            channel = LocalMarkerChannel(self._services.broker_id, writer, self.others)
            deleted = None
            if self.others is not None:
                from kavka.broker.coordination.deleted_partitions import DeletedPartitions

                deleted = DeletedPartitions(self._services.registry, self.workers.appends)
            parts = self._markers = (writer, MarkerDispatch(self._services, channel, deleted))
        return parts

    def _make_transaction_runtime(self, surroundings: "Surroundings") -> "CoordinatorRuntime[TransactionShard]":
        from kavka.coordinator.runtime.runtime import CoordinatorRuntime
        from kavka.protocol.internal.transaction_records import TRANSACTION_RECORDS

        return CoordinatorRuntime(
            "transaction-coordinator",
            TRANSACTION_STATE.name,
            TRANSACTION_RECORDS,
            self._make_shard,
            surroundings,
            load_buffer_bytes=lambda: surroundings.config().transaction_state_log_load_buffer_size,
        )

    def _make_shard(self, context: "ShardContext") -> "TransactionShard":
        """On the loader's thread, which is where the state machine's modules are imported first."""
        from kavka.coordinator.transaction.shard import TransactionShard

        return TransactionShard(context, self)


def told_to_producer(code: ErrorCode, tells_abortable: bool) -> ErrorCode:
    """What the coordinator's refusal to a broker is called towards the broker's client (KIP-890)."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not tells_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _moved_away(_error: BrokerError) -> None:
    """The markers' answers are of no use here any more: whoever coordinates now sends the markers itself."""
