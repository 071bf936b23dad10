"""Settings of Kafka's clients that these accept and that change nothing, with the reason."""

from __future__ import annotations

from typing import Final

_KERBEROS: Final = "it is for Kerberos, by which these clients do not log in (sasl.mechanism=GSSAPI is refused)"
_BY_BROKERS: Final = "brokers check tokens by it; clients only pass them on"
_JAVA_TLS: Final = "it chooses among Java's parts for TLS, and here OpenSSL does it"
_ASSERTION: Final = "tokens are fetched by id and secret, or made by a callable; assertions are not"
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
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.oauthbearer.assertion.algorithm": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.aud": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.exp.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.iss": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.jti.include": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.sub": _ASSERTION,
    "sasl.oauthbearer.assertion.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.passphrase": _ASSERTION,
    "sasl.oauthbearer.assertion.template.file": _ASSERTION,
    "sasl.oauthbearer.clock.skew.seconds": _BY_BROKERS,
    "sasl.oauthbearer.expected.audience": _BY_BROKERS,
    "sasl.oauthbearer.expected.issuer": _BY_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _BY_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _BY_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _BY_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.url": _BY_BROKERS,
    "sasl.oauthbearer.jwt.retriever.class": "tokens come from where sasl.login.callback.handler.class says",
    "sasl.oauthbearer.jwt.validator.class": _BY_BROKERS,
    "ssl.keymanager.algorithm": _JAVA_TLS,
    "ssl.provider": _JAVA_TLS,
    "ssl.secure.random.implementation": _JAVA_TLS,
    "ssl.trustmanager.algorithm": _JAVA_TLS,
}


def why_without_effect(name: str) -> str | None:
    """Why a setting that Kafka's clients have does nothing here; None for any other name."""
    return _REASONS.get(name)


def names_without_effect() -> dict[str, str]:
    """All such names with their reasons."""
    return dict(_REASONS)
