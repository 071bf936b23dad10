"""Requests captured from real clients: read, understood, and written back byte for byte."""

from typing import Any

import pytest

from kavka.protocol.api import spec
from kavka.protocol.codec import decode, encode
from kavka.protocol.headers import decode_request_header, encode_request_header

UUID = bytes(range(16))

# (frame without its size, header, some fields by path)
LIBRDKAFKA_2_16 = "rdkafka"
JAVA_PRODUCER_4_3 = "console-producer"
JAVA_CONSUMER_4_3 = "console-consumer"

CAPTURED = [
    pytest.param(
        "0012000300000001000772646b61666b610017636f6e666c75656e742d6b61666b612d707974686f6e16322e31362e312d72646b"
        "61666b612d322e31362e3000",
        ("ApiVersions", 3, 1, LIBRDKAFKA_2_16),
        {"client_software_name": "confluent-kafka-python", "client_software_version": "2.16.1-rdkafka-2.16.0"},
        id="librdkafka-ApiVersions-v3",
    ),
    pytest.param(
        "0003000d00000002000772646b61666b6100020000000000000000000000000000000007676f6c64656e00010000",
        ("Metadata", 13, 2, LIBRDKAFKA_2_16),
        {"topics.0.name": "golden", "topics.0.topic_id": bytes(16), "allow_auto_topic_creation": True},
        id="librdkafka-Metadata-v13",
    ),
    pytest.param(
        "0016000400000002000772646b61666b610000ffffffffffffffffffffffffffff00",
        ("InitProducerId", 4, 2, LIBRDKAFKA_2_16),
        {"transactional_id": None, "transaction_timeout_ms": -1, "producer_id": -1, "producer_epoch": -1},
        id="librdkafka-InitProducerId-v4",
    ),
    pytest.param(
        "0000000a00000003000772646b61666b610000ffff000075300207676f6c64656e02000000004d00000000000000000000004000"
        "000000021eb42a560000000000000000018bcfe568000000018bcfe568000000000000000005000000000000000000011c000000"
        "066b65790a76616c756500000000",
        ("Produce", 10, 3, LIBRDKAFKA_2_16),
        {"acks": -1, "timeout_ms": 30_000, "topic_data.0.name": "golden", "topic_data.0.partition_data.0.index": 0},
        id="librdkafka-Produce-v10",
    ),
    pytest.param(
        "000a000200000003000772646b61666b6100016700",
        ("FindCoordinator", 2, 3, LIBRDKAFKA_2_16),
        {"key": "g", "key_type": 0},
        id="librdkafka-FindCoordinator-v2",
    ),
    pytest.param(
        "00120004000000000010636f6e736f6c652d70726f647563657200126170616368652d6b61666b612d6a61766106342e332e3100",
        ("ApiVersions", 4, 0, JAVA_PRODUCER_4_3),
        {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"},
        id="java-ApiVersions-v4",
    ),
    pytest.param(
        "0000000d000000050010636f6e736f6c652d70726f64756365720000ffff000005dc02000102030405060708090a0b0c0d0e0f02"
        "000000004a00000000000000000000003dffffffff02453e9d86000000000000000001a1fdeb4a41000001a1fdeb4a4100000000"
        "000000050000000000000000000116000000010a76616c756500000000",
        ("Produce", 13, 5, JAVA_PRODUCER_4_3),
        {"topic_data.0.topic_id": UUID, "topic_data.0.name": "", "timeout_ms": 1_500},
        id="java-Produce-v13",
    ),
    pytest.param(
        "0002000b000000030010636f6e736f6c652d636f6e73756d657200ffffffff000207676f6c64656e020000000000000000ffffff"
        "fffffffffe00000000753000",
        ("ListOffsets", 11, 3, JAVA_CONSUMER_4_3),
        {"replica_id": -1, "topics.0.partitions.0.timestamp": -2, "timeout_ms": 30_000},
        id="java-ListOffsets-v11",
    ),
    pytest.param(
        "00010012000000050010636f6e736f6c652d636f6e73756d657200000001f4000000010320000000000000000000000002000102"
        "030405060708090a0b0c0d0e0f0200000000000000000000000000000000ffffffffffffffffffffffff001000000000010100",
        ("Fetch", 18, 5, JAVA_CONSUMER_4_3),
        {
            "max_wait_ms": 500,
            "max_bytes": 50 * 2**20,
            "session_epoch": 0,
            "topics.0.topic_id": UUID,
            "topics.0.partitions.0.partition_max_bytes": 2**20,
            "topics.0.partitions.0.high_watermark": 2**63 - 1,
            "forgotten_topics_data": [],
        },
        id="java-Fetch-v18",
    ),
]


@pytest.mark.parametrize(("frame", "expected_header", "fields"), CAPTURED)
def test_a_captured_request_is_understood_and_written_back(
    frame: str, expected_header: tuple[str, int, int, str], fields: dict[str, object]
) -> None:
    data = bytes.fromhex(frame)
    header = decode_request_header(data)
    api = spec(header.api_key)
    request = decode(api.request_class, header.api_version, data, header.body_offset)

    assert (api.name, header.api_version, header.correlation_id, header.client_id) == expected_header
    assert {path: at_path(request, path) for path in fields} == fields
    written = encode_request_header(header.api_key, header.api_version, header.correlation_id, header.client_id)
    assert written + encode(request, header.api_version) == data


def at_path(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value
