"""A broker whose settings ask for no security starts without it: its modules are loaded by those who ask for it."""

import subprocess
import sys
from pathlib import Path

import pytest

SERVES_ONCE = """
import socket, struct, sys
from kavka.broker.server import Broker
from kavka.config.sources import load_config

loaded = load_config(None, sys.argv[1:], {})
broker = Broker(loaded.config)
broker.start()
try:
    port = int(broker.endpoints_text().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as client:
        for request in (struct.pack(">hhih", 18, 0, 1, -1), struct.pack(">hhihi", 3, 0, 1, -1, 0)):
            client.sendall(struct.pack(">i", len(request)) + request)
            size = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))[0]
            assert len(client.recv(size, socket.MSG_WAITALL)) == size
    print(*sorted(name for name in sys.modules if name.startswith("kavka.")))
finally:
    broker.stop()
"""
OF_SECURITY = (
    "kavka.broker.network.authentication",
    "kavka.broker.network.handshakes",
    "kavka.broker.network.tls_",
    "kavka.broker.quotas",
    "kavka.broker.requests.acl_requests",
    "kavka.broker.security",
    "kavka.broker.settings.password_encoder",
    "kavka.client",
    "kavka.cluster.znodes.acl",
    "kavka.cluster.znodes.delegation_token",
    "kavka.cluster.znodes.scram_credential",
    "kavka.config.clients",
    "kavka.config.providers",
    "kavka.config.sasl_settings",
    "kavka.protocol.sasl",
    *(
        f"kavka.{place}.{what}"
        for place in ("broker.handlers", "protocol.messages")
        for what in (
            "alter_client_quotas",
            "alter_user_scram",
            "create_acls",
            "create_delegation_token",
            "delete_acls",
            "describe_acls",
            "describe_client_quotas",
            "describe_delegation_token",
            "describe_user_scram",
            "expire_delegation_token",
            "renew_delegation_token",
            "sasl_",
        )
    ),
)
"""What the names of modules begin with that nobody needs before somebody asks for security."""

SEAMS = {
    "kavka.broker.security",
    "kavka.broker.security.acl",  # the names of rights, which handlers ask for
    "kavka.broker.security.credentials",
    "kavka.broker.security.credentials.keeping",  # whether there are credentials
    "kavka.broker.security.gates",  # whether there is a gate before a listener
    "kavka.broker.security.listener_transports",  # whether there is TLS below it
}


def loaded(directory: Path, *settings: str) -> set[str]:
    plain = (f"log.dirs={directory}", "broker.id=5", "listeners=PLAINTEXT://127.0.0.1:0")
    done = subprocess.run(
        [sys.executable, "-c", SERVES_ONCE, *plain, *settings], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name for name in done.stdout.split() if name.startswith(OF_SECURITY)}


def test_a_broker_without_security_loads_none_of_it(tmp_path: Path) -> None:
    assert loaded(tmp_path) == SEAMS


@pytest.mark.parametrize(
    ("settings", "module"),
    [
        ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "kavka.broker.security.authorizer.deciding"),
        ("delegation.token.secret.key=s", "kavka.broker.security.credentials.delegation_tokens"),
        (
            "config.providers=e config.providers.e.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            "kavka.config.providers",
        ),
    ],
)
def test_what_is_asked_for_is_loaded(tmp_path: Path, settings: str, module: str) -> None:
    assert module in loaded(tmp_path, *settings.split())
