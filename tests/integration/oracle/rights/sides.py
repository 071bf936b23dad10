"""Two brokers with the same topics, groups, users and rights, which are asked the same."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreateTopicsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.schema import Request
from tests.integration.oracle.answers.scenarios import SAME_AS_KAFKAS
from tests.integration.oracle.answers.stage import Stage, batch, creatable
from tests.integration.oracle.rights.accounts import Accounts, UserWire
from tests.integration.oracle.rights.table import GROUP, HERE, ROWS, TOO, TRANSACTION, Names
from tests.integration.oracle.rights.topic_rows import DOOMED
from tests.support.kafka_process import ZooKeeperKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import free_port, wait_until
from tests.support.server import RunningServer
from tests.support.wire import FRAMED_BY_HAND, SIZE, ClosedError, Wire, frame

TIME_TO_SETTLE_S: Final = 90.0
SETTINGS: Final = {
    **SAME_AS_KAFKAS,
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "connections.max.idle.ms": "-1",
    "delegation.token.secret.key": "the secret of a test's tokens",
}


class Side:
    """One broker. Its users' connections stay open."""

    def __init__(self, server: RunningServer, users_port: int) -> None:
        self._server = server
        self._users_port = users_port
        self._stack = ExitStack()
        self.admin = self._stack.enter_context(Wire(server.host, server.port))
        self._wires: dict[str, Wire] = {}
        self._stage = Stage(self.admin, 0, "rights")
        self._ids: dict[str, bytes] = {}

    @property
    def names(self) -> Names:
        return Names(ids=tuple(self._ids.items()))

    def close(self) -> None:
        self._stack.close()

    def prepare(self) -> None:
        """Have the topics, the group and the transactional id that the table's requests name."""
        for name in (HERE, TOO, DOOMED):
            self.make(name)
        for name in (HERE, TOO):
            self._stage.append(name, batch(3))
        self._await_coordinator(0, GROUP)
        self._await_coordinator(1, TRANSACTION)
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="m")]
        topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in (HERE, TOO)]
        commit = OffsetCommitRequest(group_id=GROUP, topics=topics)
        wait_until(
            lambda: {part.error_code for topic in self.admin.ask(commit, 8).topics for part in topic.partitions} == {0},
            TIME_TO_SETTLE_S,
            "offsets cannot be committed",
        )
        begin = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000)
        wait_until(lambda: self.admin.ask(begin, 4).error_code == 0, TIME_TO_SETTLE_S, "no transaction can begin")

    def _await_coordinator(self, key_type: int, key: str) -> None:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        wait_until(
            lambda: self.admin.ask(request, 4).coordinators[0].error_code == ErrorCode.NONE,
            TIME_TO_SETTLE_S,
            f"{key} has no coordinator",
        )

    def answer(self, user: str, request: Request, version: int) -> Any:
        """What a user is answered, made comparable."""
        self._stage.version = version
        try:
            answer = self._wire(user).ask(request, version)
        except ClosedError:
            return "closed"
        return self._stage.plain(answer)

    def answer_bytes(self, user: str, request: Request, version: int) -> bytes:
        """What a user is answered, as it comes; correlation ids are all the same."""
        wire = self._wire(user)
        wire.send_frame(frame(request, version, FRAMED_BY_HAND)[SIZE.size :])
        return wire.receive_frame()

    def make(self, name: str) -> None:
        """Have the topic be there."""
        request = CreateTopicsRequest(topics=[creatable(name)], timeout_ms=30_000)
        done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        wait_until(
            lambda: self.admin.ask(request, 7).topics[0].error_code in done, TIME_TO_SETTLE_S, f"{name} is not made"
        )
        wait_until(lambda: self._stage._has_leaders(name, 1), TIME_TO_SETTLE_S, f"{name} gets no leader")
        self._ids[name] = self._stage.id_of(name)

    def unmake(self, name: str) -> None:
        """Have the topic be gone."""
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)

        def is_gone() -> bool:
            self.admin.ask(request, 5)
            return self._could_make(name)

        wait_until(is_gone, TIME_TO_SETTLE_S, f"{name} does not go")

    def undo(self, names: tuple[str, ...]) -> None:
        """Have these topics be as they were at first: there, if it is the one that requests delete."""
        for name in names:
            if name == DOOMED:
                asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
                if self.admin.ask(asked, 12).topics[0].topic_id != self._ids[name]:
                    self.unmake(name)
                    self.make(name)
            elif not self._could_make(name):
                self.unmake(name)

    def _could_make(self, name: str) -> bool:
        """Whether the topic is wholly gone: the metadata show some of them too late, or no more too early."""
        trial = CreateTopicsRequest(topics=[creatable(name)], timeout_ms=30_000, validate_only=True)
        return bool(self.admin.ask(trial, 7).topics[0].error_code == ErrorCode.NONE)

    def _wire(self, user: str) -> Wire:
        wire = self._wires.get(user)
        if wire is None:
            wire = self._wires[user] = self._stack.enter_context(UserWire(self._server.host, self._users_port, user))
        return wire


class Sides:
    """Kavka and Apache Kafka 3.9."""

    def __init__(self, kavka: Side, kafka: Side, accounts: Accounts) -> None:
        self.kavka = kavka
        self.kafka = kafka
        self.accounts = accounts

    def versions(self, key: int, oldest: int, newest: int) -> list[int]:
        """The oldest and the newest that both serve."""
        ours, theirs = self.kavka.admin.ranges.get(key), self.kafka.admin.ranges.get(key)
        if ours is None or theirs is None:
            return []
        low, high = max(oldest, ours[0], theirs[0]), min(newest, ours[1], theirs[1])
        return sorted({low, high}) if low <= high else []


@contextmanager
def both_sides(directory: Path) -> Iterator[Sides]:
    """The two brokers, beside one ZooKeeper, ready to be asked."""
    accounts = Accounts(ROWS)
    with ExitStack() as stack:
        kafka_port, kavka_port = free_port(), free_port()
        kafka = ZooKeeperKafka(directory / "kafka", {**SETTINGS, **accounts.settings()})
        listeners = f"PLAINTEXT://{kafka.host}:{kafka.port},SASL_PLAINTEXT://{kafka.host}:{kafka_port}"
        kafka.overrides |= {"listeners": listeners, "advertised.listeners": listeners}
        stack.enter_context(kafka)
        kavka = KavkaProcess(
            directory / "kavka",
            {
                **SETTINGS,
                **accounts.settings(),
                "zookeeper.connect": kafka.zookeeper_connect + "/kavka",
                "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{kavka_port}",
            },
        )
        stack.enter_context(kavka)
        ours = _ready(kavka, kavka_port, accounts, stack)
        theirs = _ready(kafka, kafka_port, accounts, stack)
        yield Sides(ours, theirs, accounts)


def _ready(server: RunningServer, users_port: int, accounts: Accounts, stack: ExitStack) -> Side:
    side = Side(server, users_port)
    stack.callback(side.close)
    side.prepare()
    accounts.grant_all(side.admin)
    return side
