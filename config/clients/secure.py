"""How clients make connections secure: TLS, and who they are (SASL). Brokers go by the same rows towards others."""

from __future__ import annotations

from typing import Any, Final

from kavka.config.checks import OneOf, between
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, CLASS, DOUBLE, HIGH, INT, LIST, LONG, MEDIUM, PASSWORD, SHORT, STRING, Password

_REFUSED: Final = "Names a Java class, and is refused: nothing would do what it does."


class TlsRows(Settings):
    """Of SSL and SASL_SSL."""

    ssl_cipher_suites: tuple[str, ...] | None = setting(
        "ssl.cipher.suites", LIST, (), "The cipher suites that may be used, by Java's names; empty: OpenSSL's choice."
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The TLS versions that may be used.", importance=MEDIUM
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "https: a broker's certificate must be that of the host that was asked for; empty: any trusted one will do.",
    )
    ssl_engine_factory_class: Any = setting("ssl.engine.factory.class", CLASS, None, _REFUSED)
    ssl_key_password: Password | None = setting(
        "ssl.key.password", PASSWORD, None, "The password of the private key itself.", importance=HIGH
    )
    ssl_keystore_certificate_chain: Password | None = setting(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        "The client's certificate and those above it, as PEM in place of a file.",
        importance=HIGH,
    )
    ssl_keystore_key: Password | None = setting(
        "ssl.keystore.key", PASSWORD, None, "The client's private key, as PEM in place of a file.", importance=HIGH
    )
    ssl_keystore_location: str | None = setting(
        "ssl.keystore.location",
        STRING,
        None,
        "The file with the client's private key and certificate: PKCS12, JKS or PEM.",
        importance=HIGH,
    )
    ssl_keystore_password: Password | None = setting(
        "ssl.keystore.password", PASSWORD, None, "The key store's password; PEM has none.", importance=HIGH
    )
    ssl_keystore_type: str = setting(
        "ssl.keystore.type",
        STRING,
        "JKS",
        "What the key store is. JKS and PKCS12 are told apart by content.",
        importance=MEDIUM,
    )
    ssl_protocol: str = setting(
        "ssl.protocol", STRING, "TLSv1.3", "The newest TLS version that is used.", importance=MEDIUM
    )
    ssl_truststore_certificates: Password | None = setting(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        "The certificates that are trusted, as PEM in place of a file.",
        importance=HIGH,
    )
    ssl_truststore_location: str | None = setting(
        "ssl.truststore.location",
        STRING,
        None,
        "The file with the certificates that are trusted. Unset: those that the system trusts.",
        importance=HIGH,
    )
    ssl_truststore_password: Password | None = setting(
        "ssl.truststore.password", PASSWORD, None, "The trust store's password; PEM has none.", importance=HIGH
    )
    ssl_truststore_type: str = setting(
        "ssl.truststore.type",
        STRING,
        "JKS",
        "What the trust store is. JKS and PKCS12 are told apart by content.",
        importance=MEDIUM,
    )


class LoginRows(Settings):
    """How tokens for OAUTHBEARER are fetched, and how long before their ends (KIP-255, KIP-768)."""

    sasl_login_callback_handler_class: Any = setting(
        "sasl.login.callback.handler.class",
        CLASS,
        None,
        "Where tokens come from: Kafka's OAuthBearerLoginCallbackHandler (fetched from "
        "sasl.oauthbearer.token.endpoint.url) or OAuthBearerUnsecuredLoginCallbackHandler (made of the JAAS text), by "
        "name; or a callable that returns a token's text. Unset: fetched where there is such a URL, else made.",
        importance=MEDIUM,
    )
    sasl_login_connect_timeout_ms: int | None = setting(
        "sasl.login.connect.timeout.ms", INT, None, "How long connecting to the token's endpoint may take."
    )
    sasl_login_read_timeout_ms: int | None = setting(
        "sasl.login.read.timeout.ms", INT, None, "How long its answer may take."
    )
    sasl_login_refresh_buffer_seconds: int = setting(
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        "How long before its end a token is replaced at the latest.",
        check=between(0, 3600),
    )
    sasl_login_refresh_min_period_seconds: int = setting(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        "How long to wait at least before a token is replaced.",
        check=between(0, 900),
    )
    sasl_login_refresh_window_factor: float = setting(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        "After which share of its lifetime a token is replaced.",
        check=between(0.5, 1.0),
    )
    sasl_login_refresh_window_jitter: float = setting(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        "Up to which share of its lifetime is added to that by chance.",
        check=between(0.0, 0.25),
    )
    sasl_login_retry_backoff_max_ms: int = setting(
        "sasl.login.retry.backoff.max.ms", LONG, 10_000, "The longest pause before a token is asked for again."
    )
    sasl_login_retry_backoff_ms: int = setting(
        "sasl.login.retry.backoff.ms", LONG, 100, "The first such pause; twice as long after each further failure."
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        "By what the client is known to the token's endpoint; or clientId in the JAAS text.",
        importance=MEDIUM,
    )
    sasl_oauthbearer_client_credentials_client_secret: Password | None = setting(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        "Its secret there; or clientSecret in the JAAS text.",
        importance=MEDIUM,
    )
    sasl_oauthbearer_header_urlencode: bool = setting(
        "sasl.oauthbearer.header.urlencode",
        BOOLEAN,
        False,
        "Whether id and secret are encoded as in URLs before they go into the header (RFC 6749).",
    )
    sasl_oauthbearer_scope: str | None = setting(
        "sasl.oauthbearer.scope",
        STRING,
        None,
        "The scope to ask for; or scope in the JAAS text.",
        importance=MEDIUM,
    )
    sasl_oauthbearer_scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that has a token's scope."
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        "sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that has a token's subject."
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        "Where tokens are fetched by id and secret (https, http), or the file that has one.",
        importance=MEDIUM,
    )


class SecureSettings(TlsRows, LoginRows):
    """Of every client, and of a broker towards others."""

    security_protocol: str = setting(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        "How to talk to brokers: with TLS (SSL, SASL_SSL) or without, saying who the client is (SASL_...) or not.",
        check=OneOf("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", any_case=True),
        importance=MEDIUM,
    )
    sasl_client_callback_handler_class: Any = setting(
        "sasl.client.callback.handler.class", CLASS, None, _REFUSED, importance=MEDIUM
    )
    sasl_jaas_config: Password | None = setting(
        "sasl.jaas.config",
        PASSWORD,
        None,
        'The login module and its options: `org.apache.kafka.common.security.plain.PlainLoginModule required username="'
        'alice" password="...";`, likewise scram.ScramLoginModule and oauthbearer.OAuthBearerLoginModule.',
        importance=MEDIUM,
    )
    sasl_login_class: Any = setting("sasl.login.class", CLASS, None, _REFUSED, importance=MEDIUM)
    sasl_mechanism: str = setting(
        "sasl.mechanism",
        STRING,
        "GSSAPI",
        "How the client says who it is: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER. GSSAPI is refused.",
        importance=MEDIUM,
    )
