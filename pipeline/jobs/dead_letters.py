"""Rows that could not be used: kept in a topic with the reason and where they came from, shown, and sent again.

The sink of a job's [dead_letters]:

    [dead_letters]
    topic = "visits-dead"     # made if it is not there, and kept for good

A dead letter is the record as it came, with headers `kavka.reason`, `kavka.topic`, `kavka.partition`, `kavka.offset`
and `kavka.job` behind its own. `retry` sends it back to where it came from, with `kavka.retries` in their place. One
that would be longer than the topic's `max.message.bytes` has these headers alone and `kavka.cut`, its length: it lies
where it came from, and is not sent again.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, functions

from kavka.client import Admin, Consumer, ConsumerRecord, Producer, TopicPartition
from kavka.client.api_errors import InvalidRecordError, InvalidTimestampError, KafkaError, RecordTooLargeError
from kavka.pipeline.jobs.dead_rows import CUT, JOB, OFFSET, OWN, PARTITION, REASON, RETRIES, TOPIC, dead_rows
from kavka.pipeline.jobs.letter_size import most_letter_bytes
from kavka.pipeline.jobs.letter_sources import LetterSources, anywhere
from kavka.pipeline.jobs.made_topics import make_topic
from kavka.pipeline.jobs.retried_letters import RetriedLetters
from kavka.pipeline.running.sink import RunContext, Sink, SinkError
from kavka.pipeline.running.tables import Table
from kavka.pipeline.secret_references import resolved_settings
from kavka.pipeline.sending.marked_producer import MOST_REQUEST_BYTES
from kavka.pipeline.sending.markers import MARKER_TOPIC, common_settings, marker_place
from kavka.pipeline.sending.topic_sink import options_of
from kavka.pipeline.sending.writing import write

MOST_RETRIES: Final = 3
_POLL_MS: Final = 1000.0
_LONGEST_NUMBER: Final = 20
_REFUSALS: Final = (RecordTooLargeError, InvalidTimestampError, InvalidRecordError)
"""Of a record for what it is: too long for its topic, of a time that it does not take, without a key that it needs."""

log = logging.getLogger(__name__)


class DeadLetter(NamedTuple):
    """One of them: where it lies, why it is there, where it came from (None: it does not say), and what it was."""

    partition: int
    offset: int
    timestamp_ms: int
    reason: str | None
    job: str | None
    source_topic: str | None
    source_partition: int | None
    source_offset: int | None
    retries: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    """Its own, as it came."""
    is_cut: bool = False
    """Whether key, value and headers of its own were left out."""


class Retried(NamedTuple):
    """`sent` are back where they came from; `passed_over` are left: no place to go to, tried often enough, unwanted."""

    sent: int
    passed_over: int


class DeadLetterSink:
    """Keeps rows with a column `reason` beside those of the source `kavka`. Threads: one."""

    def __init__(self, table: Table) -> None:
        """Raises SettingError."""
        self._topic: Final = table.text("topic")
        self._partitions: Final = table.number("topic_partitions", -1, least=-1)
        self._options: Final = options_of(table, self._topic)
        self._client: Final = table.table("client").flat()
        self._run: RunContext | None = None
        self._most_bytes = 0

    def open(self, run: RunContext) -> None:
        """Make the topic if it is not there. Raises SinkError."""
        self._run = run
        settings = {**run.client_settings, **self._client}
        try:
            with Admin(common_settings(settings)) as admin:
                make_topic(admin, self._topic, self._partitions, {"retention.ms": "-1"})
                self._most_bytes = most_letter_bytes(admin, self._topic, settings)
        except KafkaError as error:
            raise SinkError(f"{run.name}: {error}") from error

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Keep a batch's rows, exactly once. Raises SinkError."""
        run = self._run
        assert run is not None, "write comes after open"
        rows = dead_rows(batch, run.job, functions.col("reason"), self._most_bytes)
        try:
            settings = {**run.client_settings, **self._client}
            written = write(rows, batch_id, settings, query=f"{run.query_id}-dead-letters", options=self._options)
        except (KafkaError, ValueError) as error:
            raise SinkError(f"{run.name}: {error}") from error
        run.report.add("dead_letters", written.sent)

    def close(self) -> None:
        """Nothing is open between batches."""


def sink(settings: Mapping[str, object]) -> Sink:
    """The sink of a job file's [dead_letters]. Raises SettingError."""
    table = Table(settings)
    made = DeadLetterSink(table)
    table.close()
    return made


def show(settings: Mapping[str, str], topic: str) -> Iterator[DeadLetter]:
    """What is in the topic when it is called, partition by partition. Raises KafkaError. Threads: one."""
    own = {"isolation.level": "read_committed", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    with Consumer({**common_settings(settings), **own}) as consumer:
        for partition in sorted(consumer.partitions_for(topic)):
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek_to_beginning([place])
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < end:
                yield from (dead_letter(each) for each in consumer.poll(_POLL_MS) if each.offset < end)


def retry(
    settings: Mapping[str, str],
    topic: str,
    *,
    reason: str | None = None,
    target: str | None = None,
    most_retries: int = MOST_RETRIES,
    allows: Callable[[str], bool] = anywhere,
    marker_topic: str = MARKER_TOPIC,
) -> Retried:
    """Send what is in the topic now, and was not sent again before, to where it came from, or to `target`.

    Those alone whose reason matches the regular expression somewhere; the others are passed over, and are not looked at
    again. So are those that were cut, those that their topic does not take (with a warning), and those that name one
    that is not there, that is internal, or that `allows` does not: anybody may have written them. One of a partition
    that its topic does not have goes where its key belongs.
    Each goes once, whatever is killed when: with the records of a transaction the group `kavka-dead-letters-TOPIC`
    commits how far it got, and a marker says it to whoever comes when these offsets have expired. A second call at once
    shuts out the first one. Raises ValueError for an expression that is none, and KafkaError. Threads: one.
    """
    try:
        wanted = re.compile(reason or "")
    except re.error as error:
        raise ValueError(f"{reason!r} is no regular expression: {error}") from None
    group = f"kavka-dead-letters-{topic}"
    own = {"isolation.level": "read_committed", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    size = {"max.request.size": str(MOST_REQUEST_BYTES)}
    sent = passed_over = 0
    with (
        Producer({**size, **resolved_settings(settings), "transactional.id": group}) as producer,
        Consumer({**common_settings(settings), **own, "group.id": group}) as consumer,
        Admin(common_settings(settings)) as admin,
    ):
        sources = LetterSources(admin, topic, allows)
        # Before it is read how far somebody got: he cannot get further then.
        producer.init_transactions()
        markers = RetriedLetters(
            marker_place(admin, settings, marker_topic), topic, admin.describe_topics([topic])[topic].topic_id
        )
        returning = _Returning(producer, group, markers, sources, wanted, target, most_retries)
        places = [TopicPartition(topic, partition) for partition in consumer.partitions_for(topic)]
        consumer.assign(places)
        _go_on(consumer, places, markers)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            records = [
                each
                for each in consumer.poll(_POLL_MS)
                if each.offset < ends[TopicPartition(each.topic, each.partition)]
            ]
            went = returning.sent(records)
            sent += went
            passed_over += len(records) - went
    return Retried(sent, passed_over)


def _go_on(consumer: Consumer, places: Sequence[TopicPartition], markers: RetriedLetters) -> None:
    """Where the group has no offsets any more, behind the markers."""
    committed = consumer.committed(places)
    expired = {place.partition: place for place in places if committed[place] is None}
    for partition, position in markers.positions(expired).items():
        consumer.seek(expired[partition], position)


class _Returning(NamedTuple):
    """How letters go back. Threads: one."""

    producer: Producer
    group: str
    markers: RetriedLetters
    sources: LetterSources
    wanted: "re.Pattern[str]"
    target: str | None
    most_retries: int

    def sent(self, records: Sequence[ConsumerRecord]) -> int:
        """How many of these went, with how far that is: in one transaction, or where a topic takes some of them not in
        several, so that these alone are passed over. Raises KafkaError.
        """
        if not records:
            return 0
        chosen = [letter for letter in map(dead_letter, records) if self._is_chosen(letter)]
        try:
            self._commit(records, chosen)
        except KafkaError as error:
            refusal = _refusal_in(error)
            if refusal is None or not chosen:
                raise
            self.producer.abort_transaction()
            if len(records) > 1:
                middle = len(records) // 2
                return self.sent(records[:middle]) + self.sent(records[middle:])
            (letter,) = chosen
            log.warning("passed over partition=%d offset=%d error=%r", letter.partition, letter.offset, str(refusal))
            self._commit(records, ())
            return 0
        return len(chosen)

    def _commit(self, records: Sequence[ConsumerRecord], letters: Sequence[DeadLetter]) -> None:
        producer = self.producer
        producer.begin_transaction()
        for letter in letters:
            self._send_back(letter)
        following = {(each.topic, each.partition): each.offset + 1 for each in records}
        self.markers.send(producer, {partition: position for (_, partition), position in following.items()})
        producer.send_offsets_to_transaction(following, self.group)
        producer.commit_transaction()

    def _is_chosen(self, letter: DeadLetter) -> bool:
        if letter.is_cut or letter.retries >= self.most_retries or not self.wanted.search(letter.reason or ""):
            return False
        return self.target is not None or self.sources.takes(letter.source_topic)

    def _send_back(self, letter: DeadLetter) -> None:
        headers = [*letter.headers, (RETRIES, b"%d" % (letter.retries + 1))]
        topic = self.target or letter.source_topic
        assert topic is not None
        partition = self.sources.partition(topic, letter.source_partition) if self.target is None else None
        self.producer.send(topic, letter.value, letter.key, partition, max(letter.timestamp_ms, 0), headers)


def _refusal_in(error: BaseException | None) -> BaseException | None:
    """What of `_REFUSALS` it comes from."""
    while error is not None and not isinstance(error, _REFUSALS):
        error = error.__cause__
    return error


def dead_letter(record: ConsumerRecord) -> DeadLetter:
    """What a record of the topic says. Headers are hostile: what is no number, or no text, is None."""
    found = {name: value for name, value in record.headers if name in OWN}
    return DeadLetter(
        record.partition,
        record.offset,
        record.timestamp_ms,
        _text(found.get(REASON)),
        _text(found.get(JOB)),
        _text(found.get(TOPIC)),
        _number(found.get(PARTITION)),
        _number(found.get(OFFSET)),
        _number(found.get(RETRIES)) or 0,
        record.key,
        record.value,
        tuple((name, value) for name, value in record.headers if name not in OWN),
        CUT in found,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _number(value: bytes | None) -> int | None:
    if value is None or len(value) > _LONGEST_NUMBER or not value.isdigit():
        return None
    return int(value)
