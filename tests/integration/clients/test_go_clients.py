"""Go clients against a real broker process: franz-go, segmentio/kafka-go, IBM/sarama."""

import pytest

from tests.support.other_clients import MESSAGES, check_lines, go_client, run_client
from tests.support.server import RunningServer

pytestmark = pytest.mark.slow
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLDER_SARAMA = {"0.10.2.0": ("none", "gzip", "snappy", "lz4"), "1.1.0": ("none", "gzip", "snappy", "lz4")}


@pytest.mark.round_trip
@pytest.mark.parametrize("client", ["franz", "kafkago", "sarama"])
def test_what_a_go_client_produced_it_reads_back(broker: RunningServer, topic: str, client: str) -> None:
    lines = run_client([go_client(client)], broker.bootstrap, topic, MESSAGES, ",".join(CODECS))
    check_lines(lines, CODECS)


@pytest.mark.parametrize("version", OLDER_SARAMA)
def test_sarama_speaks_the_versions_of_older_brokers(broker: RunningServer, topic: str, version: str) -> None:
    codecs = OLDER_SARAMA[version]
    arguments = (broker.bootstrap, topic, MESSAGES, ",".join(codecs), version)
    lines = run_client([go_client("sarama")], *arguments)
    check_lines(lines, codecs, headers=not version.startswith("0.10"))
