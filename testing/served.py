"""What a test does with a broker or a cluster: create topics, put rows in, look what is there, wait for groups."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kavka.testing.clock import TravelClock
from kavka.testing.rows import AnyRow, Record, Records, outgoing, row_of
from kavka.testing.waiting import DEFAULT_TIMEOUT_S, wait_until

if TYPE_CHECKING:
    from kavka.broker.faults.control import FaultControl
    from kavka.broker.faults.door import FaultDoor
    from kavka.client import Admin, Producer, RecordMetadata, TopicPartition


class Served:
    """Works over real sockets, by Kavka's own clients, which are made when they are first needed.

    Threads: any. `_clients_lock` guards the clients' making and closing.
    """

    clock: TravelClock
    faults_door: "FaultDoor | None" = None
    """Where programs in other languages ask for faults, with the setting kavka.faults.enable."""

    def __init__(self) -> None:
        self._clients_lock = threading.Lock()
        self._admin: Admin | None = None
        self._producer: Producer | None = None

    @property
    def bootstrap_servers(self) -> str:
        """For any client's setting of that name."""
        raise NotImplementedError

    def bootstrap_at(self, listener: str) -> str:
        """The same, where the setting `listeners` has several: of the one with this name, as SASL_SSL.

        Raises ValueError for one that there is not.
        """
        raise NotImplementedError

    @property
    def listeners(self) -> Sequence[str]:
        """The listeners' names."""
        raise NotImplementedError

    @property
    def plain_servers(self) -> str:
        """Where the clients here ask: the first listener without TLS and SASL. Raises RuntimeError without one."""
        raise NotImplementedError

    def named(self, name: str) -> str:
        """The name of a topic or a group as the broker has it."""
        return name

    @property
    def faults(self) -> "FaultControl":
        """What can be asked to go wrong; see docs/testing.md."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises BrokerDiedError, when a broker has ended that nobody has stopped."""
        raise NotImplementedError

    @property
    def admin(self) -> "Admin":
        """An administrator's client; closed with the broker."""
        with self._clients_lock:
            if self._admin is None:
                from kavka.client import Admin

                self._admin = Admin(bootstrap_servers=self.plain_servers, client_id="kavka-testing")
            return self._admin

    @property
    def producer(self) -> "Producer":
        """An idempotent producer; closed with the broker."""
        with self._clients_lock:
            if self._producer is None:
                from kavka.client import Producer

                self._producer = Producer(bootstrap_servers=self.plain_servers, client_id="kavka-testing")
            return self._producer

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] | None = None,
    ) -> str:
        """Create a topic, and give its name back. Raises TopicExistsError and what else a broker refuses it for."""
        from kavka.client import NewTopic

        topic = self.named(name)
        self.admin.create_topics([NewTopic(topic, partitions, replication_factor, configs)])
        self._wait_for_topics([topic])
        return topic

    def create_topics(self, *names: str, partitions: int = 1, replication_factor: int = -1) -> list[str]:
        """Create several that are alike, as `create_topic` does one."""
        from kavka.client import NewTopic

        topics = [self.named(name) for name in names]
        self.admin.create_topics([NewTopic(topic, partitions, replication_factor) for topic in topics])
        self._wait_for_topics(topics)
        return topics

    def _wait_for_topics(self, topics: Iterable[str]) -> None:
        """Until whoever is asked knows them; one broker does at once."""

    def produce(self, topic: str, rows: Iterable[AnyRow]) -> "list[RecordMetadata]":
        """Put rows into a topic and wait until they are acknowledged: where they lie, in their order.

        A row is a value, a pair (key, value), or a `Row`; see there for what they may be. Raises KafkaError.
        """
        topic, producer = self.named(topic), self.producer
        futures = []
        for row in map(row_of, rows):
            now_ms = self.clock.now_ms() if row.timestamp_ms is None else row.timestamp_ms
            futures.append(producer.send(topic, row.value, row.key, row.partition, now_ms, row.headers))
        producer.flush()
        return [future.result() for future in futures]

    def records(self, topic: str, *, committed: bool = False) -> Records:
        """What is in a topic now. With `committed`: without records of transactions that are open or were aborted.

        Raises UnknownTopicOrPartitionError for a topic that there is not.
        """
        from kavka.client import Consumer, TopicPartition

        topic = self.named(topic)
        count = len(self.admin.describe_topics([topic])[topic].partitions)
        partitions = [TopicPartition(topic, index) for index in range(count)]
        settings = {
            "bootstrap.servers": self.plain_servers,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": "false",
            "client.id": "kavka-testing",
        }
        if committed:
            self._wait_for_markers(partitions)
        found: list[Record] = []
        with Consumer(settings) as consumer:
            ends = consumer.end_offsets(partitions)
            consumer.assign(partitions)
            consumer.seek_to_beginning(partitions)
            while any(consumer.position(each) < ends[each] for each in partitions):
                found += [
                    Record(each.partition, each.offset, each.timestamp_ms, each.key, each.value, each.headers)
                    for each in consumer.poll(timeout_ms=1_000)
                ]
                self.check()
        return Records(topic, count, sorted(each for each in found if each.offset < ends[partitions[each.partition]]))

    def _wait_for_markers(self, partitions: "Sequence[TopicPartition]") -> None:
        """Until no transaction that has ended holds these back: its markers come after its end is acknowledged."""
        from kavka.client import IsolationLevel, OffsetSpec, TransactionState

        asked = dict.fromkeys(partitions, OffsetSpec.LATEST)
        ending = [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]

        def is_settled() -> bool:
            self.check()
            stable = self.admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
            ends = self.admin.list_offsets(asked)
            if all(stable[each].offset >= ends[each].offset for each in partitions):
                return True
            ids = [each.transactional_id for each in self.admin.list_transactions(states=ending)]
            found = self.admin.describe_transactions(ids) if ids else {}
            held = [each for one in found.values() if one.state in ending for each in one.partitions]
            return asked.keys().isdisjoint(held)

        wait_until(is_settled, message="a transaction has ended, and its markers are not written")

    def wait_for_records(self, topic: str, count: int, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Records:
        """Until there are that many, at least; all that is there then. The message of a failure shows what is there."""

        def enough() -> Records | None:
            self.check()
            records = self.records(topic)
            return records if len(records) >= count else None

        found = wait_until(enough, timeout_s, lambda: f"{count} records are awaited; {self.records(topic).shown()}")
        assert found is not None
        return found

    def assert_records(self, topic: str, values: Iterable[Any], *, committed: bool = False) -> None:
        """Fail unless these are the values of the topic's records, by partition and offset.

        Each may be what `produce` takes for a value.
        """
        found = self.records(topic, committed=committed)
        expected = [outgoing(value) for value in values]
        if found.values != expected:
            raise AssertionError(f"expected the values {expected!r}\nfound {found.shown()}")

    def lag(self, group_id: str, topics: Iterable[str] = ()) -> "dict[TopicPartition, int]":
        """How many offsets a group's commits are behind the ends: of these topics, or of what it has committed for.

        Of a topic that is named all partitions count, also those for which nothing was committed yet.
        """
        from kavka.client import OffsetSpec, TopicPartition

        group_id = self.named(group_id)
        asked = [
            TopicPartition(described.name, each.partition)
            for described in self.admin.describe_topics(list(map(self.named, topics))).values()
            for each in described.partitions
        ]
        committed = self.admin.list_group_offsets({group_id: asked or None})[group_id]
        partitions = asked or list(committed)
        if not partitions:
            return {}
        ends = self.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        starts = self.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        return {
            each: ends[each].offset - (starts[each].offset if (known := committed.get(each)) is None else known.offset)
            for each in partitions
        }

    def wait_until_consumed(self, group_id: str, *topics: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Until a group has committed all there is in these topics: its lag is zero."""
        lag: dict[TopicPartition, int] = {}

        def is_consumed() -> bool:
            self.check()
            lag.clear()
            lag.update(self.lag(group_id, topics))
            return not any(lag.values())

        def behind() -> str:
            shown = ", ".join(f"{each.topic}-{each.partition}: {lag[each]}" for each in lag if lag[each])
            return f"group {group_id} is behind by {shown}"

        wait_until(is_consumed, timeout_s, behind)

    def wait_until(self, condition: Any, *, timeout_s: float = DEFAULT_TIMEOUT_S, message: str = "") -> Any:
        """Ask `condition()` until it is true, as long as no broker dies; what it gave then. Raises AssertionError."""

        def asked() -> Any:
            self.check()
            return condition()

        return wait_until(asked, timeout_s, message)

    def travel(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Send the brokers' clock ahead: what is due by then, timeouts and passes over the logs, happens now.

        Retention, sessions of members and transactions travel. Clients do not: theirs is the system's clock.
        """
        hours += 24 * days
        self.clock.travel(milliseconds + 1000 * (seconds + 60 * (minutes + 60 * hours)))

    def _open_door(self, settings: Mapping[str, str]) -> None:
        """Let faults be asked for over HTTP, where the settings say so. Raises ConfigError, OSError."""
        from kavka.config.kavka_settings import KavkaSettings

        rows = KavkaSettings.ROWS
        if self.faults_door is None and rows["kavka.faults.enable"].parse(settings.get("kavka.faults.enable", "false")):
            from kavka.broker.faults.door import FaultDoor

            door = FaultDoor(self.faults, rows["kavka.faults.port"].parse(settings.get("kavka.faults.port", "0")))
            door.start()
            self.faults_door = door

    def _end_faults(self) -> None:
        """Nobody asks for any more, and none stands."""
        door, self.faults_door = self.faults_door, None
        # Before, as those who asked by the door may wait for what a fault holds up; after, as they may have asked more.
        self.faults.clear()
        if door is not None:
            door.stop()
            self.faults.clear()

    def _close_clients(self) -> None:
        """Without waiting for what they have under way."""
        with self._clients_lock:
            producer, self._producer = self._producer, None
            admin, self._admin = self._admin, None
        if producer is not None:
            producer.close(timeout_ms=0)
        if admin is not None:
            admin.close(timeout_ms=0)
