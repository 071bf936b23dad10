"""A controller whose own disk answers nothing goes on: the cluster's other brokers are led, and hear of it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.interbroker.cluster_links import ClusterLinks
from kavka.broker.membership import Membership
from kavka.broker.partitions.role import GrantedIsr, PendingIsr
from kavka.broker.settings.config_alteration import alter_config
from kavka.broker.settings.config_answers import BROKER
from kavka.broker.waiting.scheduler import Scheduler
from kavka.broker.waiting.timer import Timer
from kavka.cluster.broker_registration import BrokerRegistration, prepare_tree
from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.controller.requests import ConfigEntity, ElectionType, NewTopic
from kavka.cluster.registry.base import RegistryUnavailableError
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.topic import PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kavka.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kavka.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from kavka.storage.files import AnyPath, Files
from tests.support.broker_core import BrokerCore
from tests.support.fake_brokers import broker_info
from tests.support.gate import Gate
from tests.support.processes import wait_until
from tests.support.scripted_broker import ScriptedBroker

ME, OTHER, THIRD = 1, 2, 3
PATIENCE_S = 60.0
BACKGROUND_THREADS = 2


class HungDisk(Files):
    """Makes no folder while it is `held`."""

    def __init__(self) -> None:
        self.waiting = threading.Semaphore(0)
        self._gate = Gate()
        self.held = self._gate.held
        self.mkdir = self._mkdir

    def _mkdir(self, path: AnyPath) -> None:
        if self._gate.is_held:
            self.waiting.release()
            self._gate.pass_through()
        Path(path).mkdir()


class OtherBroker:
    """Obeys what it is told over the network, on a thread, and remembers the names of the topics that it leads."""

    def __init__(self, broker_id: int) -> None:
        self.scripted = ScriptedBroker(broker_id)
        self.led: set[str] = set()
        self.known: set[str] = set()
        self._thread = threading.Thread(target=self._obey, daemon=True)
        self._thread.start()

    @property
    def info(self) -> BrokerInfo:
        info = broker_info(self.scripted.node.id)
        return info._replace(endpoints=(info.endpoints[0]._replace(port=self.scripted.node.port),))

    def close(self) -> None:
        self.scripted.__exit__(None, None, None)
        self._thread.join(PATIENCE_S)

    def _obey(self) -> None:
        # It ends with the listener or the connection.
        with contextlib.suppress(OSError):
            visitor = self.scripted.accept()
            visitor.serve_versions()
            while True:
                asked = visitor.asked()
                visitor.answer(asked, self._answer(asked.request))

    def _answer(self, request: Any) -> Any:
        if isinstance(request, LeaderAndIsrRequest):
            for topic in request.topic_states:
                if any(each.leader == self.scripted.node.id for each in topic.partition_states):
                    self.led.add(topic.topic_name)
            return LeaderAndIsrResponse(error_code=0)
        if isinstance(request, UpdateMetadataRequest):
            self.known.update(topic.topic_name for topic in request.topic_states)
            return UpdateMetadataResponse(error_code=0)
        assert isinstance(request, StopReplicaRequest)
        return StopReplicaResponse(error_code=0, partition_errors=[])


class Rig:
    """Broker 1 is the controller, with all that it has in a cluster but for its sockets."""

    def __init__(self, directory: Path) -> None:
        self.deaths: list[BaseException] = []
        self.disk = HungDisk()
        self.core = BrokerCore(directory, files=self.disk, broker_id=ME)
        services: Any = self.core.services
        self.services = services
        self.registry = services.registry = EmbeddedRegistry(directory.parent / FILE_NAME, lambda: 1)
        prepare_tree(self.registry)
        services.config.on_topic_change(
            lambda topic, overrides: self.core.rig.overrides.update({topic: dict(overrides)})
        )
        services.config.on_topic_change(services.logs.update_topic_config)
        self.notifications = ConfigNotificationListener(
            self.registry, services.config.topic_changed, services.config.broker_changed, lambda: 1
        )
        self.notifications.start()
        self.timer = Timer(self.deaths.append)
        self.timer.start()
        self.scheduler = Scheduler(self.timer, BACKGROUND_THREADS, self.deaths.append)
        self.membership = Membership(services, self.scheduler, lambda: 1, lambda reason: None)
        self.links = ClusterLinks(services, self.membership, self.scheduler, self.timer, self.deaths.append)
        self.membership.prepare(broker_info(ME), self.notifications, self.links)
        self._undo: list[Callable[[], None]] = []
        self.membership.join(self._undo.append)
        self.controller = services.controller
        wait_until(lambda: self.controller.stats().is_active, PATIENCE_S, "not elected")
        self.others = [OtherBroker(OTHER), OtherBroker(THIRD)]
        for other in self.others:
            self.registry.create(BrokerInfo.path(other.info.broker_id), other.info.encode(), ephemeral=True)
        wait_until(lambda: self.controller.stats().brokers == 3, PATIENCE_S, "not all are known")

    def create(self, topic: str, *replicas: int, configs: dict[str, str] | None = None) -> Any:
        """A promise that it is there."""
        return self.controller.create_topics([NewTopic(topic, assignments={0: list(replicas)}, configs=configs or {})])

    def hang(self) -> None:
        """Have the disk hang at an order of the controller's."""
        self.hanging = self.create("hanging", ME)
        assert self.disk.waiting.acquire(timeout=PATIENCE_S)

    def goes_on(self) -> None:
        """Whether the controller still does what it is asked."""
        assert self.controller.list_reassignments(None).result(PATIENCE_S) == {}

    def stop(self) -> None:
        while self._undo:
            self._undo.pop()()

    def close(self) -> None:
        self.stop()
        for other in self.others:
            other.close()
        self.notifications.stop()
        self.scheduler.stop()
        self.timer.stop()
        self.registry.close()
        self.core.close()
        assert self.deaths == []


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path / "logs")
    yield rig
    rig.close()


def test_other_brokers_are_led_on_while_the_controllers_own_disk_hangs(rig: Rig) -> None:
    second, third = rig.others
    rig.create("before", OTHER, THIRD).result(PATIENCE_S)
    with rig.disk.held():
        rig.hang()
        later = rig.create("visits", OTHER)
        wait_until(lambda: "visits" in second.led, PATIENCE_S, "nobody leads the new topic")
        rig.registry.delete(BrokerInfo.path(OTHER))
        wait_until(lambda: "before" in third.led, PATIENCE_S, "nobody is elected for who died")
        # As Kafka answers: when the controller's broker knows the topic, too.
        assert not rig.hanging.done
        assert not later.done
        assert "visits" not in rig.services.metadata.current.topics
    assert [each.error for each in (*rig.hanging.result(PATIENCE_S), *later.result(PATIENCE_S))] == [None, None]
    assert rig.services.metadata.current.topics.keys() == {"before", "hanging", "visits"}
    assert rig.services.replicas.partitions["hanging", 0].role.is_leader


def test_configurations_are_applied_on_no_thread_of_the_controllers(rig: Rig) -> None:
    short = {"retention.ms": "60000"}
    rig.create("visits", ME, configs=short).result(PATIENCE_S)
    assert rig.core.log("visits").config.retention_ms == 60_000
    with rig.disk.held():
        rig.hang()
        created = rig.create("clicks", OTHER, configs=short)
        altered = rig.controller.alter_configs(ConfigEntity.topic("visits"), {"retention.ms": "70000"})
        deleted = rig.controller.delete_topics(["clicks"])
        rig.goes_on()
        assert not altered.done
    created.result(PATIENCE_S)
    altered.result(PATIENCE_S)
    deleted.result(PATIENCE_S)
    assert rig.core.log("visits").config.retention_ms == 70_000


def test_changes_of_brokers_settings_are_made_ready_on_no_thread_of_the_controllers(rig: Rig) -> None:
    rig.create("visits", ME).result(PATIENCE_S)
    with rig.disk.held():
        rig.hang()
        # Who applies that has the settings' lock, and waits for the log manager's, which is held over the disk.
        altered = rig.controller.alter_configs(ConfigEntity.topic("visits"), {"retention.ms": "70000"})
        wait_until(rig.services.config._lock.locked, PATIENCE_S, "nobody applies what was altered")
        own = alter_config(
            BROKER, str(ME), lambda stored: {**stored, "log.cleaner.threads": "2"}, rig.services, validate_only=False
        )
        rig.goes_on()
        assert not own.done
    altered.result(PATIENCE_S)
    own.result(PATIENCE_S)
    assert rig.services.config.current.log_cleaner_threads == 2


def test_a_topic_has_its_configuration_before_it_is_led(rig: Rig) -> None:
    rig.create("visits", ME, configs={"retention.ms": "60000"}).result(PATIENCE_S)
    assert rig.core.log("visits").config.retention_ms == 60_000


def test_an_election_by_wish_is_answered_when_this_broker_knows_it(rig: Rig) -> None:
    rig.create("visits", ME, OTHER).result(PATIENCE_S)
    path = PartitionState.path("visits", 0)
    data, stat = rig.registry.get(path)
    state = PartitionState.decode("visits", 0, data, stat.version)
    with rig.disk.held():
        rig.hang()
        electing = rig.controller.elect_leaders(ElectionType.PREFERRED, [("visits", 0)])
        rig.goes_on()
        assert state.leader == ME
        assert not electing.done
    electing.result(PATIENCE_S)


def test_who_steps_down_leaves_the_term_to_others_before_its_disk_answers(rig: Rig) -> None:
    with rig.disk.held():
        rig.hang()
        stopping = threading.Thread(target=rig.stop)
        stopping.start()
        gone = ("/controller", BrokerInfo.path(ME))
        wait_until(lambda: not any(map(rig.registry.exists, gone)), PATIENCE_S, "it holds on to its term")
        assert stopping.is_alive()
        assert rig.hanging.done
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()


def test_a_broker_whose_session_ends_meanwhile_comes_back_and_hears_nothing_old(rig: Rig) -> None:
    before = rig.membership.epoch
    with rig.disk.held():
        rig.hang()
        rig.create("visits", ME)
        rig.goes_on()
        # What was begun ends, and what was not is void; another term tells of all there is, behind it.
        rig.registry.delete("/controller")
        rig.registry.delete(BrokerInfo.path(ME))
        rig.registry.create(BrokerInfo.path(ME), broker_info(ME).encode(), ephemeral=True)
        wait_until(lambda: rig.hanging.done, PATIENCE_S, "who waits for a term that is over")
    assert before >= 0
    wait_until(
        lambda: {("visits", 0), ("hanging", 0)} == rig.services.replicas.partitions.keys(), PATIENCE_S, "not hosted"
    )


class Leader:
    """A partition of this broker's that asks for another ISR, and whose lock somebody holds over a slow disk."""

    topic, index, topic_id = "visits", 0, bytes(range(16))

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.answers: list[GrantedIsr | ErrorCode] = []

    def isr_answered(self, pending: PendingIsr, answer: GrantedIsr | ErrorCode) -> bool:
        with self.lock:
            self.answers.append(answer)
        return False


def test_the_controller_waits_for_no_lock_of_its_own_brokers_leaders(rig: Rig) -> None:
    leader = Leader()
    with leader.lock:
        rig.links.replication.propose(leader, PendingIsr((ME,), (1,), 0, 0, False))
        rig.goes_on()
        rig.create("other", OTHER).result(PATIENCE_S)
    wait_until(lambda: leader.answers == [ErrorCode.UNKNOWN_TOPIC_ID], PATIENCE_S, "no answer")


def test_isrs_change_while_a_disk_has_all_background_threads_wait(rig: Rig) -> None:
    """Else what is led here from healthy disks would wait for followers that are gone, as long as one disk hangs."""
    leader, gate = Leader(), Gate()
    with gate.held():
        for _ in range(BACKGROUND_THREADS):
            rig.scheduler.soon(gate.pass_through)
        rig.links.replication.propose(leader, PendingIsr((ME,), (1,), 0, 0, False))
        wait_until(lambda: leader.answers == [ErrorCode.UNKNOWN_TOPIC_ID], PATIENCE_S, "no answer")


def test_the_controller_writes_to_no_log_for_who_waits_for_producer_ids(rig: Rig) -> None:
    given, may_go_on = [], threading.Event()

    def append(producer_id: int | None, error: BaseException | None) -> None:
        may_go_on.wait(PATIENCE_S)
        given.append(producer_id)

    rig.services.producer_ids.next_id().watch(append)
    rig.goes_on()
    assert given == []
    may_go_on.set()
    wait_until(lambda: given == [0], PATIENCE_S, "no producer id")


def test_whoever_changes_settings_waits_for_no_registry_that_is_to_announce_them(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings' lock is held, for which all wait who hear of topics."""
    gate = Gate()
    registered: list[BrokerInfo] = []
    refusals = [RegistryUnavailableError("once")]

    def update(_: BrokerRegistration, info: BrokerInfo) -> None:
        gate.pass_through()
        if refusals:
            raise refusals.pop()
        registered.append(info)

    monkeypatch.setattr(BrokerRegistration, "update", update)
    infos = [broker_info(ME)._replace(rack=rack) for rack in "abc"]
    with gate.held():
        for info in infos:
            rig.membership.update(info)
        assert registered == []
    wait_until(lambda: not refusals, PATIENCE_S, "nobody tries")
    rig.membership._announce()
    wait_until(lambda: registered[-1:] == infos[-1:], PATIENCE_S, "never announced")


def test_a_failed_alteration_is_told(rig: Rig) -> None:
    rig.create("visits", OTHER).result(PATIENCE_S)
    with pytest.raises(BrokerError) as refusal:
        rig.controller.alter_configs(ConfigEntity.topic("visits"), {"retention.ms": "soon"}).result(PATIENCE_S)
    assert refusal.value.code is ErrorCode.INVALID_CONFIG
