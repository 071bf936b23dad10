"""Who may connect and what they may do."""

from __future__ import annotations

from kavka.config.checks import POSITIVE, OneOf, at_least
from kavka.config.setting import Settings, setting
from kavka.config.values import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    SHORT,
    STRING,
    Password,
)


class SecuritySettings(Settings):
    """Who may connect and what they may do."""

    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The protocol by which brokers connect, where inter.broker.listener.name is not set.",
        check=OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        importance=MEDIUM,
    )
    authorizer_class_name: str = setting(
        "authorizer.class.name",
        STRING,
        "",
        "Empty: everything is allowed. kafka.security.authorizer.AclAuthorizer: as the ACLs say.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        "The SASL mechanisms clients may use.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_mechanism_inter_broker_protocol: str = setting(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        "The SASL mechanism brokers use.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_jaas_config: Password | None = setting(
        "sasl.jaas.config",
        PASSWORD,
        None,
        "Login modules with users and passwords; counts with the prefix listener.name.NAME.MECHANISM. alone.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_server_callback_handler_class: str | None = setting(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        "Of OAUTHBEARER: Kafka's class that takes unsigned tokens, or the one that checks their signatures.",
        importance=MEDIUM,
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = setting(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        "How a Kerberos principal becomes a user's name; DEFAULT: its first part, in the own realm.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_server_max_receive_size: int = setting(
        "sasl.server.max.receive.size",
        INT,
        524288,
        "The largest request before a client is authenticated.",
        importance=MEDIUM,
    )
    connections_max_reauth_ms: int = setting(
        "connections.max.reauth.ms",
        LONG,
        0,
        "How long an authenticated session lasts at most (KIP-368); 0: no limit.",
        importance=MEDIUM,
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30, "By how much a token's times may be off."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = setting(
        "sasl.oauthbearer.expected.audience", LIST, None, "Audiences one of which a token must have."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer", STRING, None, "The issuer a token must have."
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "Where the keys that sign tokens are fetched.",
        importance=MEDIUM,
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, "How often they are fetched anew."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, "The first pause after a failed fetch."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10000, "The longest pause after failed fetches."
    )
    sasl_oauthbearer_scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that holds a token's scope."
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        "sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that holds a token's subject."
    )
    ssl_client_auth: str = setting(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients must, may or need not show a certificate.",
        check=OneOf("required", "requested", "none"),
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_protocol: str = setting(
        "ssl.protocol", STRING, "TLSv1.3", "The newest TLS version used.", scope=PER_BROKER, importance=MEDIUM
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The TLS versions accepted.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        "ssl.cipher.suites",
        LIST,
        (),
        "The cipher suites accepted; empty: OpenSSL's choice.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_keystore_type: str = setting(
        "ssl.keystore.type",
        STRING,
        "JKS",
        "The format of the key store: PEM or PKCS12.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_keystore_location: str | None = setting(
        "ssl.keystore.location",
        STRING,
        None,
        "The file with the broker's key and certificate.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_keystore_password: Password | None = setting(
        "ssl.keystore.password", PASSWORD, None, "The key store's password.", scope=PER_BROKER, importance=MEDIUM
    )
    ssl_key_password: Password | None = setting(
        "ssl.key.password", PASSWORD, None, "The password of the key itself.", scope=PER_BROKER, importance=MEDIUM
    )
    ssl_keystore_key: Password | None = setting(
        "ssl.keystore.key", PASSWORD, None, "The private key itself, as PEM.", scope=PER_BROKER, importance=MEDIUM
    )
    ssl_keystore_certificate_chain: Password | None = setting(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        "The certificate chain itself, as PEM.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_truststore_type: str = setting(
        "ssl.truststore.type",
        STRING,
        "JKS",
        "The format of the trust store: PEM or PKCS12.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_truststore_location: str | None = setting(
        "ssl.truststore.location",
        STRING,
        None,
        "The file with the certificates that are trusted.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_truststore_password: Password | None = setting(
        "ssl.truststore.password", PASSWORD, None, "The trust store's password.", scope=PER_BROKER, importance=MEDIUM
    )
    ssl_truststore_certificates: Password | None = setting(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        "The trusted certificates themselves, as PEM.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "https: a server's name is checked against its certificate; empty: it is not.",
        scope=PER_BROKER,
    )
    ssl_principal_mapping_rules: str = setting(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "Rules that turn a certificate's distinguished name into a principal.",
    )
    ssl_allow_dn_changes: bool = setting(
        "ssl.allow.dn.changes", BOOLEAN, False, "Whether a new certificate may have another distinguished name."
    )
    ssl_allow_san_changes: bool = setting(
        "ssl.allow.san.changes", BOOLEAN, False, "Whether a new certificate may have other alternative names."
    )
    delegation_token_secret_key: Password | None = setting(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        "The secret by which delegation tokens are signed.",
        importance=MEDIUM,
    )
    delegation_token_master_key: Password | None = setting(
        "delegation.token.master.key",
        PASSWORD,
        None,
        "The older name of delegation.token.secret.key.",
        importance=MEDIUM,
    )
    delegation_token_max_lifetime_ms: int = setting(
        "delegation.token.max.lifetime.ms",
        LONG,
        604_800_000,
        "How long a delegation token can be renewed.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    delegation_token_expiry_time_ms: int = setting(
        "delegation.token.expiry.time.ms",
        LONG,
        86_400_000,
        "How long a delegation token lasts without renewal.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    delegation_token_expiry_check_interval_ms: int = setting(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3_600_000,
        "How often expired tokens are removed.",
        check=POSITIVE,
    )
    password_encoder_secret: Password | None = setting(
        "password.encoder.secret",
        PASSWORD,
        None,
        "The secret by which passwords among the dynamic settings are encrypted.",
        importance=MEDIUM,
    )
    password_encoder_old_secret: Password | None = setting(
        "password.encoder.old.secret",
        PASSWORD,
        None,
        "The secret used before, to read what it encrypted.",
        importance=MEDIUM,
    )
    password_encoder_cipher_algorithm: str = setting(
        "password.encoder.cipher.algorithm", STRING, "AES/CBC/PKCS5Padding", "The cipher for new passwords."
    )
    password_encoder_key_length: int = setting(
        "password.encoder.key.length", INT, 128, "The length of its key, in bits.", check=at_least(8)
    )
    password_encoder_iterations: int = setting(
        "password.encoder.iterations", INT, 4096, "The rounds in which the key is derived.", check=at_least(1024)
    )
    password_encoder_keyfactory_algorithm: str | None = setting(
        "password.encoder.keyfactory.algorithm", STRING, None, "The function that derives the key."
    )
    sasl_login_callback_handler_class: str | None = setting(
        "sasl.login.callback.handler.class",
        CLASS,
        None,
        "Where a broker's own tokens come from: Kafka's OAuthBearerLoginCallbackHandler, or "
        "OAuthBearerUnsecuredLoginCallbackHandler. Unset: sasl.oauthbearer.token.endpoint.url, else the JAAS text.",
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
        "How long before its end a broker's own token is replaced at the latest.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_login_refresh_min_period_seconds: int = setting(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        "How long to wait at least before it is replaced.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_login_refresh_window_factor: float = setting(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        "After which share of its lifetime it is replaced.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_login_refresh_window_jitter: float = setting(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        "Up to which share of its lifetime is added to that by chance.",
        scope=PER_BROKER,
        importance=MEDIUM,
    )
    sasl_login_retry_backoff_max_ms: int = setting(
        "sasl.login.retry.backoff.max.ms", LONG, 10_000, "The longest pause before a token is asked for again."
    )
    sasl_login_retry_backoff_ms: int = setting(
        "sasl.login.retry.backoff.ms", LONG, 100, "The first such pause; twice as long after each further failure."
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        "Where a broker's own tokens are fetched, by the clientId and clientSecret of its JAAS text; or a file.",
        importance=MEDIUM,
    )
