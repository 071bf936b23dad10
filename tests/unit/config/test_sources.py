from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.config import ConfigError
from kavka.config.properties import parse_properties
from kavka.config.sources import from_environment, load_config, nearest
from tests.support.examples import examples


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text("num.io.threads=3\nnum.partitions=3\nmessage.max.bytes=3\n")
    return path


def test_command_line_counts_before_environment_before_file_before_default(file: Path) -> None:
    environ = {"KAFKA_NUM_PARTITIONS": "4", "KAFKA_MESSAGE_MAX_BYTES": "4"}

    config = load_config(file, ["message.max.bytes=5"], environ).config

    assert (config.num_io_threads, config.num_partitions, config.message_max_bytes) == (3, 4, 5)
    assert config.num_network_threads == 1


def test_unknown_and_ignored_settings_are_named() -> None:
    overrides = ["num.partitons=3", "process.roles=broker", "remote.log.reader.threads=many", "num.partitions=2"]
    # Of a listener it is followed; which mechanism a client has is known too late.
    limits = [f"listener.name.a.{each}sasl.server.max.receive.size=1000" for each in ("", "plain.")]

    loaded = load_config(None, [*overrides, *limits], {})

    assert loaded.unknown == ["num.partitons"]
    assert [name for name, reason in loaded.without_effect if reason] == [
        "listener.name.a.plain.sasl.server.max.receive.size",
        "process.roles",
        "remote.log.reader.threads",
    ]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_BROKER_ID", "broker.id"),
        ("KAFKA_LISTENERS", "listeners"),
        ("KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET", "zookeeper.clientCnxnSocket"),
        ("KAFKA_LISTENER_NAME_A___B_SSL_KEY_PASSWORD", "listener.name.a-b.ssl.key.password"),
        ("KAFKA_LISTENER_NAME_A__B_MAX_CONNECTIONS", "listener.name.a_b.max.connections"),
        ("KAFKA_LOG_RETENTION_SECONDS", "log.retention.seconds"),
        ("KAFKA_CFG_ZOOKEEPER_CONNECT", "zookeeper.connect"),
        ("KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE", "auto.create.topics.enable"),
        ("KAFKA_METRICS_PORT", "metrics.port"),
        ("KAFKA_KAVKA_VALIDATE_RECORDS", "kavka.validate.records"),
    ],
)
def test_a_variable_becomes_a_setting(variable: str, name: str) -> None:
    assert from_environment({variable: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "variable",
    [
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_VERSION",
        "KAFKA_HOME",
        "KAFKA_PORT",
        "KAFKA_PORT_9092_TCP_ADDR",
        "KAFKA_SERVICE_HOST",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "LOG_RETENTION_MS",
        "PATH",
    ],
)
def test_other_variables_are_left_alone(variable: str) -> None:
    assert from_environment({variable: "1"}) == {}


@pytest.mark.parametrize("prefix", ["KAFKA_", "KAFKA_CFG_"])
def test_the_environment_of_a_container_in_a_zookeeper_cluster_is_taken_over(prefix: str) -> None:
    """As for cp-kafka, wurstmeister's and Bitnami's images before KRaft."""
    settings = {
        "BROKER_ID": "3",
        "ZOOKEEPER_CONNECT": "zookeeper:2181/kafka",
        "LISTENERS": "INSIDE://:19092,OUTSIDE://:9092",
        "ADVERTISED_LISTENERS": "INSIDE://broker:19092,OUTSIDE://localhost:9092",
        "LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "INTER_BROKER_LISTENER_NAME": "INSIDE",
        "INTER_BROKER_PROTOCOL_VERSION": "3.9",
        "LOG_DIRS": "/var/lib/kafka/data",
        "OFFSETS_TOPIC_REPLICATION_FACTOR": "3",
        "TRANSACTION_STATE_LOG_MIN_ISR": "2",
        "ZOOKEEPER_SESSION_TIMEOUT_MS": "6000",
    }

    environ = {f"{prefix}{name}": text for name, text in settings.items()}
    loaded = load_config(None, [], {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_JMX_PORT": "9999", **environ})

    config = loaded.config
    assert (loaded.unknown, loaded.without_effect) == ([], [])
    assert (config.broker_id, config.zookeeper_connect) == (3, "zookeeper:2181/kafka")
    assert [str(listener) for listener in config.advertised_listeners] == [
        "INSIDE://broker:19092",
        "OUTSIDE://localhost:9092",
    ]
    assert (config.inter_broker_listener_name, config.zookeeper_session_timeout_ms) == ("INSIDE", 6000)


def test_the_plain_variable_counts_before_bitnamis() -> None:
    environ = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_CFG_NUM_PARTITIONS": "6"}

    assert from_environment(environ) == {"num.partitions": "3"}
    assert from_environment(dict(reversed(environ.items()))) == {"num.partitions": "3"}


def test_the_environment_of_a_kraft_container_is_taken_over() -> None:
    environ = {
        "KAFKA_NODE_ID": "3001",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:19092,PLAINTEXT_HOST://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "3001@broker:9093",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
    }

    loaded = load_config(None, [], environ)

    assert loaded.config.broker_id == 3001
    assert [listener.name for listener in loaded.config.listeners] == ["PLAINTEXT", "PLAINTEXT_HOST"]
    assert loaded.unknown == []
    assert [name for name, _ in loaded.without_effect] == ["controller.quorum.voters", "process.roles"]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("listener.name.out.scram-sha-512.sasl.server.max.receive.size", False),
        ("listener.name.out.plain.sasl.enabled.mechanisms", False),
        ("listener.name.out.sasl.server.max.receive.size", True),
        ("sasl.jaas.config", False),
        ("listener.name.out.sasl.jaas.config", False),
        ("listener.name.out.plain.sasl.jaas.config", True),
        ("listener.name.out.oauthbearer.sasl.oauthbearer.sub.claim.name", True),
    ],
)
def test_what_nobody_asks_for_by_that_name_is_said_to_have_no_effect(name: str, counts: bool) -> None:
    loaded = load_config(None, [f"{name}=100"], {})

    assert loaded.unknown == []
    assert [each for each, _ in loaded.without_effect] == ([] if counts else [name])


@pytest.mark.parametrize("override", ["num.partitions", "=3", ""])
def test_an_override_needs_name_and_value(override: str) -> None:
    with pytest.raises(ConfigError, match=f"override '{override}': must be of the form name=value"):
        load_config(None, [override], {})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num.partitons", "num.partitions"),
        ("log.retention.mss", "log.retention.ms"),
        ("super.user", "super.users"),
        ("listener.name.plaintext.ssl.keystore.lokation", "listener.name.plaintext.ssl.keystore.location"),
        ("listener.name.a.max.conections", "listener.name.a.max.connections"),
        ("my.own.setting", None),
    ],
)
def test_an_unknown_name_is_compared_with_the_known_ones(name: str, meant: str | None) -> None:
    assert nearest(name) == meant


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.properties: No such file"):
        load_config(tmp_path / "missing.properties", [], {})


def test_a_wrong_escape_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_bytes(b"# x\n\nbroker.rack=\\u12\n")
    with pytest.raises(ConfigError, match="line 3"):
        load_config(path, [], {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x7fELF\x02\x01\x01\x00\x00", "line 1: expected name=value, found '\\\\x7f'"),
        (b"broker.id=1\n{\n", "line 2: expected name=value, found '{'"),
        (b"broker.id=1\n<a>=1\n", "line 2"),
        (b"=1\n", "line 1"),
        (b"#\n" * 600_000, "larger than"),
    ],
    ids=["a program", "JSON", "XML", "no name", "long"],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=reason):
        load_config(path, [], {})


@pytest.mark.parametrize(
    ("data", "properties"),
    [
        (b"a=1", {"a": "1"}),
        (b"  a = 1 \n", {"a": "1 "}),
        (b"a:1\nb 2\nc\t=\t3\n", {"a": "1", "b": "2", "c": "3"}),
        (b"# a=1\n  ! b=2\n\n \t\n", {}),
        (b"a\n", {"a": ""}),
        (b"a=\n", {"a": ""}),
        (b"a==b", {"a": "=b"}),
        (b"a = = b", {"a": "= b"}),
        (b"a=1,\\\n   2,\\\r\n   3\nb=4", {"a": "1,2,3", "b": "4"}),
        (b"a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        (b"a=x\\", {"a": "x"}),
        (b"a=1\\\n# not a comment", {"a": "1# not a comment"}),
        (b"a\\ b\\=c=1", {"a b=c": "1"}),
        (b"a=\\t\\n\\r\\f\\q\\u0041", {"a": "\t\n\r\fqA"}),
        (b"a=\\uD83D\\uDE00", {"a": "\U0001f600"}),
        ("a=\u010de\u0161tina".encode(), {"a": "\u010de\u0161tina"}),
        ("a=\u00e9".encode("latin-1"), {"a": "\u00e9"}),
        (b"\\\n\n#a=1\n\\\n", {}),
        (b"a=1\ra=2", {"a": "2"}),
    ],
)
def test_properties_are_read_as_java_reads_them(data: bytes, properties: dict[str, str]) -> None:
    assert parse_properties(data) == properties


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" if not character.isalnum() else character for character in text)


CHARACTERS = st.characters(max_codepoint=0xD7FF)


@examples(60)
@given(st.dictionaries(st.text(CHARACTERS, min_size=1), st.text(CHARACTERS)))
def test_escaped_properties_come_back(properties: dict[str, str]) -> None:
    lines = [f"{escaped(name)}={escaped(value)}" for name, value in properties.items()]
    assert parse_properties("\n".join(lines).encode()) == properties


@examples(60)
@given(st.binary(max_size=200))
def test_any_bytes_give_properties_or_a_line_number(data: bytes) -> None:
    try:
        properties = parse_properties(data)
    except ValueError as error:
        properties = {"error": str(error)}
        if not str(error).startswith("line "):
            raise
    assert all(isinstance(text, str) for text in properties.values())
