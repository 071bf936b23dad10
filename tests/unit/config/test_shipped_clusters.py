"""The clusters that come with Kavka, as files for one machine and as containers: what their brokers are set to."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kavka.config.sources import Loaded, load_config

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "docker-compose.yml"
IMAGE = ROOT / "Dockerfile"


def on_one_machine() -> list[Loaded]:
    return [load_config(file, [], {}) for file in sorted((ROOT / "config").glob("server-*.properties"))]


def in_containers() -> list[Loaded]:
    """As in the containers: what the image sets, what all brokers of the compose file share, what each has."""
    image = dict(re.findall(r"^\s*(?:ENV )?(KAFKA_\w+)=(\S+)", IMAGE.read_text(), re.MULTILINE))
    head, _, services = COMPOSE.read_text().partition("\nservices:\n")
    assert "<<: *settings" in services
    parts = re.findall(r"^  broker-\d:\n(?:    .*\n|\n)+", services, re.MULTILINE)
    shared = {**image, **_variables(head)}
    return [load_config(ROOT / "config" / "server.properties", [], {**shared, **_variables(part)}) for part in parts]


def _variables(text: str) -> Mapping[str, str]:
    return dict(re.findall(r"^\s+(KAFKA_\w+): (.+)$", text, re.MULTILINE))


@pytest.mark.parametrize("made", [on_one_machine, in_containers])
def test_three_brokers_share_a_cluster_and_nothing_else(made: Callable[[], list[Loaded]]) -> None:
    loaded = made()

    assert [(each.unknown, each.without_effect) for each in loaded] == [([], [])] * 3
    configs = [each.config for each in loaded]
    assert {config.broker_id for config in configs} == {1, 2, 3}
    (connect,) = {config.zookeeper_connect for config in configs}
    assert connect is not None
    assert connect.endswith("/kavka")
    assert {(config.default_replication_factor, config.min_insync_replicas) for config in configs} == {(3, 2)}
    assert all(config.metrics_port > 0 for config in configs), "/readyz is what their starts wait for"
    reached = {str(listener) for config in configs for listener in (config.advertised_listeners or config.listeners)}
    assert len(reached) == sum(len(config.listeners) for config in configs)


def test_the_brokers_of_one_machine_have_ports_and_directories_of_their_own() -> None:
    configs = [each.config for each in on_one_machine()]

    assert len({config.log_dirs for config in configs}) == 3
    assert len({config.metrics_port for config in configs}) == 3


def test_an_image_contains_the_rooms_and_what_the_build_needs() -> None:
    let_in = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    rooms = {each.name for each in (ROOT / "kavka").iterdir() if each.is_symlink()}

    assert let_in == rooms | {"kavka", "pyspark_kavka.py", "pyproject.toml", "README.md", "LICENSE"}
