"""The registry on three ZooKeepers: what happens to a session when the one that leads them is killed."""

import threading
from pathlib import Path

import pytest

from tests.support.registries import open_zookeeper
from tests.support.zookeeper_process import ZooKeeperEnsemble

pytestmark = [pytest.mark.integration, pytest.mark.java, pytest.mark.slow]

PATIENCE_S = 60.0


def test_a_session_its_nodes_and_watches_outlive_the_ensembles_leader(tmp_path: Path) -> None:
    with ZooKeeperEnsemble(tmp_path) as ensemble:
        registry = open_zookeeper(ensemble.bootstrap)
        try:
            session_id = registry.session_id
            registry.create("/e", b"0", ephemeral=True)
            fired = threading.Event()
            registry.get("/e", lambda _: fired.set())
            leader = ensemble.leader()
            assert leader is not None

            leader.kill()

            assert registry.set("/e", b"1", 0).version == 1
            assert fired.wait(PATIENCE_S)
            assert registry.session_id == session_id
            assert registry.get("/e")[1].ephemeral_owner == session_id
        finally:
            registry.close()
