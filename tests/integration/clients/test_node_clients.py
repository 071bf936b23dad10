"""Node clients against a real broker process: kafkajs and @platformatic/kafka. They read in groups only."""

import pytest

from tests.support.other_clients import MESSAGES, PARTITIONS, check_lines, node_client, read_back, run_client
from tests.support.server import RunningServer

pytestmark = pytest.mark.slow
CODECS = {"kafkajs": ("none", "gzip"), "platformatic": ("none", "gzip", "snappy", "lz4")}


@pytest.mark.round_trip
@pytest.mark.parametrize("client", CODECS)
def test_what_a_node_client_produced_is_there(broker: RunningServer, topic: str, client: str) -> None:
    codecs = CODECS[client]
    ends = run_client(node_client(client), broker.bootstrap, topic, MESSAGES, ",".join(codecs))
    per_partition = MESSAGES // PARTITIONS * len(codecs)
    assert sorted(ends) == [f"{index} 0 {per_partition}" for index in range(PARTITIONS)]
    check_lines(read_back(broker, topic, MESSAGES * len(codecs)), codecs)
