"""What must hold of TLS and SASL settings. A client that cannot be as secure as it was asked to be is not made."""

from __future__ import annotations

from typing import Any, Final

from kavka.config.errors import ConfigError

SASL_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_CLASSES: Final = ("ssl.engine.factory.class", "sasl.client.callback.handler.class", "sasl.login.class")


def check_secure(values: dict[str, Any]) -> None:
    """Makes `security.protocol` upper case. Raises ConfigError."""
    protocol = values["security.protocol"] = values["security.protocol"].upper()
    for name in _CLASSES:
        if values[name]:
            raise ConfigError(name, values[name], "Java classes cannot be loaded; without it nothing would do its work")
    if not protocol.startswith("SASL_"):
        return
    mechanism = values["sasl.mechanism"]
    if not mechanism:
        # The words are Kafka's.
        reason = (
            "When the security.protocol configuration enables SASL, mechanism must be non-null and non-empty string."
        )
        raise ConfigError("sasl.mechanism", mechanism, reason)
    if mechanism not in SASL_MECHANISMS:
        kerberos = "These clients do not log in by Kerberos" if mechanism == "GSSAPI" else "Nothing is known of it"
        raise ConfigError("sasl.mechanism", mechanism, f"{kerberos}: must be one of {', '.join(SASL_MECHANISMS)}")
