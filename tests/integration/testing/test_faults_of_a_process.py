"""Faults of brokers that are processes of their own, asked for over HTTP."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from kavka.cluster.topic_names import GROUP_METADATA_TOPIC
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.kavka_process import KavkaProcess
from tests.support.process_cluster import ProcessCluster
from tests.support.wire import RawClient
from tests.support.zookeeper_process import ZooKeeperProcess

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


def test_leaders_and_coordinators_of_a_cluster_on_zookeeper_move_for_who_asks_any_broker(
    zookeeper: ZooKeeperProcess, tmp_path: Path
) -> None:
    two = {
        "kavka.faults.enable": "true",
        "default.replication.factor": "2",
        "offsets.topic.replication.factor": "2",
        "transaction.state.log.replication.factor": "2",
    }
    with ProcessCluster(zookeeper, tmp_path, kavkas=[1, 2], settings=two) as cluster:
        doors = {each: cluster.kavka(each).process.wait_for_log(DOOR, TIMEOUT_S) for each in (1, 2)}
        cluster.create("moved", 1, first=1)
        # Whoever asks first has the topic made; it may be no answer yet.
        cluster.ask(1, FindCoordinatorRequest(key="g"), 0)
        cluster.wait_in_sync(GROUP_METADATA_TOPIC)
        other = 3 - cluster.told(GROUP_METADATA_TOPIC)[0].leader

        # Each is asked that does not lead what is to move.
        move = {"fault": "move_leader", "topic": "moved"}
        assert post(doors[2]["url"], doors[2]["token"], move)["hits"] == 1
        cluster.wait_for(["moved"], lambda told: told.leader == 2, "not moved")
        lose = {"fault": "lose_coordinator", "group_id": "g"}
        assert post(doors[other]["url"], doors[other]["token"], lose)["hits"] == 1
        cluster.wait_for([GROUP_METADATA_TOPIC], lambda told: told.leader == other, "not moved")

        with cluster.client(2) as client:
            assert client.produce("moved", b"x", acks=-1).error_code == 0
