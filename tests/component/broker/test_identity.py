"""Who a broker is: settings, log directories and registry agree, or it does not start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.broker.metadata.identity import IdentityError, establish_identity
from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.registry.embedded import EmbeddedRegistry
from kavka.config.broker_config import BrokerConfig
from kavka.config.sources import load_config
from kavka.storage.meta_properties import MetaProperties


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[EmbeddedRegistry]:
    registry = EmbeddedRegistry(tmp_path / "registry", lambda: 0)
    prepare_tree(registry)
    yield registry
    registry.close()


def config(**settings: str) -> BrokerConfig:
    return load_config(None, [f"{name.replace('_', '.')}={value}" for name, value in settings.items()], {}).config


def owner(broker_id: int | None = None, cluster_id: str | None = None) -> MetaProperties:
    return MetaProperties(broker_id=broker_id, cluster_id=cluster_id)


def test_an_id_that_is_set_is_taken(registry: EmbeddedRegistry) -> None:
    identity = establish_identity(config(broker_id="7"), owner(), registry)

    assert identity.broker_id == 7
    assert len(identity.cluster_id) == 22


def test_the_same_broker_is_itself_again(registry: EmbeddedRegistry) -> None:
    first = establish_identity(config(), owner(), registry)

    assert establish_identity(config(), owner(*first), registry) == first


def test_ids_that_are_made_up_differ_and_lie_beyond_those_reserved(registry: EmbeddedRegistry) -> None:
    made = {establish_identity(config(reserved_broker_max_id="50"), owner(), registry).broker_id for _ in range(3)}

    assert len(made) == 3
    assert min(made) > 50


def test_directories_of_a_cluster_name_it_to_an_empty_registry(registry: EmbeddedRegistry) -> None:
    name = "MkU3OEVBNTcwNTJENDM2Qg"

    assert establish_identity(config(broker_id="1"), owner(1, name), registry).cluster_id == name
    assert establish_identity(config(broker_id="1"), owner(), registry).cluster_id == name


@pytest.mark.parametrize(
    ("settings", "owned", "message"),
    [
        ({"broker_id": "1"}, owner(2), "broker.id is 1"),
        ({"broker_id": "1"}, owner(1, "another"), "cluster another"),
    ],
)
def test_contradictions_are_refused(
    registry: EmbeddedRegistry, settings: dict[str, str], owned: MetaProperties, message: str
) -> None:
    establish_identity(config(broker_id="1"), owner(), registry)

    with pytest.raises(IdentityError, match=message):
        establish_identity(config(**settings), owned, registry)
