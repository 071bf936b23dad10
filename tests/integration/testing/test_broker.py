"""A broker inside a test's process: what it keeps over stops and kills, and that nothing of it is left, or changed."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.coordination.markers import MarkerDispatch
from kavka.broker.server import Broker as Server
from kavka.broker.server import StartError
from kavka.client import Admin, Producer, TransactionListing
from kavka.client.api_errors import UnknownTopicOrPartitionError
from kavka.config.errors import ConfigError
from kavka.testing import Broker, BrokerDiedError, Cluster, Row

CYCLES = 30


def held() -> Counter[str]:
    """What this process has: threads by their names, descriptors by what they lead to."""
    found = Counter(thread.name for thread in threading.enumerate())
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[str(path.readlink()).partition(":")[0]] += 1
        except FileNotFoundError:
            continue  # the listing's own
    return found


def host() -> list[object]:
    """What belongs to who runs the tests."""
    return [
        *(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
        signal.pthread_sigmask(signal.SIG_BLOCK, []),
        sys.getswitchinterval(),
        gc.get_threshold(),
        gc.isenabled(),
        gc.get_freeze_count(),
        threading.excepthook,
        asyncio.get_event_loop_policy(),
        logging.getLogger().handlers[:],
        logging.getLogger("kavka").handlers[:],
        logging.getLogger("kavka").level,
        logging.getLogger("kavka").propagate,
        dict(os.environ),
        Path.cwd(),
    ]


def test_rows_are_found_again_with_all_they_had() -> None:
    with Broker() as broker:
        assert broker.create_topic("orders", 2, configs={"retention.ms": "-1"}) == "orders"
        placed = broker.produce("orders", [Row("a", key="k", headers={"h": b"1"}, partition=1, timestamp_ms=5), None])
        found = broker.records("orders")
        assert (placed[0].partition, placed[0].offset) == (1, 0)
        (first,) = [each for each in found if each.value == b"a"]
        assert (first.partition, first.offset, first.timestamp_ms, first.key) == (1, 0, 5, b"k")
        assert first.headers == (("h", b"1"),)
        assert sorted(found.values, key=str) == [None, b"a"]
        with pytest.raises(UnknownTopicOrPartitionError):
            broker.admin.describe_topics(["nothing"])


def test_a_failed_assertion_shows_what_is_in_the_topic() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        broker.produce("orders", [("k", "there")])
        broker.assert_records("orders", ["there"])
        with pytest.raises(AssertionError, match=r"(?s)expected.*'here'.*topic orders: 1 records.*0@0 .*'k': 'there'"):
            broker.assert_records("orders", ["here"])
        with pytest.raises(AssertionError, match=r"(?s)2 records are awaited; topic orders: 1 records.*'there'"):
            broker.wait_for_records("orders", 2, timeout_s=0.1)


def test_what_was_acknowledged_is_there_after_a_restart_and_after_a_kill_at_the_same_address() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        broker.create_topic("orders")
        for number, end in enumerate((broker.restart, broker.kill)):
            broker.produce("orders", [f"{number}"])
            end()
            if not broker.is_running:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
                broker.start()
            assert broker.bootstrap_servers == address
        broker.check()
        broker.assert_records("orders", ["0", "1"])


def test_what_was_committed_is_found_however_late_its_markers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Callable[[], None]] = []
    send, list_transactions = MarkerDispatch.send, Admin.list_transactions

    def looked_at(admin: Admin, **wanted: Any) -> list[TransactionListing]:
        """They go out when a transaction was found that waits for its own."""
        found = list_transactions(admin, **wanted)
        while found and held:
            held.pop()()
        return found

    monkeypatch.setattr(MarkerDispatch, "send", lambda *words: held.append(partial(send, *words)))
    monkeypatch.setattr(Admin, "list_transactions", looked_at)
    with Broker() as broker:
        broker.create_topic("orders", 2)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "billing"}
        with Producer(settings) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for partition in (0, 1):
                producer.send("orders", b"%d" % partition, partition=partition)
            producer.commit_transaction()
            broker.assert_records("orders", ["0", "1"], committed=True)
            producer.begin_transaction()
            producer.send("orders", b"open", partition=0).result(60)
            broker.assert_records("orders", ["0", "1"], committed=True)
            monkeypatch.undo()


def test_a_group_is_awaited_until_it_has_consumed_all() -> None:
    from kavka.client import Consumer

    with Broker() as broker:
        broker.create_topic("orders", 2)
        broker.produce("orders", range(10))
        with pytest.raises(AssertionError, match=r"group billing is behind by .*orders-"):
            broker.wait_until_consumed("billing", "orders", timeout_s=0.1)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
        with Consumer(settings, group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            seen = 0
            while seen < 10:
                seen += len(consumer.poll(timeout_ms=60_000))
            consumer.commit_sync()
            broker.wait_until_consumed("billing", "orders")
            broker.wait_until_consumed("billing")
        assert set(broker.lag("billing", ["orders"]).values()) == {0}


def test_one_that_died_says_so_to_whoever_asks() -> None:
    with Broker() as broker:
        server = broker.hosted.server
        assert server is not None
        broker.check()
        server._thread_died(RuntimeError("out of ideas"))
        with pytest.raises(BrokerDiedError, match="out of ideas"):
            broker.check()
        with pytest.raises(BrokerDiedError, match="out of ideas"):
            broker.wait_until(lambda: False)


def test_one_that_cannot_start_leaves_nothing() -> None:
    before = held()
    with pytest.raises(StartError, match=r"Address already in use"), socket.create_server(("127.0.0.1", 0)) as taken:
        Broker({"listeners": f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"}).__enter__()
    assert not held() - before


def test_a_setting_that_nobody_knows_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, match=r"'auto.create.topic.enable'; did you mean auto.create.topics.enable\?"):
        Broker({"auto.create.topic.enable": "false"})
    with pytest.raises(ConfigError, match=r"'linger\.ms'$"):
        Cluster(2, {"linger.ms": "5"})


def test_a_bounce_that_fails_is_the_brokers_death_until_it_is_started_again() -> None:
    told: list[bool] = []
    with Broker(on_fatal=lambda: told.append(True)) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        wishes = broker.hosted._settings["log.dirs"]
        broker.hosted._settings["log.dirs"] = "/dev/null/nowhere"
        with pytest.raises(StartError):
            broker.faults.bounce()
        assert told
        with pytest.raises(BrokerDiedError, match=f"127.0.0.1:{port} has died: it did not start again: .*/dev/null"):
            broker.check()
        broker.hosted._settings["log.dirs"] = wishes
        broker.start()
        broker.check()


def test_one_whose_start_is_interrupted_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = held()

    def interrupted(_: Server) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "endpoints_text", interrupted)
    with pytest.raises(KeyboardInterrupt), Broker():
        pass
    assert not held() - before


def test_a_client_that_cannot_be_closed_leaves_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    before = held()
    broker = Broker()

    def refused() -> None:
        raise RuntimeError("not now")

    monkeypatch.setattr(broker, "_close_clients", refused)
    with pytest.raises(RuntimeError, match="not now"), broker:
        pass
    assert not held() - before


def test_one_that_is_killed_has_not_died_for_whoever_asks_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        server = broker.hosted.server
        assert server is not None
        cut = server._sockets.cut

        def looked_at() -> None:
            broker.check()
            cut()

        monkeypatch.setattr(server._sockets, "cut", looked_at)
        broker.kill()
        assert not broker.is_running


def test_nothing_of_the_host_is_changed_and_nothing_is_left_over_many_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_BROKER_ID", "77")
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "9")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Broker():
        pass  # whatever is loaded by the first stays
    before, untouched = held(), host()
    for number in range(CYCLES):
        with Broker() as broker, Broker() as other:
            assert broker.bootstrap_servers != other.bootstrap_servers
            assert broker.hosted.server is not None
            assert broker.hosted.server.broker_id == 1
            assert host() == untouched
            if number % 10 == 0:
                broker.create_topic("orders", -1)
                broker.produce("orders", ["x"])
                assert len(broker.records("orders")) == 1
                assert other.admin.list_topics() == {}
    assert (held() - before, host()) == (Counter(), untouched)  # what others left may go at any time
    assert list(tmp_path.iterdir()) == []


def test_it_serves_inside_an_event_loop() -> None:
    async def use() -> str:
        async with Broker() as broker:
            await asyncio.to_thread(broker.create_topic, "orders")
            await asyncio.to_thread(broker.produce, "orders", ["async"])
            return repr((await asyncio.to_thread(broker.records, "orders")).values)

    assert asyncio.run(use()) == "[b'async']"


def test_a_start_that_is_cancelled_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, go_on = threading.Event(), threading.Event()
    start = Server.start

    def awaited(server: Server) -> None:
        starting.set()
        go_on.wait()
        start(server)

    async def use() -> None:
        async with Broker():
            raise AssertionError("it was cancelled")

    async def cancel() -> None:
        using = asyncio.ensure_future(use())
        await asyncio.to_thread(starting.wait)
        using.cancel()
        go_on.set()
        await using

    before = held()
    monkeypatch.setattr(Server, "start", awaited)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert not held() - before
