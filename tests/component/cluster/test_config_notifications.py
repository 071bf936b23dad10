"""Configurations that anyone wrote are heard of, in order, by every listener."""

import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from kavka.cluster import config_notifications
from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.controller.controller import Controller
from kavka.cluster.controller.requests import ConfigEntity, NewTopic
from kavka.cluster.entity_configs import read_configs, write_config
from kavka.cluster.registry.base import RegistryUnavailableError, SessionEvent, create_path
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.controller_stage import Stage, wait
from tests.support.gate import Gate
from tests.support.processes import wait_until

Heard = tuple[str | int | None, dict[str, str]]


class Listener:
    """Remembers what it was told, and can wait for the next."""

    def __init__(self, stage: Stage) -> None:
        self.heard: list[Heard] = []
        self.arrived = threading.Semaphore(0)
        self.changes = ConfigNotificationListener(stage.registry, self.hear, self.hear, stage.clock, self.hear)

    def hear(self, name: str | int | None, config: dict[str, str]) -> None:
        if config.get("fail"):
            self.arrived.release()
            raise ValueError("as an example")
        self.heard.append((name, config))
        self.arrived.release()

    def next(self) -> Heard:
        assert self.arrived.acquire(timeout=60)
        return self.heard[-1]


@pytest.fixture
def listener(stage: Stage) -> Iterator[Listener]:
    create_path(stage.registry, "/brokers/topics/t")
    listener = Listener(stage)
    listener.changes.start()
    yield listener
    listener.changes.stop()


def test_each_kind_of_entity_reaches_its_callback(stage: Stage, listener: Listener) -> None:
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    assert listener.next() == ("t", {"retention.ms": "1"})
    write_config(stage.registry, "brokers/1", {"log.retention.ms": "2"})
    assert listener.next() == (1, {"log.retention.ms": "2"})
    write_config(stage.registry, "brokers/<default>", {"log.retention.ms": "3"})
    assert listener.next() == (None, {"log.retention.ms": "3"})
    write_config(stage.registry, "users/u/clients/c", {"producer_byte_rate": "4"})
    assert listener.next() == ("users/u/clients/c", {"producer_byte_rate": "4"})


def test_what_was_written_before_the_start_is_not_told(stage: Stage) -> None:
    create_path(stage.registry, "/brokers/topics/t")
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    late = Listener(stage)
    late.changes.start()
    write_config(stage.registry, "brokers/1", {})
    assert late.next() == (1, {})
    late.changes.stop()
    assert len(late.heard) == 1
    assert read_configs(stage.registry, "topics") == {"t": {"retention.ms": "1"}}
    assert read_configs(stage.registry, "brokers") == read_configs(stage.registry, "absent") == {}


def test_catching_up_applies_before_it_returns(stage: Stage, listener: Listener) -> None:
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    listener.changes.catch_up()
    assert listener.heard == [("t", {"retention.ms": "1"})]


def test_alter_configs_answers_when_this_broker_has_applied_it(stage: Stage) -> None:
    controller, heard = _listening_controller(stage)
    wait(controller.create_topics([NewTopic("new")]))
    wait(controller.alter_configs(ConfigEntity.topic("new"), {"retention.ms": "9"}))
    assert heard.heard[-1] == ("new", {"retention.ms": "9"})
    heard.changes.stop()


def test_alter_configs_does_not_answer_well_when_this_broker_has_not_applied_it(stage: Stage) -> None:
    controller, heard = _listening_controller(stage)
    with pytest.raises(BrokerError, match="stored, but not applied: as an example") as refused:
        wait(controller.alter_configs(ConfigEntity.broker(1), {"fail": "yes"}))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    wait(controller.alter_configs(ConfigEntity.broker(1), {"after": "all"}))
    assert heard.heard[-1] == (1, {"after": "all"})
    heard.changes.stop()


def test_configurations_that_topics_come_and_go_with_are_applied_before_the_topics_are_led(stage: Stage) -> None:
    controller, heard = _listening_controller(stage)
    seen: list[list[Heard]] = []
    stage.cluster.on_send = lambda broker, request: seen.append(list(heard.heard))
    wait(controller.create_topics([NewTopic("with", configs={"retention.ms": "9"}), NewTopic("without")]))
    assert seen[0] == [("with", {"retention.ms": "9"})]
    wait(controller.delete_topics(["with"]))
    assert heard.heard[-1] == ("with", {})
    heard.changes.stop()


def test_a_bad_notice_or_a_failing_callback_does_not_stop_the_next(stage: Stage, listener: Listener) -> None:
    stage.registry.create("/config/changes/config_change_", b"nonsense", sequential=True)
    write_config(stage.registry, "topics/t", {"fail": "yes"})
    assert listener.arrived.acquire(timeout=60)
    stage.registry.set("/config/topics/t", b"{broken")
    stage.registry.create("/config/changes/config_change_", b'{"version":2,"entity_path":"topics/t"}', sequential=True)
    write_config(stage.registry, "brokers/1", {"after": "all"})
    assert listener.next() == (1, {"after": "all"})
    assert listener.heard == [(1, {"after": "all"})]


def test_old_notices_are_purged(stage: Stage, listener: Listener) -> None:
    write_config(stage.registry, "brokers/1", {"a": "1"})
    listener.next()
    stage.clock.time_ms += 16 * 60 * 1000
    write_config(stage.registry, "brokers/1", {"a": "2"})
    listener.next()
    listener.changes.catch_up()
    assert stage.registry.children("/config/changes") == ["config_change_0000000001"]


def test_writers_that_race_lose_nothing(stage: Stage) -> None:
    def add(name: str) -> None:
        for number in range(20):
            write_config(stage.registry, "brokers/1", lambda stored, key=f"{name}{number}": {**stored, key: "x"})  # type: ignore[misc]  # the default binds the key

    threads = [threading.Thread(target=add, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_configs(stage.registry, "brokers")["1"]) == 60


def test_a_topic_that_does_not_exist_has_no_configuration(stage: Stage) -> None:
    with pytest.raises(BrokerError) as raised:
        write_config(stage.registry, "topics/absent", {})
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stage.registry.children("/config/topics") == []


def _listening_controller(stage: Stage) -> tuple[Controller, Listener]:
    """An elected controller on broker 1, and what the broker hears of configurations; the test stops its `changes`."""
    stage.brokers(1)
    heard = Listener(stage)
    heard.changes.start()
    controller = Controller(
        stage.registry, 1, stage.cluster, stage.settings, stage.clock, config_notifications=heard.changes
    )
    stage.controllers.append(controller)
    wait(controller.start())
    return controller, heard


class Failing:
    """A registry of which one kind of read fails once."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self.method = ""
        self.has_failed = threading.Event()

    def __getattr__(self, name: str) -> Any:
        if name == self.method:
            self.method = ""
            return self._fail
        return getattr(self._registry, name)

    def _fail(self, *_: object) -> NoReturn:
        self.has_failed.set()
        raise RegistryUnavailableError("as an example")


@pytest.mark.parametrize("method", ["children", "get_many"])
def test_a_look_that_failed_is_made_up_for(stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(config_notifications, "RETRY_S", 0.01)
    create_path(stage.registry, "/brokers/topics/t")
    real = stage.registry
    failing = Failing(real)
    stage.registry = failing  # type: ignore[assignment]  # a Registry in all but name
    listener = Listener(stage)
    stage.registry = real
    listener.changes.start()
    failing.method = method
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    assert failing.has_failed.wait(60)
    assert listener.next() == ("t", {"retention.ms": "1"})
    write_config(stage.registry, "topics/t", {"retention.ms": "2"})
    assert listener.next() == ("t", {"retention.ms": "2"})
    listener.changes.stop()


@pytest.mark.parametrize(
    "notice",
    [
        b'{"version":2,"entity_path":"topics/\xf0\x9f\x98\x80"}',
        b'{"version":2,"entity_path":"../controller"}',
        b'{"version":2,"entity_path":"brokers/\xc2\xb2"}',
        b'{"version":3,"entity_path":"topics/t"}',
        b"[" * 100_000,
    ],
    ids=["no path", "elsewhere", "no number", "later version", "deep"],
)
def test_an_odd_notice_harms_no_other(stage: Stage, listener: Listener, notice: bytes) -> None:
    stage.registry.create("/config/changes/config_change_", notice, sequential=True)
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    listener.changes.catch_up()
    # Maybe twice: nobody knows what such a notice tells of.
    assert dict(listener.heard) == {"t": {"retention.ms": "1"}}


@pytest.mark.parametrize("name", ["strange_9999999999", "config_change_2147483647", "config_change_"])
def test_a_strangers_node_among_the_notices_makes_nobody_deaf(stage: Stage, listener: Listener, name: str) -> None:
    stage.registry.create(f"/config/changes/{name}", b"strange")
    listener.changes.catch_up()
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    assert listener.next() == ("t", {"retention.ms": "1"})


def test_notices_are_heard_again_whose_folder_was_removed(stage: Stage, listener: Listener) -> None:
    stage.registry.delete("/config/changes")
    listener.changes.catch_up()
    write_config(stage.registry, "topics/t", {"retention.ms": "1"})
    assert listener.next() == ("t", {"retention.ms": "1"})


def test_in_another_session_all_that_was_set_counts_and_nothing_else(stage: Stage, listener: Listener) -> None:
    for path in ("users/u", "users/u/clients/c", "clients/c", "ips/i", "groups/g", "brokers/1"):
        write_config(stage.registry, path, {"a": "1"})
    listener.changes.catch_up()
    listener.changes._on_session_event(SessionEvent.ESTABLISHED)
    wait_until(lambda: listener.heard.count(("users/u/clients/c", {"a": "1"})) == 2, 60, "not read again")
    wait_until(lambda: listener.heard.count((1, {"a": "1"})) == 2, 60, "not read again")
    listener.changes.catch_up()
    listener.heard.clear()
    # Without a notice: they went while nobody could hear of it.
    stage.registry.delete("/config/groups/g")
    stage.registry.delete("/config/brokers/1")
    listener.changes._on_session_event(SessionEvent.ESTABLISHED)
    wait_until(lambda: ("groups/g", {}) in listener.heard and (1, {}) in listener.heard, 60, "still set")
    listener.changes.catch_up()
    assert ("users/u", {"a": "1"}) in listener.heard
    assert ("ips/i", {"a": "1"}) in listener.heard


class OutOfReach:
    """A registry that answers no `get_many` while `is_back` is not set, as one whose connection is lost."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry
        self.is_back = threading.Event()
        self.is_back.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    def get_many(self, *arguments: Any) -> Any:
        assert self.is_back.wait(60)
        return self._registry.get_many(*arguments)


def test_who_hears_of_topics_first_waits_for_no_registry_that_is_out_of_reach(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_notifications, "PATIENCE_S", 0.01)
    registry: Any = OutOfReach(stage.registry)
    heard: dict[str, dict[str, str] | None] = {}

    def hear(topic: str, config: dict[str, str]) -> None:
        heard[topic] = config

    def read(topic: str) -> None:
        changes.read_topics([topic], lambda unknown: heard.update({unknown: None}))

    changes = ConfigNotificationListener(registry, hear, lambda *_: None, stage.clock)
    changes.start()
    for topic in ("new", "newer", "newest"):
        create_path(stage.registry, f"/brokers/topics/{topic}")
    write_config(stage.registry, "topics/new", {"retention.ms": "7"})
    try:
        registry.is_back.clear()
        asking = threading.Thread(target=lambda: [*map(read, ("new", "newer"))], daemon=True)
        asking.start()
        asking.join(30)
        assert not asking.is_alive()
        assert heard == {"new": None, "newer": None}
    finally:
        registry.is_back.set()

    wait_until(lambda: heard == {"new": {"retention.ms": "7"}, "newer": {}}, 60, "not read")
    monkeypatch.setattr(config_notifications, "PATIENCE_S", 30.0)
    write_config(stage.registry, "topics/newest", {"retention.ms": "8"})
    read("newest")
    assert heard["newest"] == {"retention.ms": "8"}
    changes.stop()


def test_who_hears_of_topics_waits_for_nobody_who_applies_their_configurations(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He may wait for a disk."""
    monkeypatch.setattr(config_notifications, "PATIENCE_S", 0.01)
    gate, applying = Gate(), threading.Semaphore(0)
    heard: dict[str, dict[str, str] | None] = {}

    def hear(topic: str, config: dict[str, str]) -> None:
        heard[topic] = config
        if gate.is_held:
            applying.release()
        gate.pass_through()

    def read(*topics: str) -> None:
        changes.read_topics(topics, lambda unknown: heard.update({unknown: None}))

    for topic in ("hanging", "other"):
        create_path(stage.registry, f"/brokers/topics/{topic}")
        write_config(stage.registry, f"topics/{topic}", {"retention.ms": "7"})
    changes = ConfigNotificationListener(stage.registry, hear, lambda *_: None, stage.clock)
    changes.start()
    with gate.held():
        read("hanging")
        assert applying.acquire(timeout=60)
        asking = threading.Thread(target=read, args=["hanging", "other"], daemon=True)
        asking.start()
        asking.join(30)
        assert not asking.is_alive()
        assert heard == {"hanging": None, "other": None}
    known = {topic: {"retention.ms": "7"} for topic in ("hanging", "other")}
    wait_until(lambda: heard == known, 60, "left unknown")
    changes.stop()
    assert heard == known


def test_a_stop_waits_no_longer_than_it_must_for_who_applies_a_configuration(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(config_notifications, "STOP_PATIENCE_S", 0.01)
    gate, applying = Gate(), threading.Event()

    def hear(topic: str, config: dict[str, str]) -> None:
        applying.set()
        gate.pass_through()

    create_path(stage.registry, "/brokers/topics/hanging")
    changes = ConfigNotificationListener(stage.registry, hear, lambda *_: None, stage.clock)
    changes.start()
    with gate.held():
        write_config(stage.registry, "topics/hanging", {"retention.ms": "7"})
        assert applying.wait(60)
        changes.stop()
        assert "the stop goes on without a configuration" in caplog.text
    changes._thread.join(60)
    assert not changes._thread.is_alive()


def test_who_hears_first_of_a_topic_is_told_that_its_settings_cannot_be_read(stage: Stage) -> None:
    stage.registry.create("/config/topics/odd", b"{no json")
    create_path(stage.registry, "/brokers/topics/plain")
    write_config(stage.registry, "topics/plain", {"retention.ms": "7"})
    heard: dict[str, dict[str, str] | None] = {}
    changes = ConfigNotificationListener(
        stage.registry, lambda topic, config: heard.update({topic: config}), lambda *_: None, stage.clock
    )
    changes.start()
    changes.read_topics(["odd", "plain"], lambda unknown: heard.update({unknown: None}))
    changes.stop()
    assert heard == {"odd": None, "plain": {"retention.ms": "7"}}


def test_who_has_to_know_is_told_of_what_cannot_be_read(stage: Stage) -> None:
    for name, data in (("odd", b"{no json"), ("plain", b'{"version":1,"config":{}}')):
        create_path(stage.registry, f"/config/users/{name}")
        stage.registry.set(f"/config/users/{name}", data)
    told: list[str] = []
    changes = ConfigNotificationListener(
        stage.registry, lambda *_: None, lambda *_: None, stage.clock, on_unreadable=told.append
    )
    changes.refresh(["users/odd", "users/plain", "users/none"])
    assert told == ["users/odd"]
    assert changes.failure_of("users/odd")
