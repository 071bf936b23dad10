"""The door over HTTP: what it takes, and that nobody comes in by it who may not, nor any garbage."""

import http.client
import json
import random
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kavka.broker.faults.control import FaultControl
from kavka.broker.faults.door import WORKERS, FaultDoor
from kavka.broker.network import bounded_http
from kavka.broker.server import StartError
from kavka.protocol.errors import ErrorCode
from tests.support.processes import wait_until
from tests.support.running_broker import HOST, RunningBroker, threads
from tests.support.wire import RawClient

FAIL = {"fault": "fail", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "topic": "asked"}


@pytest.fixture
def door(faults: FaultControl) -> Iterator[FaultDoor]:
    door = FaultDoor(faults)
    door.start()
    yield door
    door.stop()


def ask(
    door: FaultDoor,
    method: str,
    path: str = "/faults",
    value: Any = None,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str | None] | None = None,
) -> tuple[int, Any]:
    """Status and decoded answer, which is one line. A header of None is left out."""
    given: dict[str, str | None] = {
        "Authorization": f"Bearer {door.token}",
        "Content-Type": "application/json",
        **(headers or {}),
    }
    connection = http.client.HTTPConnection(HOST, door.port, timeout=60)
    try:
        data = body if value is None else json.dumps(value).encode()
        shown = {name: text for name, text in given.items() if text is not None}
        connection.request(method, path, data, shown)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    assert text.endswith("\n")
    assert text.count("\n") == 1, text
    assert answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(text)


def test_a_fault_is_asked_for_hits_and_is_taken_back(door: FaultDoor, faults: FaultControl, client: RawClient) -> None:
    client.create_topic("asked")

    status, made = ask(door, "POST", value={**FAIL, "times": None})

    assert (status, made["hits"], made["left"]) == (201, 0, None)
    assert client.produce("asked", b"x").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(door, "GET", f"/faults/{made['id']}")[1]["hits"] == 1
    assert [each["id"] for each in ask(door, "GET")[1]] == [made["id"]]
    assert ask(door, "DELETE", f"/faults/{made['id']}")[1]["cleared"] is True
    assert client.produce("asked", b"x").error_code == 0
    assert faults.faults == ()


def test_all_are_taken_back_at_once(door: FaultDoor, faults: FaultControl) -> None:
    for _ in range(3):
        ask(door, "POST", value=FAIL)

    assert len(ask(door, "DELETE")[1]) == 3

    assert faults.faults == ()


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "delay", "delay_ms": 1.5, "client_id": "nobody"},
        {"fault": "drop", "api": 1, "client_id": "nobody"},
        {"fault": "cut", "after_work": True, "client_id": "nobody"},
        {"fault": "throttle", "throttle_time_ms": 5, "client_id": "nobody", "times": 2},
        {"fault": "freeze", "duration_ms": 1},
        {"fault": "fill_disk"},
    ],
)
def test_each_fault_has_its_words(door: FaultDoor, faults: FaultControl, fault: dict[str, Any]) -> None:
    assert ask(door, "POST", value=fault)[0] == 201
    faults.clear()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, 401),
        ({"Authorization": "Bearer \u00e9"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "localhost"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_who_may_not_come_in_is_refused(
    door: FaultDoor, faults: FaultControl, headers: dict[str, str | None], status: int
) -> None:
    assert ask(door, "POST", value=FAIL, headers=headers)[0] == status
    assert faults.faults == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"fail"',
        b"\xff\xfe",
        b"[" * 4000,
        b'{"fault": "fail"}',
        b'{"fault": ["fail"]}',
        b'{"fault": "clear"}',
        b'{"fault": "__init__"}',
        b'{"fault": "on_bounce"}',
        b'{"fault": "freeze", "self": 1}',
        b'{"fault": "freeze", "duration_ms": NaN}',
        b'{"fault": "freeze", "duration_ms": 1e999}',
        b'{"fault": "freeze", "duration_ms": -1}',
        b'{"fault": "freeze", "duration_ms": true}',
        b'{"fault": "freeze", "broker": 77}',
        b'{"fault": "fail", "api": "Produce", "error": "NOPE"}',
        b'{"fault": "fail", "api": 999, "error": 6}',
        b'{"fault": "fail", "api": {}, "error": 6}',
        b'{"fault": "fail", "api": "Produce", "error": 6, "times": 0}',
        b'{"fault": "fail", "api": "Produce", "error": 6, "times": 1.5}',
        b'{"fault": "fail", "api": "Produce", "error": 6, "topic": 7}',
        b'{"fault": "fail", "api": "Produce", "error": 6, "partition": 0}',
        b'{"fault": "fail", "api": "CreateTopics", "error": 7, "message": "\\ud800"}',
        b'{"fault": "delay"}',
        b'{"fault": "move_leader", "topic": "no-such-topic"}',
        b'{"fault": "lose_coordinator"}',
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(door: FaultDoor, faults: FaultControl, body: bytes) -> None:
    status, answer = ask(door, "POST", body=body)

    assert (status, list(answer)) == (400, ["error"])
    assert faults.faults == ()


def test_other_paths_and_methods_are_not_served(door: FaultDoor, faults: FaultControl) -> None:
    assert ask(door, "GET", "/")[0] == 404
    assert ask(door, "GET", "/faults/1000")[0] == 404
    assert ask(door, "POST", "/faults/../faults", value=FAIL)[0] == 404
    assert ask(door, "PUT", value=FAIL)[0] == 405
    assert ask(door, "OPTIONS")[0] == 405
    assert faults.faults == ()


def test_a_broker_that_nobody_restarts_says_so(door: FaultDoor) -> None:
    assert ask(door, "POST", value={"fault": "bounce"})[0] == 409


def test_large_requests_are_refused(door: FaultDoor, faults: FaultControl) -> None:
    assert ask(door, "POST", body=b" " * 9_000)[0] in (400, 413)
    assert ask(door, "POST", body=b" " * 8_100)[0] in (400, 413)
    assert ask(door, "POST", body=b"{}", headers={"Content-Length": "9" * 30})[0] == 413
    assert ask(door, "POST", body=b"{}", headers={"Content-Length": "-1"})[0] == 411
    assert ask(door, "GET", "/faults", headers={"X-Long": "x" * 9_000})[0] in (400, 431)
    assert faults.faults == ()


def test_garbage_leaves_it_serving(door: FaultDoor, faults: FaultControl) -> None:
    chance = random.Random(11)
    for _ in range(50):
        with socket.create_connection((HOST, door.port), timeout=60) as client:
            client.sendall(chance.randbytes(chance.randrange(1, 2_000)))
            client.shutdown(socket.SHUT_WR)
            try:
                while client.recv(4096):
                    pass
            except ConnectionError:
                continue

    assert ask(door, "GET") == (200, [])


def test_silent_clients_do_not_keep_others_out_for_ever(faults: FaultControl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "DEADLINE_S", 0.5)
    door = FaultDoor(faults)
    door.start()
    silent = [socket.create_connection((HOST, door.port)) for _ in range(20)]
    try:
        wait_until(lambda: _served(door), 60, "nobody is served")
    finally:
        for each in silent:
            each.close()
        door.stop()
    assert threads("kavka.faults") == 0


def test_it_listens_on_the_loopback_interface_alone(door: FaultDoor) -> None:
    assert door._server is not None
    assert door._server.server_address[0] == "127.0.0.1"


def test_a_broker_with_the_setting_opens_it_and_closes_it_with_itself(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    settings = {"kavka.faults.enable": "true"}
    with RunningBroker(tmp_path_factory.mktemp("own"), settings):
        (line,) = [each.getMessage() for each in caplog.records if "faults can be asked for" in each.getMessage()]
        assert "url=http://127.0.0.1:" in line
        assert threads("kavka.faults") > 0
    assert threads("kavka.faults") == 0


def test_a_broker_whose_door_cannot_be_had_says_so_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        settings = {"kavka.faults.enable": "true", "kavka.faults.port": str(port)}
        broker = RunningBroker(tmp_path_factory.mktemp("taken"), settings)
        # What it logs as an error fails the test.
        with pytest.raises(StartError, match=rf"kavka\.faults\.port={port}"), broker:
            pass
    assert threads("kavka.faults") == 0


def test_a_door_that_gets_no_threads_leaves_nothing(faults: FaultControl, monkeypatch: pytest.MonkeyPatch) -> None:
    door = FaultDoor(faults)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="new thread"):
            door.start()

    assert threads("kavka.faults") == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, door.port))
    door.stop()


def test_a_connection_that_gets_no_thread_costs_no_place(
    door: FaultDoor, running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.errors.expect("a request failed")

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refused)
        for _ in range(WORKERS + 1):
            with socket.create_connection((HOST, door.port), timeout=60) as client:
                assert client.recv(1) == b""

    assert ask(door, "GET") == (200, [])


def test_a_request_that_fails_otherwise_costs_no_worker(
    door: FaultDoor, running: RunningBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running.errors.expect("a request failed")

    def fail(_: object) -> None:
        raise KeyError("unforeseen")

    with monkeypatch.context() as failing:
        failing.setattr(bounded_http.BoundedHandler, "drain", fail)
        for _ in range(WORKERS):
            assert ask(door, "GET") == (200, [])
        # The answer comes before that: until then it is to fail.
        wait_until(lambda: caplog.text.count("a request failed") == WORKERS, 60, "not logged")

    assert ask(door, "GET") == (200, [])


def _served(door: FaultDoor) -> bool:
    try:
        return ask(door, "GET")[0] == 200
    except (OSError, http.client.HTTPException):
        # Unless the machine lets this request wait for longer than that, too.
        return False
