"""Transactions: producers come and fence each other, partitions take part, transactions end, markers are written."""

from typing import Any

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kavka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kavka.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kavka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kavka.protocol.messages.list_transactions import ListTransactionsRequest
from kavka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.integration.oracle.answers.stage import KAFKA_43, Stage, produce_request, scenario
from tests.integration.oracle.answers.transactor import Producer, read, topics_of


@scenario(ApiKey.INIT_PRODUCER_ID)
def transactional_producers_come(stage: Stage) -> None:
    producer = Producer(stage)
    for timeout_ms in (0, -1, 900_001):
        stage.ask(f"timeout {timeout_ms}", producer.init_request(transaction_timeout_ms=timeout_ms))
    stage.ask("empty id", producer.init_request(transactional_id=""))
    producer.init("first", stage.version)
    producer.init("second", stage.version)
    if stage.version >= 3:
        old, epoch = producer.id, producer.epoch
        for label, fields in (
            ("its own epoch", {"producer_id": old, "producer_epoch": epoch}),
            ("again", {"producer_id": old, "producer_epoch": epoch}),
            ("the epoch before", {"producer_id": old, "producer_epoch": epoch - 1}),
            ("an epoch to come", {"producer_id": old, "producer_epoch": epoch + 9}),
            ("another producer id", {"producer_id": old + 1_000_000, "producer_epoch": 0}),
            ("an epoch only", {"producer_epoch": 3}),
            ("a producer id only", {"producer_id": 3}),
        ):
            stage.ask(label, producer.init_request(**fields))


@scenario(ApiKey.INIT_PRODUCER_ID)
def a_running_transaction_is_aborted_by_the_next_producer(stage: Stage) -> None:
    topic = stage.topic()
    producer = Producer(stage)
    producer.init("first")
    producer.add("a partition", (topic, 0))
    old = producer.epoch
    stage.ask("second, at once", producer.init_request())
    answer = producer.settled(producer.init_request(), stage.version, lambda each: int(each.error_code))
    stage.note("second, later", ErrorCode(answer.error_code).name)
    stage.note("it is newer", answer.producer_epoch > old)
    producer.add("the old one", (topic, 0))
    producer.end("the old one ends", committed=True)


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "0-3")
def partitions_take_part(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    producer = Producer(stage)
    strange = producer.add_request((topic, 0), producer_id=7, producer_epoch=0)
    stage.ask("an unknown id", strange)
    producer.init("a producer")
    producer.add("two", (topic, 0), (topic, 1), version=stage.version)
    producer.add("the same", (topic, 1), version=stage.version)
    producer.add("an unknown one among them", (topic, 0), (topic, 5), (topic + ".x", 0), version=stage.version)
    producer.add("an internal one", ("__consumer_offsets", 0), (topic, 0), version=stage.version)
    producer.add("an old epoch", (topic, 0), version=stage.version, producer_epoch=producer.epoch - 1)
    producer.add("a new epoch", (topic, 0), version=stage.version, producer_epoch=producer.epoch + 1)
    producer.add("another producer", (topic, 0), version=stage.version, producer_id=producer.id + 1_000_000)
    producer.add("an empty id", (topic, 0), version=stage.version, transactional_id="")
    stage.ask("nothing", producer.add_request())


@scenario(ApiKey.ADD_PARTITIONS_TO_TXN, "4-5")
def brokers_verify_and_add(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    producer, other = Producer(stage), Producer(stage, ".other")
    producer.init("a producer")
    other.init("another")
    producer.add("a partition", (topic, 0))

    def asked(name: str, *partitions: tuple[str, int], verify_only: bool, **fields: Any) -> Any:
        given = {"producer_id": producer.id, "producer_epoch": producer.epoch, **fields}
        return AddPartitionsToTxnTransaction(
            transactional_id=name, verify_only=verify_only, topics=topics_of(partitions), **given
        )

    def ask(label: str, *transactions: Any) -> None:
        stage.ask(label, AddPartitionsToTxnRequest(transactions=list(transactions)))

    ask("verify", asked(producer.name, (topic, 0), (topic, 1), verify_only=True))
    ask("verify an unknown partition", asked(producer.name, (topic, 0), (topic, 9), verify_only=True))
    ask("verify an unknown id", asked(producer.name + ".x", (topic, 0), verify_only=True))
    ask("verify an old epoch", asked(producer.name, (topic, 0), verify_only=True, producer_epoch=-1))
    ask("verify another producer", asked(producer.name, (topic, 0), verify_only=True, producer_id=1_000_000))
    ask("verify an empty id", asked("", (topic, 0), verify_only=True))
    ask(
        "add and verify",
        asked(producer.name, (topic, 1), verify_only=False),
        asked(other.name, (topic, 0), verify_only=True, producer_id=other.id, producer_epoch=other.epoch),
    )
    ask("verify what was added", asked(producer.name, (topic, 0), (topic, 1), verify_only=True))
    producer.end("the end", committed=True)
    producer.rest()
    ask("verify behind the end", asked(producer.name, (topic, 0), verify_only=True))


@scenario(ApiKey.ADD_OFFSETS_TO_TXN)
def offsets_take_part(stage: Stage) -> None:
    producer = Producer(stage)
    producer.init("a producer")
    given = {"transactional_id": producer.name, "producer_id": producer.id, "producer_epoch": producer.epoch}
    for label, fields in (
        ("a group", {}),
        ("again", {}),
        ("an old epoch", {"producer_epoch": -1}),
        ("another producer", {"producer_id": 1_000_000}),
        ("an unknown id", {"transactional_id": producer.name + ".x"}),
        ("an empty id", {"transactional_id": ""}),
    ):
        asked: dict[str, Any] = {**given, **fields}
        request = AddOffsetsToTxnRequest(group_id=stage.name, **asked)
        answer = producer.settled(request, stage.version, lambda each: int(each.error_code))
        stage.note(label, stage.plain(answer))
    producer.end("the end", committed=False)


@scenario(ApiKey.END_TXN, "0-4")
def transactions_end(stage: Stage) -> None:
    topic = stage.topic()
    version = stage.version
    producer = Producer(stage)
    stage.ask("an unknown id", producer.end_request(committed=True, producer_id=7, producer_epoch=0))
    producer.init("a producer")
    producer.end("a commit of nothing", committed=True, version=version)
    producer.end("an abort of nothing", committed=False, version=version)
    for committed in (True, False):
        producer.add(f"begin, to end with {committed}", (topic, 0))
        producer.end("an old epoch", committed=committed, version=version, producer_epoch=producer.epoch - 1)
        producer.end("a new epoch", committed=committed, version=version, producer_epoch=producer.epoch + 1)
        producer.end("another producer", committed=committed, version=version, producer_id=1_000_000)
        producer.end("the end", committed=committed, version=version)
        producer.end("again", committed=committed, version=version)
        producer.end("the other way", committed=not committed, version=version)
    producer.end("an empty id", committed=True, version=version, transactional_id="")


@scenario(ApiKey.END_TXN, "5-99", oracles=(KAFKA_43,))
def transactions_of_version_2_end(stage: Stage) -> None:
    topic = stage.topic()
    producer = Producer(stage)
    producer.init("a producer")
    producer.end("a commit of nothing", committed=True, version=5)
    producer.end("an abort of nothing", committed=False, version=5)
    producer.rest()
    for committed in (True, False):
        producer.put("a batch", topic, producer.batch(0), version=12)
        before = {"producer_id": producer.id, "producer_epoch": producer.epoch}
        producer.end("an old epoch", committed=committed, version=5, producer_epoch=producer.epoch - 1)
        producer.end("a new epoch", committed=committed, version=5, producer_epoch=producer.epoch + 1)
        producer.end("the end", committed=committed, version=5)
        producer.rest()
        producer.end("again", committed=committed, version=5, **before)
        producer.end("again, the other way", committed=not committed, version=5, **before)
        producer.put("a late batch", topic, producer.batch(1, **before), version=12)
    producer.end("an abort of nothing", committed=False, version=5)
    read(stage, topic)


@scenario(ApiKey.PRODUCE, "3-12")
def transactional_batches_are_verified(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    version = stage.version
    producer = Producer(stage)
    producer.init("a producer")
    producer.init("a later one")
    if version < 12:
        producer.put("not added", topic, producer.batch(0), version=version)
        producer.add("add", (topic, 0))
    producer.put("first", topic, producer.batch(0, 2), version=version)
    producer.put("next", topic, producer.batch(2), version=version)
    producer.put("next, again", topic, producer.batch(2), version=version)
    producer.put("a gap", topic, producer.batch(9), version=version)
    producer.put("not transactional", topic, producer.batch(3, transactional=False), version=version)
    producer.put("an old epoch", topic, producer.batch(3, producer_epoch=0), version=version)
    producer.put("another producer", topic, producer.batch(0, producer_id=1_000_000), version=version)
    stage.ask("without the id", produce_request(topic, producer.batch(3)), version)
    read(stage, topic)
    producer.end("the end", committed=False)
    producer.rest()
    read(stage, topic)
    if version < 12:
        producer.put("behind the end", topic, producer.batch(3), version=version)
        producer.add("add again", (topic, 0))
        producer.put("the next transaction", topic, producer.batch(3), version=version)
        producer.end("the next end", committed=True)
        producer.rest()
        read(stage, topic)


@scenario(ApiKey.PRODUCE, "3-12", oracles=(KAFKA_43,))
def a_later_epoch_is_verified_too(stage: Stage) -> None:
    """3.9 lets it into the open transaction, which then never ends."""
    topic = stage.topic()
    producer = Producer(stage)
    producer.init("a producer")
    producer.add("add", (topic, 0))
    producer.put("first", topic, producer.batch(0), version=stage.version)
    later = producer.batch(0, producer_epoch=producer.epoch + 1)
    producer.put("a later epoch", topic, later, version=stage.version)
    producer.end("the end", committed=True)
    producer.rest()
    read(stage, topic)


@scenario(ApiKey.WRITE_TXN_MARKERS)
def markers_are_written(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    producer = Producer(stage)
    producer.init("a producer")
    producer.init("a later one")
    producer.add("add", (topic, 0))
    producer.put("a batch", topic, producer.batch(0))

    def mark(label: str, *, partition: int = 0, name: str = topic, committed: bool = True, **fields: Any) -> None:
        given = {"producer_id": producer.id, "producer_epoch": producer.epoch, "coordinator_epoch": 5, **fields}
        topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[partition])]
        marker = WritableTxnMarker(transaction_result=committed, topics=topics, **given)
        stage.ask(label, WriteTxnMarkersRequest(markers=[marker]))

    mark("an unknown partition", partition=7)
    mark("an unknown topic", name=topic + ".x")
    mark("an old epoch", producer_epoch=producer.epoch - 1)
    mark("an unknown producer", producer_id=1_000_000)
    mark("a marker")
    mark("again")
    mark("of an older coordinator", coordinator_epoch=3)
    mark("of a newer one", coordinator_epoch=6)
    stage.ask("no markers", WriteTxnMarkersRequest(markers=[]))
    read(stage, topic)


@scenario(ApiKey.DESCRIBE_PRODUCERS)
def producers_are_described(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    producer = Producer(stage)
    producer.init("a producer")
    producer.add("add", (topic, 0))
    producer.put("a batch", topic, producer.batch(0, 3))

    def describe(label: str, *rows: tuple[str, list[int]]) -> None:
        topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in rows]
        answer = stage.client.ask(DescribeProducersRequest(topics=topics), stage.version)
        for each in answer.topics:
            for part in each.partitions:
                for state in part.active_producers:
                    state.last_timestamp = int(state.last_timestamp > 0)
                    state.coordinator_epoch = int(state.coordinator_epoch >= 0)
        stage.note(label, stage.plain(answer))

    describe("open", (topic, [0, 1]))
    describe("unknown ones", (topic, [7]), (topic + ".x", [0]))
    producer.end("the end", committed=True)
    producer.rest()
    describe("ended", (topic, [0, 1]))
    describe("nothing")


@scenario(ApiKey.DESCRIBE_TRANSACTIONS)
def transactions_are_described(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    producer = Producer(stage)

    def describe(label: str, *names: str) -> None:
        answer = stage.client.ask(DescribeTransactionsRequest(transactional_ids=list(names)), stage.version)
        for state in answer.transaction_states:
            state.transaction_start_time_ms = min(state.transaction_start_time_ms, 1)
        stage.note(label, stage.plain(answer))

    describe("unknown ones", stage.name, "")
    producer.init("a producer")
    describe("empty", producer.name)
    producer.add("add", (topic, 0), (topic, 1))
    describe("ongoing", producer.name, stage.name + ".x")
    producer.end("the end", committed=True)
    producer.rest()
    describe("complete", producer.name)
    describe("nothing")


@scenario(ApiKey.LIST_TRANSACTIONS)
def transactions_are_listed(stage: Stage) -> None:
    topic = stage.topic()
    idle, running = Producer(stage, ".idle"), Producer(stage, ".running")
    idle.init("idle")
    running.init("running")
    running.add("add", (topic, 0))

    def ask(label: str, **fields: Any) -> None:
        request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **fields})
        answer = stage.client.ask(request, stage.version)
        answer.transaction_states = [
            each for each in answer.transaction_states if each.transactional_id.startswith(stage.name + ".")
        ]
        stage.note(label, stage.plain(answer))

    ask("all")
    ask("by state", state_filters=["Ongoing"])
    ask("by states", state_filters=["Ongoing", "Empty", "ongoing", "Nonsense"])
    ask("by an unknown state", state_filters=["Nonsense"])
    ask("by producer", producer_id_filters=[running.id, 1_000_000])
    if stage.version >= 1:
        ask("by a long duration", duration_filter=3_600_000)
        ask("by no duration", duration_filter=-1)
    if stage.version >= 2:
        ask("by a pattern", transactional_id_pattern=r".*\.idle")
        ask("by a part of a pattern", transactional_id_pattern="idle")
        ask("by nothing", transactional_id_pattern="")
        ask("by nonsense", transactional_id_pattern="(")
    running.end("the end", committed=False)
