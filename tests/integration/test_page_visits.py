"""The example of the field, run as a user would: complete and in order per partition, whatever the acknowledgement."""

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from examples.page_visits.consume import read_visits
from examples.page_visits.produce import PARTITIONS, TOPIC, create_topic, produce_visits
from examples.page_visits.visits import PageVisit, generate_visits
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.server import RunningServer

VISITS = 3000


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_visits_are_read_back_complete_and_in_order(broker: RunningServer, topic: str, acks: int | str) -> None:
    sent = list(generate_visits(VISITS, seed=14))
    create_topic(broker.bootstrap, topic)
    # With acks=0 a partition that is just being made loses what comes; asking for its end waits for it.
    assert read_visits(broker.bootstrap, topic) == {number: [] for number in range(PARTITIONS)}
    produce_visits(broker.bootstrap, sent, acks, topic)

    expected = {number: [visit for visit in sent if _partition(visit) == number] for number in range(PARTITIONS)}
    assert all(expected.values())

    if acks != 0:
        assert read_visits(broker.bootstrap, topic) == expected
        return
    # With acks=0 nobody says what arrives, or when.
    wait_until(lambda: any(read_visits(broker.bootstrap, topic).values()), 60, "no visit arrived")
    for number, visits in read_visits(broker.bootstrap, topic).items():
        assert visits == expected[number][: len(visits)]


def test_visits_to_a_site_are_together_if_asked_for(broker: RunningServer, topic: str) -> None:
    sent = list(generate_visits(200, seed=15))
    create_topic(broker.bootstrap, topic)
    produce_visits(broker.bootstrap, sent, "all", topic, by="site")
    found = read_visits(broker.bootstrap, topic)
    for site in {visit.site for visit in sent}:
        (together,) = [visits for visits in found.values() if site in {visit.site for visit in visits}]
        assert [visit for visit in together if visit.site == site] == [visit for visit in sent if visit.site == site]


def test_visits_are_too_young_for_retention() -> None:
    now_ms = time.time_ns() // 1_000_000
    times_ms = [visit.time_ms for visit in generate_visits(10)]

    assert times_ms == sorted(times_ms)
    assert all(abs(time_ms - now_ms) < 60_000 for time_ms in times_ms)


def test_the_commands_of_the_readme_work(broker: RunningServer) -> None:
    produced = _run("produce", "--bootstrap", broker.bootstrap, "--count", "500")
    consumed = _run("consume", "--bootstrap", broker.bootstrap)

    assert produced == f"500 visits sent to {TOPIC}\n"
    counts = [int(line.split(": ")[1].split()[0]) for line in consumed.splitlines()]
    assert (len(counts), sum(counts)) == (PARTITIONS, 500)


def test_a_topic_of_another_shape_is_named(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as own, closing(KafkaAdminClient(bootstrap_servers=own.bootstrap)) as admin:
        admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
        with pytest.raises(ValueError, match="1 partitions instead of 6"):
            create_topic(own.bootstrap)
        with pytest.raises(ValueError, match=r"run examples\.page_visits\.produce"):
            read_visits(own.bootstrap)


def _partition(visit: PageVisit) -> int:
    return int(visit.ip.split(".")[3]) % PARTITIONS


def _run(name: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"examples.page_visits.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout
