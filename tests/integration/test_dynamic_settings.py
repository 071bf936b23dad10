"""Every setting that can change while a broker runs is changed on a real one, and its effect is seen from outside."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka.config.broker_config import BrokerConfig
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.metadata import MetadataRequest
from kavka.protocol.records.header import read_header
from tests.support import cleaner_settings, moving_settings
from tests.support.kavka_process import KavkaProcess
from tests.support.probe import answers
from tests.support.processes import free_port, wait_until
from tests.support.settings_stage import BROKER_ID, EFFECT_TIMEOUT_S, Stage, eventually
from tests.support.wire import BROKER, TOPIC

pytestmark = pytest.mark.timeout(900)
SETTINGS = {
    "broker.id": BROKER_ID,
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "100",
    "log.flush.scheduler.interval.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "100",
    "producer.id.expiration.check.interval.ms": "100",
}
SILENCE_S = 0.5
THREADS_END_S = 20.0

LATER: dict[str, str] = {
    "min.insync.replicas": "capped at the number of replicas, which is one here",
    "unclean.leader.election.enable": "one broker has no followers",
    "transaction.partition.verification.enable": "shown with transactions, in transactions/test_transaction_tools.py",
    "background.threads": "the number of background threads shows in nothing but time",
    "num.recovery.threads.per.data.dir": "counts when logs are opened and closed only",
    "num.replica.fetchers": "one broker follows nobody; shown in cluster/test_replication.py",
    "leader.replication.throttled.rate": "one broker has no followers; shown with replicas that step",
    "follower.replication.throttled.rate": "one broker follows nobody; shown with replicas that step",
}
"""Settings whose effect nothing could show: why."""
SECURITY = {name for name, row in BrokerConfig.ROWS.items() if row.is_dynamic and name.startswith(("ssl.", "sasl."))}
"""They are a listener's: shown in security/, and by handshakes in memory."""


Effect = Callable[[Stage], None]
EFFECTS: dict[str, Effect] = cleaner_settings.EFFECTS | moving_settings.EFFECTS


def effect(name: str) -> Callable[[Effect], Effect]:
    """Registers the test of a setting: it changes the setting, and fails unless that shows."""

    def register(check: Effect) -> Effect:
        assert name not in EFFECTS
        EFFECTS[name] = check
        return check

    return register


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KavkaProcess]:
    # A port that stays: the tests of listeners name it.
    listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
    directory = tmp_path_factory.mktemp("dynamic")
    directories = {"log.dirs": f"{directory / 'data'},{directory / 'more'}"}
    with KavkaProcess(directory, SETTINGS | listeners | directories) as broker:
        yield broker


@pytest.fixture
def stage(running: KavkaProcess, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(running, request.node.callspec.id.replace("_", "-"))
    yield made
    made.restore()


def test_every_dynamic_setting_has_a_test_or_a_reason_why_not() -> None:
    dynamic = {row.name for row in BrokerConfig.rows() if row.is_dynamic and row.ignored is None}

    assert EFFECTS.keys() | LATER.keys() == dynamic - SECURITY
    assert EFFECTS.keys() & LATER.keys() == set()


@effect("log.segment.bytes")
def segments_are_rolled_at_the_new_size(stage: Stage) -> None:
    stage.create()
    stage.change(log_segment_bytes="1000")
    for _ in range(3):
        assert stage.produce(bytes(600)) is ErrorCode.NONE
    assert stage.segments() == 3


@effect("log.roll.ms")
def segments_are_rolled_at_the_new_age(stage: Stage) -> None:
    stage.create()
    now_ms = time.time_ns() // 1_000_000
    stage.produce(timestamp_ms=now_ms - 60_000)
    stage.change(log_roll_ms="30000", log_roll_jitter_ms="0")
    stage.produce(timestamp_ms=now_ms)
    assert stage.segments() == 2


@effect("log.roll.jitter.ms")
def segments_are_rolled_before_their_age_by_the_jitter(stage: Stage) -> None:
    stage.create()
    stage.change(log_roll_jitter_ms="1234")
    assert stage.client.describe(TOPIC, stage.topic)["segment.jitter.ms"] == "1234"


@effect("log.index.size.max.bytes")
def segments_are_rolled_when_an_index_of_the_new_size_is_full(stage: Stage) -> None:
    stage.create(index_interval_bytes="0")
    stage.change(log_index_size_max_bytes="16")
    for _ in range(6):
        stage.produce()
    assert stage.segments() > 1


@effect("log.index.interval.bytes")
def indexes_get_an_entry_each_so_many_bytes(stage: Stage) -> None:
    stage.create(segment_bytes="300")
    stage.change(log_index_interval_bytes="0")
    for _ in range(8):
        stage.produce()
    # The first segment is sealed, and its index written, with an entry for every batch but the first.
    index = stage.folder / "00000000000000000000.index"
    eventually(lambda: index.exists() and index.stat().st_size >= 16, "the index has no more entries")


@effect("log.flush.interval.messages")
def logs_are_flushed_after_so_many_messages(stage: Stage) -> None:
    stage.create()
    stage.change(log_flush_interval_messages="1")
    stage.produce()
    stage.produce()
    # The checkpoint lies one below the end of a log that is on the disk as a whole.
    eventually(lambda: stage.recovery_point() == 1, "the log was not flushed")


@effect("log.flush.interval.ms")
def logs_are_flushed_after_the_new_time(stage: Stage) -> None:
    stage.create()
    stage.change(log_flush_interval_ms="10")
    stage.produce()
    stage.produce()
    # The checkpoint lies one below the end of a log that is on the disk as a whole.
    eventually(lambda: stage.recovery_point() == 1, "the log was not flushed")


@effect("log.retention.ms")
def messages_older_than_the_new_time_go(stage: Stage) -> None:
    stage.create()
    stage.produce(timestamp_ms=time.time_ns() // 1_000_000 - 60_000)
    stage.change(log_retention_ms="30000")
    eventually(lambda: stage.start_offset() == 1, "the message is still there")


@effect("log.retention.bytes")
def messages_beyond_the_new_size_go(stage: Stage) -> None:
    stage.create(segment_bytes="1000")
    for _ in range(4):
        stage.produce(bytes(600))
    stage.change(log_retention_bytes="1000")
    eventually(lambda: stage.start_offset() >= 2, "the log was not cut")


@effect("log.segment.delete.delay.ms")
def files_of_deleted_segments_go_after_the_new_delay(stage: Stage) -> None:
    stage.create(retention_ms="30000")
    stage.change(log_segment_delete_delay_ms="0")
    stage.produce(timestamp_ms=time.time_ns() // 1_000_000 - 60_000)
    eventually(lambda: stage.start_offset() == 1, "the message is still there")
    eventually(lambda: not list(stage.folder.glob("*.deleted")), "the files are still there")


@effect("log.cleanup.policy")
def compacted_topics_need_keys(stage: Stage) -> None:
    stage.create()
    assert stage.produce(key=None) is ErrorCode.NONE
    stage.change(log_cleanup_policy="compact")
    assert stage.produce(key=None) is ErrorCode.INVALID_RECORD


@effect("log.message.timestamp.type")
def batches_get_the_brokers_time(stage: Stage) -> None:
    stage.create()
    assert stage.client.produce(stage.topic, b"v").log_append_time_ms == -1
    stage.change(log_message_timestamp_type="LogAppendTime")
    assert stage.client.produce(stage.topic, b"v").log_append_time_ms > 0


@effect("log.message.downconversion.enable")
def old_fetches_are_refused(stage: Stage) -> None:
    stage.create()
    assert stage.produce() is ErrorCode.NONE
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=[FetchTopic(topic=stage.topic, partitions=[asked])],
        forgotten_topics_data=[],
    )
    assert stage.client.ask(fetch, 3).responses[0].partitions[0].error_code == ErrorCode.NONE
    stage.change(log_message_downconversion_enable="false")
    assert stage.client.ask(fetch, 3).responses[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def refuses_timestamps(name: str, offset_ms: int) -> Effect:
    def check(stage: Stage) -> None:
        stage.create()
        timestamp_ms = time.time_ns() // 1_000_000 + offset_ms
        assert stage.produce(timestamp_ms=timestamp_ms) is ErrorCode.NONE
        stage.change(**{name.replace(".", "_"): "10000"})
        assert stage.produce(timestamp_ms=timestamp_ms) is ErrorCode.INVALID_TIMESTAMP

    return check


for _name, _offset_ms in (("before", -60_000), ("after", 60_000), ("difference", -60_000)):
    _setting = f"log.message.timestamp.{_name}.max.ms"
    EFFECTS[_setting] = refuses_timestamps(_setting, _offset_ms)


@effect("message.max.bytes")
def larger_batches_are_refused(stage: Stage) -> None:
    stage.create()
    assert stage.produce(bytes(600)) is ErrorCode.NONE
    stage.change(message_max_bytes="500")
    assert stage.produce(bytes(600)) is ErrorCode.MESSAGE_TOO_LARGE


@effect("compression.type")
def batches_are_stored_in_the_brokers_codec(stage: Stage) -> None:
    stage.create()
    stage.change(compression_type="gzip")
    stage.produce(bytes(1000))
    assert read_header(stage.client.fetch(stage.topic)).codec == 1


def compresses_at_level(codec: str, low: str, high: str) -> Effect:
    def check(stage: Stage) -> None:
        stage.create(compression_type=codec)
        # Text that a better search finds more in.
        chosen = random.Random(7)
        words = [bytes(chosen.choices(b"abcdefgh", k=chosen.randrange(3, 9))) for _ in range(300)]
        text = b" ".join(chosen.choices(words, k=30_000))
        sizes = []
        for level in (low, high):
            stage.change(**{f"compression_{codec}_level": level})
            offset = stage.client.produce(stage.topic, text).base_offset
            sizes.append(read_header(stage.client.fetch(stage.topic, offset)).size_bytes)
        assert sizes[1] < sizes[0] < len(text)

    return check


for _codec, _low, _high in (("gzip", "1", "9"), ("lz4", "1", "12"), ("zstd", "1", "19")):
    EFFECTS[f"compression.{_codec}.level"] = compresses_at_level(_codec, _low, _high)


@effect("producer.id.expiration.ms")
def silent_producers_are_forgotten(stage: Stage) -> None:
    stage.create()

    def produce_the_same_again() -> int:
        response = stage.client.produce(stage.topic, b"v", producer_id=7, producer_epoch=0, base_sequence=0)
        assert response.error_code == ErrorCode.NONE
        offset: int = response.base_offset
        return offset

    assert [produce_the_same_again() for _ in range(2)] == [0, 0]
    stage.change(producer_id_expiration_ms="1")
    eventually(lambda: produce_the_same_again() > 0, "the duplicate is still known")


def changes_the_number_of_threads(name: str) -> Effect:
    def check(stage: Stage) -> None:
        def threads() -> int:
            return len(list(Path(f"/proc/{stage.broker.process.pid}/task").iterdir()))

        now = int(stage.client.describe(BROKER, BROKER_ID)[name] or 0)

        def changed_by(value: str | None) -> int:
            before = threads()
            if value is None:
                stage.restore()
            else:
                stage.change(**{name.replace(".", "_"): value})
            # Those that are told to end may take their time.
            with contextlib.suppress(TimeoutError):
                wait_until(lambda: abs(threads() - before) == now, THREADS_END_S, "")
            return threads() - before

        def grow_and_shrink() -> bool:
            more = changed_by(str(2 * now))
            assert stage.client.describe(BROKER, BROKER_ID)[name] == str(2 * now)
            fewer = changed_by(None)
            stage.reconnect()
            return (more, fewer) == (now, -now)

        # Another thread that begins just now, for what is done for the first time, does so once.
        eventually(grow_and_shrink, f"there are {threads()} threads")

    return check


for _name in ("num.io.threads", "num.network.threads"):
    EFFECTS[_name] = changes_the_number_of_threads(_name)


def limits_connections(settings: Mapping[str, str]) -> Effect:
    def check(stage: Stage) -> None:
        host, port = stage.broker.host, stage.broker.port
        assert answers(host, port)
        stage.change(**settings)
        # A connection that the acceptor waits for already may still come through.
        eventually(lambda: not answers(host, port, SILENCE_S), "a second connection is served")

    return check


EFFECTS["max.connections"] = limits_connections({"max_connections": "1"})
EFFECTS["max.connections.per.ip"] = limits_connections({"max_connections_per_ip": "1"})
EFFECTS["max.connections.per.ip.overrides"] = limits_connections({"max_connections_per_ip_overrides": "127.0.0.1:1"})


@effect("max.connection.creation.rate")
def connections_are_made_no_faster_than_the_new_rate(stage: Stage) -> None:
    stage.change(max_connection_creation_rate="2")
    started_s = time.monotonic()
    for _ in range(30):
        assert answers(stage.broker.host, stage.broker.port, EFFECT_TIMEOUT_S)
        if time.monotonic() - started_s > 1:
            return
    pytest.fail("thirty connections came in a second")


def other_listener(stage: Stage) -> int:
    """Add a listener OTHER to the broker; its port."""
    port = free_port()
    own = f"PLAINTEXT://{stage.broker.host}:{stage.broker.port}"
    stage.change(
        listeners=f"{own},OTHER://127.0.0.1:{port}",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    )
    return port


@effect("listeners")
@effect("listener.security.protocol.map")
def a_new_listener_is_served_and_goes_again(stage: Stage) -> None:
    port = other_listener(stage)
    eventually(lambda: answers("127.0.0.1", port), "nobody listens")
    stage.restore()
    eventually(lambda: not answers("127.0.0.1", port), "the listener is still there")


@effect("advertised.listeners")
def clients_are_sent_to_the_new_address(stage: Stage) -> None:
    stage.change(advertised_listeners="PLAINTEXT://kavka.example:1234")

    def advertised() -> tuple[str, int]:
        (broker,) = stage.client.ask(MetadataRequest(topics=[]), 9).brokers
        return broker.host, broker.port

    eventually(lambda: advertised() == ("kavka.example", 1234), "the old address is still shown")


FAULTS: dict[str, str] = {}
"""Settings that do not take effect as they should, and why. Strict: what is put right must leave the table."""


def _parameter(name: str) -> Any:
    fault = FAULTS.get(name)
    return pytest.param(name, marks=pytest.mark.xfail(reason=fault, strict=True) if fault else ())


@pytest.mark.parametrize("name", [_parameter(name) for name in sorted(EFFECTS)])
def test_a_change_takes_effect_while_the_broker_runs(stage: Stage, name: str) -> None:
    EFFECTS[name](stage)
