"""Kafka's console producer and consumer, of 3.9 and of 4.3, against a real broker process.

The consumer is told its partition: groups are another matter.
"""

import pytest

from tests.support.java import run_java
from tests.support.server import RunningServer
from tests.support.topics import create_topic

pytestmark = pytest.mark.java
PRODUCERS = {"kafka-3.9": "kafka.tools.ConsoleProducer", "kafka-4.3": "org.apache.kafka.tools.ConsoleProducer"}
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.mark.round_trip
@pytest.mark.parametrize("bundle", ["kafka-3.9", "kafka-4.3"])
def test_typed_lines_come_back_in_order(broker: RunningServer, topic: str, bundle: str) -> None:
    lines = [f"line {number}" for number in range(50)]
    create_topic(broker, topic)
    _produce(broker, topic, bundle, lines)
    assert _consume(broker, topic, bundle, len(lines)).splitlines() == lines


@pytest.mark.parametrize(
    ("bundle", "codec"), [("kafka-3.9", "gzip"), ("kafka-3.9", "snappy"), ("kafka-4.3", "lz4"), ("kafka-4.3", "zstd")]
)
def test_compressed_keyed_records_come_back(broker: RunningServer, topic: str, bundle: str, codec: str) -> None:
    create_topic(broker, topic)
    lines = [f"key-{number}:" + "value " * 50 + str(number) for number in range(20)]
    keyed = ["--property" if bundle == "kafka-3.9" else "--reader-property", "parse.key=true"]
    keyed += [keyed[0], "key.separator=:"]
    _produce(broker, topic, bundle, lines, "--compression-codec", codec, *keyed)

    flag = "--property" if bundle == "kafka-3.9" else "--formatter-property"
    shown = [flag, "print.key=true", flag, "key.separator=:", flag, "print.offset=true"]
    read = _consume(broker, topic, bundle, len(lines), *shown).splitlines()

    assert read == [f"Offset:{number}:{line}" for number, line in enumerate(lines)]


def _produce(broker: RunningServer, topic: str, bundle: str, lines: list[str], *options: str) -> None:
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, *options]
    run_java(PRODUCERS[bundle], arguments, bundle=bundle, text_in="".join(f"{line}\n" for line in lines))


def _consume(broker: RunningServer, topic: str, bundle: str, count: int, *options: str) -> str:
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"]
    arguments += ["--max-messages", str(count), "--timeout-ms", "120000", *options]
    return run_java(CONSUMER, arguments, bundle=bundle)
