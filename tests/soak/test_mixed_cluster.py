"""Kavka and Apache Kafka 3.9 in one cluster, in either majority, under load: what befalls them is drawn by lot."""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.exact_copies import SOURCE, TARGET, ExactCopies
from tests.support.mixed_chores import begin_to_delete, do_chores, wait_until_deleted
from tests.support.numbered_producer import PARTITIONS
from tests.support.process_cluster import INTERNAL, TIMEOUT_S, ProcessCluster
from tests.support.processes import let_pass, wait_until
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.soak, pytest.mark.java, pytest.mark.timeout(0)]

IDS = (1, 2, 3)
COPIED = (SOURCE, TARGET)
ALL = (*COPIED, *INTERNAL)
AWAY_S = 20.0


def seconds() -> float:
    return float(os.environ.get("SOAK_SECONDS", "30"))


class Fate:
    """Draws what comes next, and prints it for whoever reads of a failure."""

    def __init__(self, cluster: ProcessCluster, copies: ExactCopies, seed: int) -> None:
        self.cluster = cluster
        self.copies = copies
        self.dice = random.Random(seed)
        self.turn = 0
        self.blows: tuple[Callable[[int], None], ...] = (
            self.controls,
            self.leads,
            self.is_killed,
            self.is_killed_as_leader,
            self.stops,
            self.stands_still,
            self.is_emptied,
            self.controls_what_others_began,
            self.has_chores,
            self.misses_a_deletion,
        )

    def strike(self) -> None:
        """One blow; afterwards all is in sync again, and copies go on."""
        self.turn += 1
        blow, broker_id = self.dice.choice(self.blows), self.dice.choice(IDS)
        now, controller = time.strftime("%H:%M:%S"), self.cluster.controller_id
        print(f"{now} {self.turn}: {broker_id} {blow.__name__}, controller {controller}", flush=True)
        blow(broker_id)
        self.cluster.wait_in_sync(*ALL)
        self.copies.wait_for_more()

    def controls(self, broker_id: int) -> None:
        self.cluster.make_controller(broker_id)

    def leads(self, broker_id: int) -> None:
        self.cluster.lead(COPIED, broker_id)
        for topic in INTERNAL:
            self.cluster.lead([topic], self.dice.choice(IDS))

    def is_killed(self, broker_id: int) -> None:
        self.cluster.kill(broker_id, lingers=self.dice.random() < 0.5)
        let_pass(self.dice.uniform(0, AWAY_S))
        self.cluster.start(broker_id)

    def is_killed_as_leader(self, broker_id: int) -> None:
        self.cluster.lead(ALL, broker_id)
        self.is_killed(broker_id)

    def stops(self, broker_id: int) -> None:
        self.cluster.stop(broker_id)
        self.cluster.start(broker_id)

    def stands_still(self, broker_id: int) -> None:
        with self.cluster.frozen(broker_id):
            if self.dice.random() < 0.5:
                self.cluster.end_session(broker_id)
            let_pass(self.dice.uniform(0, AWAY_S))
        self.cluster.wait_for_brokers()

    def is_emptied(self, broker_id: int) -> None:
        others = [each for each in IDS if each != broker_id]
        self.dice.shuffle(others)
        self.cluster.place(ALL, others)
        self.copies.wait_for_more()
        self.cluster.lead(ALL, self.dice.choice(IDS))

    def controls_what_others_began(self, broker_id: int) -> None:
        """A move goes on, or is taken back, under another controller than it began under."""
        kept = self.dice.sample(IDS, 2)
        self.cluster.begin_to_place(ALL, kept)
        self.cluster.make_controller(broker_id)
        if self.dice.random() < 0.5:
            self.cluster.begin_to_place(ALL, None)
            self.cluster.wait_until_settled()
        else:
            self.cluster.wait_until_placed(ALL, kept)
        self.cluster.lead(ALL, self.dice.choice(IDS))

    def misses_a_deletion(self, broker_id: int) -> None:
        name = f"deleted.{self.turn}"
        self.cluster.create(name, 1, first=broker_id)
        self.cluster.kill(broker_id)
        self.cluster.wait_for_brokers()
        wait_until(lambda: self.cluster.controller_id in self.cluster.running, TIMEOUT_S, "no controller")
        begin_to_delete(self.cluster, name)
        self.cluster.start(broker_id)
        wait_until_deleted(self.cluster, name)

    def has_chores(self, broker_id: int) -> None:
        do_chores(self.cluster, f"chores.{self.turn}", broker_id)


@pytest.mark.parametrize("kafkas", [1, 2])
def test_nothing_is_lost_whatever_befalls_them(zookeeper: ZooKeeperProcess, tmp_path: Path, kafkas: int) -> None:
    seed = int(os.environ.get("SOAK_SEED", random.SystemRandom().randrange(1 << 31)))
    print(f"SOAK_SEED={seed}", flush=True)
    with ProcessCluster(zookeeper, tmp_path, kafkas=IDS[:kafkas], kavkas=IDS[kafkas:]) as cluster:
        for topic in COPIED:
            cluster.create(topic, PARTITIONS, first=IDS[0])
        with ExactCopies(tmp_path, cluster.bootstrap) as copies:
            cluster.wait_in_sync(*ALL)
            fate = Fate(cluster, copies, seed)
            until_s = time.monotonic() + seconds()
            while time.monotonic() < until_s:
                fate.strike()
            copies.finish()
        cluster.wait_until_identical(*ALL)
