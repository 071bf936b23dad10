"""Who needs the network alone loads no producer, consumer or administrator."""

import subprocess
import sys

PROGRAM = """
import sys
{}
print(*sys.modules)
"""
FOR_CLIENTS = (
    "kavka.client.api_errors",
    "kavka.client.client_thread",
    "kavka.client.metadata",
    "kavka.client.producer",
    "kavka.client.consumer",
    "kavka.client.admin",
    "kavka.config.clients",
)


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(statement)], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def clients_among(modules: set[str]) -> list[str]:
    return [name for name in modules if any(name == each or name.startswith(f"{each}.") for each in FOR_CLIENTS)]


def test_the_network_loads_no_clients() -> None:
    modules = loaded_by("import kavka.client")
    assert "kavka.client.network_client" in modules
    assert clients_among(modules) == []


def test_a_broker_loads_no_clients() -> None:
    modules = loaded_by("import kavka.broker.server, kavka.broker.interbroker.inter_broker")
    assert clients_among(modules) == []


def test_all_that_there_is_can_be_imported_at_once() -> None:
    modules = loaded_by("from kavka.client import *; Producer, Consumer, Admin, NetworkClient")
    assert "kavka.client.producer.producer" in modules


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import kavka.client

    assert not hasattr(kavka.client, "Consumers")
