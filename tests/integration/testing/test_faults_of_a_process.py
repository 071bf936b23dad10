"""Faults of brokers that are processes of their own, asked for over HTTP."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.kavka_process import KavkaProcess
from tests.support.wire import RawClient

DOOR = r"url=(?P<url>http://127\.0\.0\.1:\d+/faults) token=(?P<token>\S+)"
TIMEOUT_S = 120.0


def post(url: str, token: str, fault: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(fault).encode(), headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.loads(answer.read())


def test_a_daemon_prints_its_door_bounces_in_place_and_stops_in_order(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {"kavka.faults.enable": "true"}) as broker:
        door = broker.process.wait_for_log(DOOR, TIMEOUT_S)
        with RawClient(broker.host, broker.port) as client:
            client.create_topic("kept")
            client.produce("kept", b"x", acks=-1)
        pid = broker.process.pid

        assert post(door["url"], door["token"], {"fault": "bounce"})["hits"] == 1

        with RawClient(broker.host, broker.port) as client:
            assert b"x" in client.fetch("kept"), "same port, same data"
            post(door["url"], door["token"], {"fault": "fail", "api": "Produce", "error": "CORRUPT_MESSAGE"})
            assert client.produce("kept", b"y").error_code == 2, "the same door, with the same token"
            assert client.produce("kept", b"y").error_code == 0
        assert broker.process.pid == pid


def test_an_ephemeral_broker_says_where_its_faults_are_asked_for() -> None:
    command = [sys.executable, "-m", "kavka", "broker", "--ephemeral", "--override", "kavka.faults.enable=true"]
    broker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert broker.stdout is not None
        said = json.loads(broker.stdout.readline())
        host, _, port = said["bootstrap_servers"].partition(":")
        with RawClient(host, int(port)) as client:
            client.create_topic("hit")
            fault = {"fault": "fail", "api": "Produce", "error": "CORRUPT_MESSAGE"}
            post(said["faults"]["url"], said["faults"]["token"], fault)

            assert [client.produce("hit", b"x").error_code for _ in range(2)] == [2, 0]
    finally:
        broker.communicate(timeout=TIMEOUT_S)
    assert broker.returncode == 0
