"""OAUTHBEARER from settings: where the tokens come from, and the login that keeps one at hand."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from kavka.client.security.bearer.endpoint import DEFAULT_TIMEOUT_MS, Endpoint, fetch_with_patience, token_of_file
from kavka.client.security.bearer.login import TokenLogin
from kavka.client.security.bearer.refresh import RefreshSchedule
from kavka.client.security.bearer.token import (
    BearerToken,
    Claims,
    TokenError,
    extensions_of,
    read_token,
    unsecured_token,
)
from kavka.client.security.login_module import JAAS, OAUTHBEARER, login_entry
from kavka.client.security.mechanisms import BearerConversation, Mechanism
from kavka.client.security.web_trust import web_context
from kavka.config.clients.secure import SecureSettings
from kavka.config.errors import ConfigError
from kavka.config.urls import check_url
from kavka.config.values import HIDDEN, Password

URL: Final = "sasl.oauthbearer.token.endpoint.url"
HANDLER: Final = "sasl.login.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
FETCHING: Final = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    # Its place before 3.5, and until 4.
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
UNSECURED: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    f"{_PACKAGE}.OAuthBearerUnsecuredLoginCallbackHandler",
)
_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"

Retrieve = Callable[[threading.Event], BearerToken]


def bearer_login(settings: SecureSettings, name: str) -> tuple[Mechanism, TokenLogin]:
    """The mechanism, and the login behind it: to be started before the first connection, and closed after the last.

    Raises ConfigError.
    """
    options = login_entry(settings).options
    is_made, retrieve = _source(settings, options)
    try:
        extensions = extensions_of(options, "unsecuredLoginExtension_" if is_made else "extension_")
    except TokenError as failure:
        raise ConfigError(JAAS, HIDDEN, str(failure)) from None
    schedule = RefreshSchedule(
        settings.sasl_login_refresh_window_factor,
        settings.sasl_login_refresh_window_jitter,
        settings.sasl_login_refresh_min_period_seconds * 1000,
        settings.sasl_login_refresh_buffer_seconds * 1000,
    )
    login = TokenLogin(retrieve, schedule, name)
    return Mechanism(OAUTHBEARER, lambda: BearerConversation(login.token.text, extensions)), login


def _source(settings: SecureSettings, options: Mapping[str, str]) -> tuple[bool, Retrieve]:
    """Where tokens come from, and whether they are made here."""
    handler: Any = settings.sasl_login_callback_handler_class
    claims = Claims(settings.sasl_oauthbearer_scope_claim_name, settings.sasl_oauthbearer_sub_claim_name)
    if callable(handler):
        return False, partial(_called, handler, claims)
    if handler and handler not in FETCHING + UNSECURED:
        reason = f"Must be {FETCHING[0]}, {UNSECURED[0]} or a callable that returns a token's text"
        raise ConfigError(HANDLER, handler, reason)
    url = settings.sasl_oauthbearer_token_endpoint_url
    if handler in UNSECURED or (not handler and not url):
        return True, lambda _is_over: unsecured_token(options, time.time() * 1000)
    check_url(URL, url or "")
    parts = urlsplit(url or "")
    if parts.scheme == "file":
        return False, lambda _is_over: read_token(token_of_file(url or ""), claims)
    endpoint = _endpoint(settings, options, url or "", is_secure=parts.scheme == "https")
    backoff_ms, backoff_max_ms = settings.sasl_login_retry_backoff_ms, settings.sasl_login_retry_backoff_max_ms
    return False, lambda is_over: read_token(fetch_with_patience(endpoint, backoff_ms, backoff_max_ms, is_over), claims)


def _called(handler: Callable[[], str], claims: Claims, _is_over: threading.Event) -> BearerToken:
    """What users gave may fail by anything."""
    try:
        text = handler()
    except Exception as failure:
        raise TokenError(f"{HANDLER} failed by {type(failure).__name__}") from failure
    if not isinstance(text, str):
        raise TokenError(f"{HANDLER} returned no text, but {type(text).__name__}")
    return read_token(text, claims)


def _endpoint(settings: SecureSettings, options: Mapping[str, str], url: str, *, is_secure: bool) -> Endpoint:
    client_id = settings.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = settings.sasl_oauthbearer_client_credentials_client_secret
    if secret is None and options.get("clientSecret"):
        secret = Password(options["clientSecret"])
    if not client_id or secret is None:
        raise ConfigError(_SECRET, None, "Tokens are fetched by clientId and clientSecret: both must be given")
    connect_ms, read_ms = settings.sasl_login_connect_timeout_ms, settings.sasl_login_read_timeout_ms
    return Endpoint(
        url,
        client_id,
        secret,
        settings.sasl_oauthbearer_scope or options.get("scope"),
        settings.sasl_oauthbearer_header_urlencode,
        web_context(options) if is_secure else None,
        DEFAULT_TIMEOUT_MS if connect_ms is None else connect_ms,
        DEFAULT_TIMEOUT_MS if read_ms is None else read_ms,
    )
