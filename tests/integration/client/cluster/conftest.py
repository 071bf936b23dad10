"""One cluster of three Kavka brokers and a ZooKeeper for all tests of a module."""

from collections.abc import Iterator

import pytest

from kavka.client import Admin
from tests.support.client_cluster import PATIENT, ClientCluster
from tests.support.zookeeper_process import ZooKeeperProcess


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientCluster]:
    """Tests leave it whole: all brokers run, and all links are open."""
    with ClientCluster(zookeeper, tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def admin(cluster: ClientCluster) -> Iterator[Admin]:
    with Admin(PATIENT, bootstrap_servers=cluster.bootstrap) as made:
        yield made
