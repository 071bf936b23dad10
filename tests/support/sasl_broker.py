"""A broker process with a SASL listener beside a plaintext one, and users for each mechanism."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.support.kavka_process import KavkaProcess

PLAIN_USER, PLAIN_PASSWORD = "alice", 'alice\'s secret; "quoted"'
SCRAM_USER, SCRAM_PASSWORD = "carol", "carol,=secret"
LISTENER: Final = "SASL_PLAINTEXT"
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_QUOTED: Final = PLAIN_PASSWORD.replace('"', '\\"')


class SaslBroker(KavkaProcess):
    """`sasl_bootstrap` is the SASL listener's address, `bootstrap` the plaintext one's."""

    def __init__(
        self,
        directory: Path,
        overrides: dict[str, str] | None = None,
        *,
        mechanisms: str = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        env: dict[str, str] | None = None,
    ) -> None:
        prefix = f"listener.name.{LISTENER.lower()}"
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://localhost:0",
            f"{prefix}.sasl.enabled.mechanisms": mechanisms,
            f"{prefix}.plain.sasl.jaas.config": f'{MODULE} required user_{PLAIN_USER}="{_QUOTED}";',
            **(overrides or {}),
        }
        super().__init__(directory, settings, env=env)

    @property
    def sasl_bootstrap(self) -> str:
        found = re.findall(rf"{LISTENER}://localhost:(\d+)", self.process.log_text())
        return f"localhost:{found[-1]}"

    def set_plain_users(self, **passwords: str) -> None:
        """Have these, and PLAIN_USER, from now on; needs `password.encoder.secret`."""
        users = "".join(f' user_{user}="{password}"' for user, password in passwords.items())
        text = f'{MODULE} required user_{PLAIN_USER}="{_QUOTED}"{users};'
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        broker_id = str(next(iter(admin.list_topics(timeout=60).brokers)))
        name = f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config"
        entry = ConfigEntry(name, text, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, broker_id, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(60)

    def add_scram_user(self, user: str = SCRAM_USER, password: str = SCRAM_PASSWORD) -> None:
        """With both mechanisms, by the plaintext listener."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            upsertion = UserScramCredentialUpsertion(user, info, password.encode())
            admin.alter_user_scram_credentials([upsertion])[user].result(30)


def jaas(mechanism: str, user: str, password: str) -> str:
    """A Java client's `sasl.jaas.config`."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    name = f"org.apache.kafka.common.security.{module}LoginModule"
    return f'{name} required username="{user}" password="{quoted}";'
