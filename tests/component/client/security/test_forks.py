"""A fork beside a client with TLS: the child's copies of its connections say nothing to the brokers."""

import os
from pathlib import Path

from kavka.client import Producer
from kavka.testing import Broker
from tests.support.certificates import PASSWORD
from tests.support.tls_broker import Stores

TIMEOUT_S = 60


def test_a_fork_leaves_the_parents_connections_as_they_were(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.location": str(stores.keys),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(stores.trust),
        "ssl.truststore.password": PASSWORD,
    }
    trust = {"ssl.truststore.location": str(stores.trust), "ssl.truststore.password": PASSWORD}
    with (
        Broker(settings) as broker,
        Producer(trust, bootstrap_servers=broker.bootstrap_servers, security_protocol="SSL") as producer,
    ):
        producer.send("orders", b"before").result(TIMEOUT_S)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0)
            assert os.waitpid(child, 0) == (child, 0)
            producer.send("orders", b"after").result(TIMEOUT_S)
        assert producer.metrics["connection-close-total"] == 0
