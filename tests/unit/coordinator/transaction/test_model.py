"""Transactions in random orders of requests, markers, failures, time and reloads.

What must hold: memory says what the log says; the markers of one transaction are all commits or all aborts, and what
the client was told; each partition of a decided transaction gets its marker, and no marker comes after the end; nothing
hangs once everything is let run.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kavka.coordinator.runtime.result import Producer
from kavka.coordinator.transaction.metadata import LAST_CLIENT_EPOCH, TopicPartition
from kavka.coordinator.transaction.states import AT_REST, TransactionState
from kavka.protocol.errors import ErrorCode
from tests.support.coordinator_stage import Asked
from tests.support.transaction_stage import V1, V2, TransactionStage, facts_of

NAMES = st.sampled_from(["t", "u"])
PARTITIONS = st.sampled_from([("a", 0), ("a", 1), ("b", 0)])
VERSIONS = st.sampled_from([V1, V2])
BACK = st.sampled_from([1, 1, 1, 2])
"""Which of an id's producers acts: the last one, mostly."""
FAILURES = st.sampled_from([ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
MARKER_CODES = st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
APPEND_FAILURES = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})


class Transactions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = TransactionStage({"transactional.id.expiration.ms": "100000000"})
        self.producers: dict[str, list[Producer]] = {"t": [], "u": []}
        self.initialising: list[tuple[str, Asked]] = []
        self.ending: list[tuple[str, Producer, bool, int, Asked]] = []
        self.promised: dict[tuple[int, int], bool] = {}
        """By producer id and marker epoch: whether the client was told that it is committed."""
        self.expected: dict[tuple[int, int], frozenset[TopicPartition]] = {}

    @rule(name=NAMES, says_who_it_is=st.booleans(), timeout_ms=st.sampled_from([1000, 600_000]))
    def init(self, name: str, says_who_it_is: bool, timeout_ms: int) -> None:
        known = self.producers[name][-1] if says_who_it_is and self.producers[name] else None
        self.initialising.append((name, self.stage.ask_init(name, known, timeout_ms=timeout_ms)))
        self._settle()

    @rule(name=NAMES, partition=PARTITIONS, version=VERSIONS, back=BACK)
    def add(self, name: str, partition: TopicPartition, version: int, back: int) -> None:
        if len(self.producers[name]) >= back:
            self.stage.ask_add(name, self.producers[name][-back], partition, version=version)

    @rule(name=NAMES, partitions=st.sets(PARTITIONS, min_size=1), committed=st.booleans(), version=VERSIONS)
    def transact(self, name: str, partitions: set[TopicPartition], committed: bool, version: int) -> None:
        """A whole transaction, as far as it gets; its markers are left to others."""
        if not self.producers[name]:
            self.init(name=name, says_who_it_is=False, timeout_ms=600_000)
        for partition in sorted(partitions):
            self.add(name=name, partition=partition, version=version, back=1)
        self.end(name=name, committed=committed, version=version, back=1)

    @rule(name=NAMES, committed=st.booleans(), version=VERSIONS, back=BACK)
    def end(self, name: str, committed: bool, version: int, back: int) -> None:
        if len(self.producers[name]) >= back:
            producer = self.producers[name][-back]
            asked = self.stage.ask_end(name, producer, committed=committed, version=version)
            self.ending.append((name, producer, committed, version, asked))
            self._settle()

    @rule()
    def mark_all(self) -> None:
        self.stage.mark()

    @rule(codes=st.dictionaries(PARTITIONS, MARKER_CODES))
    def mark(self, codes: dict[TopicPartition, ErrorCode]) -> None:
        self.stage.mark(codes)

    @rule()
    def crash(self) -> None:
        self.stage.ports.markers.clear()
        self.stage.reload()

    @rule(code=FAILURES)
    def fail_an_append(self, code: ErrorCode) -> None:
        self.stage.fail_next_append(code)

    @rule(gives=st.booleans())
    def have_ids_come_later(self, gives: bool) -> None:
        self.stage.gives_ids = gives

    @precondition(lambda self: self.stage.ports.ids)
    @rule()
    def give_id(self) -> None:
        self.stage.give_id()
        self._settle()

    @precondition(lambda self: self.stage.ports.ids)
    @rule()
    def refuse_id(self) -> None:
        self.stage.refuse_id()
        self._settle()

    @rule(by_ms=st.sampled_from([60, 1000, 10_000]))
    def advance(self, by_ms: int) -> None:
        self.stage.advance(by_ms)

    @rule()
    def reload(self) -> None:
        self.stage.reload()

    @rule(name=NAMES, epoch=st.sampled_from([LAST_CLIENT_EPOCH - 1, LAST_CLIENT_EPOCH]))
    def use_up_epochs(self, name: str, epoch: int) -> None:
        transaction = self.stage.shard.transactions.get(name)
        if transaction is None or transaction.state not in AT_REST or transaction.producer_epoch >= LAST_CLIENT_EPOCH:
            return
        now = transaction.prepare_producer(60_000, None, self.stage.time_ms)._replace(producer_epoch=epoch)
        asked = self.stage.ask(lambda shard, reply: shard.table.write(name, now, reply, "done"))
        if asked.answers:
            self.producers[name].append(Producer(now.producer_id, now.producer_epoch))

    @invariant()
    def memory_says_what_the_log_says(self) -> None:
        assert self.stage.facts() == facts_of(self.stage.replayed())
        self._note_decisions()

    @invariant()
    def a_transaction_has_markers_of_one_kind(self) -> None:
        kinds: dict[tuple[int, int], bool] = dict(self.promised)
        for wanted, _ in self.stage.written:
            key = (wanted.producer_id, wanted.producer_epoch)
            if wanted.transaction_version == V1:
                # Its epoch is that of the next transaction too: told apart by the model only while it is decided.
                continue
            assert kinds.setdefault(key, wanted.committed) == wanted.committed

    @invariant()
    def no_marker_is_on_its_way_twice_or_after_the_end(self) -> None:
        sent = [wanted for wanted in self.stage.ports.markers if not wanted.dispatch.is_withdrawn()]
        dispatches = {name: each.dispatch for name, each in self.stage.shard.transactions.items() if each.is_decided}
        assert all(dispatches.get(wanted.transactional_id) is wanted.dispatch for wanted in sent)
        assert len({wanted.transactional_id for wanted in sent}) == len(sent)

    def teardown(self) -> None:
        self.stage.gives_ids = True
        while self.stage.ports.ids:
            self.stage.give_id()
        for _ in range(150):
            self.stage.mark()
            self.stage.advance(10_000)
        self._settle()
        for transaction in self.stage.shard.transactions.values():
            assert transaction.state in AT_REST, "a transaction hangs"
        assert not any(asked.waits for _, asked in self.initialising)
        assert not any(asked.waits for *_, asked in self.ending)
        self.memory_says_what_the_log_says()
        self.a_transaction_has_markers_of_one_kind()
        written: dict[tuple[int, int], set[TopicPartition]] = {}
        for wanted, partition in self.stage.written:
            written.setdefault((wanted.producer_id, wanted.producer_epoch), set()).add(partition)
        for key, partitions in self.expected.items():
            assert partitions <= written.get(key, set()), "a partition got no marker"

    def _settle(self) -> None:
        """Take in the answers that have come."""
        for name, asked in [each for each in self.initialising if not each[1].waits]:
            if asked.answers and not isinstance(asked.answer, ErrorCode):
                assert asked.answer.producer_epoch <= LAST_CLIENT_EPOCH, "an epoch that nobody could fence"
                self.producers[name].append(Producer(asked.answer.producer_id, asked.answer.producer_epoch))
        self.initialising = [each for each in self.initialising if each[1].waits]
        for name, producer, committed, version, asked in [each for each in self.ending if not each[4].waits]:
            self._settle_end(name, producer, committed, version, asked)
        self.ending = [each for each in self.ending if each[4].waits]

    def _settle_end(self, name: str, producer: Producer, committed: bool, version: int, asked: Asked) -> None:
        if asked.errors:
            assert asked.error in APPEND_FAILURES
            return
        answer: Any = asked.answer
        if isinstance(answer, ErrorCode):
            return
        assert answer.producer_epoch <= LAST_CLIENT_EPOCH, "an epoch that nobody could fence"
        if version == V2:
            key = (producer.producer_id, producer.producer_epoch + 1)
            following = Producer(answer.producer_id, answer.producer_epoch)
            if following == producer._replace(producer_epoch=producer.producer_epoch + 1) or following[1] == 0:
                assert self.promised.setdefault(key, committed) == committed, "one end, two answers"
            if following != self.producers[name][-1]:
                self.producers[name].append(following)

    def _note_decisions(self) -> None:
        for transaction in self.stage.shard.transactions.values():
            if transaction.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
                key = (transaction.producer_id, transaction.producer_epoch)
                self.expected[key] = self.expected.get(key, frozenset()) | transaction.partitions


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
