"""Settings of Kafka's clients that these accept and that change nothing, with the reason."""

from __future__ import annotations

from typing import Final

_SECURITY: Final = "it is for TLS or SASL, which security.protocol=PLAINTEXT does without"
_REASONS: Final = {
    "auto.include.jmx.reporter": "metrics are read from the client, not by JMX",
    "config.providers": "it names Java classes; values are given as they are",
    "enable.metrics.push": "the client pushes no metrics to brokers",
    "metric.reporters": "metrics are read from the client, by `metrics` or as families for prometheus-client",
    "metrics.recording.level": "what is counted costs little enough to be counted always",
    "security.providers": "it names Java classes",
    "share.acknowledgement.mode": "there is no consumer of share groups",
    "share.acquire.mode": "there is no consumer of share groups",
    "transaction.two.phase.commit.enable": "there is no two-phase commit; true is refused",
}


def why_without_effect(name: str) -> str | None:
    """Why a setting that Kafka's clients have does nothing here; None for any other name."""
    return _SECURITY if name.startswith(("ssl.", "sasl.")) else _REASONS.get(name)


def names_without_effect() -> dict[str, str]:
    """All such names with their reasons, those of TLS and SASL as two patterns."""
    return {**_REASONS, "ssl.*": _SECURITY, "sasl.*": _SECURITY}
