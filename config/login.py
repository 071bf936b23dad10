"""How a broker gets the tokens that it logs in with at others."""

from __future__ import annotations

from kavka.config.setting import Settings, setting
from kavka.config.values import CLASS, DOUBLE, INT, LONG, MEDIUM, PER_BROKER, SHORT, STRING


class LoginSettings(Settings):
    """How a broker gets the tokens by which it logs in at others with OAUTHBEARER (KIP-255, KIP-768)."""

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
