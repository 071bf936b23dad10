"""Writers whose connection is cut again and again: what they were told is what was done, once each."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kavka.cluster.registry.base import BadVersionError, Create, Delete, Registry, SetData
from tests.support.cutting_proxy import CuttingProxy
from tests.support.processes import let_pass
from tests.support.registries import new_root, open_zookeeper
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.integration, pytest.mark.java]

WRITERS = 3
ROUNDS = 15


def write(registry: Registry, writer: int) -> int:
    """Count up, leave notices, claim and release a seat; gives how often another one was faster."""
    lost_races = 0
    for turn in range(ROUNDS):
        name = f"{writer}-{turn}"
        while True:
            data, stat = registry.get("/count")
            count = int(data.split()[0])
            try:
                registry.multi(
                    [
                        SetData("/count", b"%d %s" % (count + 1, name.encode()), stat.version),
                        Create("/notices/notice_", name.encode(), sequential=True),
                    ]
                )
                break
            except BadVersionError:
                lost_races += 1
        registry.create(f"/seats/{writer}", name.encode(), ephemeral=True)
        registry.delete(f"/seats/{writer}", 0)
        results = registry.pipeline([Create(f"/many/{name}-{each}", b"x") for each in range(5)])
        assert results == [f"/many/{name}-{each}" for each in range(5)]
        registry.pipeline([Delete(f"/many/{name}-{each}") for each in range(4)])
    return lost_races


@pytest.mark.parametrize("seed", range(3))
def test_under_cuts_nothing_is_lost_and_nothing_done_twice(zookeeper: ZooKeeperProcess, seed: int) -> None:
    dice = random.Random(seed)
    with CuttingProxy(zookeeper.host, zookeeper.port) as proxy:
        root = new_root()
        registry = open_zookeeper(proxy.bootstrap, root)
        other = open_zookeeper(zookeeper.bootstrap, root)
        other.multi([Create("/count", b"0"), Create("/notices"), Create("/seats"), Create("/many")])
        sessions = registry.session_id
        done = threading.Event()

        def cut() -> int:
            cuts = 0
            while not done.is_set():
                let_pass(dice.uniform(0.0, 0.05))
                proxy.swallows_answers = dice.random() < 0.4
                proxy.swallows_requests = dice.random() < 0.3
                let_pass(dice.uniform(0.0, 0.02))
                proxy.cut()
                proxy.mend()
                cuts += 1
            return cuts

        with ThreadPoolExecutor() as threads:
            cutting = threads.submit(cut)
            try:
                writers = [threads.submit(write, registry, writer) for writer in range(WRITERS)]
                for writer in writers:
                    writer.result(240)
            finally:
                done.set()
            assert cutting.result() > 0

        assert int(other.get("/count")[0].split()[0]) == WRITERS * ROUNDS
        notices = other.get_many([f"/notices/{name}" for name in other.children("/notices")])
        names = sorted(node[0].decode() for node in notices if node is not None)
        assert names == sorted(f"{writer}-{turn}" for writer in range(WRITERS) for turn in range(ROUNDS))
        assert other.children("/seats") == []
        assert len(other.children("/many")) == WRITERS * ROUNDS
        assert registry.session_id == sessions
        registry.close()
        other.close()
