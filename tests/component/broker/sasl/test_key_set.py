"""The keys that tokens are signed with are fetched by a thread, as often as they must be and no more."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.security.sasl import key_set
from kavka.broker.security.sasl.key_reading import KeySetError
from kavka.broker.security.sasl.key_set import KeySet, shown_url
from kavka.broker.security.sasl.key_sets import KeySets
from kavka.broker.security.sasl.oauthbearer import OAuthBearer
from kavka.client.tls.contexts import server_context, tls_settings_by
from kavka.config.errors import ConfigError
from kavka.config.sasl_settings import TokenRules
from kavka.config.values import LONG_MAX, Password
from tests.support.certificates import Authority
from tests.support.processes import wait_until
from tests.support.token_issuer import Issuer

ISSUER = Issuer()
NEVER_MS = 3_600_000
TIMEOUT_S = 60


class Page:
    """A page of keys: what it answers, and how often it was asked."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        """`context`: with TLS."""
        self.body = ISSUER.jwks("rsa")
        self.status = 200
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.asked += 1
                page.gate.wait(TIMEOUT_S)
                self.send_response(page.status)
                self.send_header("Content-Length", str(len(page.body)))
                self.end_headers()
                self.wfile.write(page.body)

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}/keys?secret=of-the-url"
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.close()


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def has(keys: KeySet, name: str, algorithm: str = "RS256") -> bool:
    return keys.find(name, algorithm) is not None


def test_a_page_is_fetched_at_the_start_and_for_names_that_are_not_known_at_a_bounded_rate(page: Page) -> None:
    clock = Clock()
    keys = KeySet(page.url, NEVER_MS, 1, 10, clock)
    keys.start()
    try:
        wait_until(lambda: "rsa" in keys._keys, TIMEOUT_S, "the keys were not fetched")
        assert page.asked == 1

        page.body = ISSUER.jwks("rsa", "ec")
        assert not has(keys, "ec", "ES256")
        wait_until(lambda: has(keys, "ec", "ES256"), TIMEOUT_S, "the new key was not fetched")
        assert page.asked == 2
        for number in range(10_000):
            assert not has(keys, f"attack {number}")
        assert page.asked == 2

        clock.now_s += key_set.UNKNOWN_KEY_S
        assert not has(keys, "attack")
        wait_until(lambda: page.asked == 3, TIMEOUT_S, "the keys were not fetched again")
    finally:
        keys.stop()


def test_a_page_that_fails_is_asked_again_and_the_keys_that_are_known_stay(page: Page) -> None:
    clock = Clock()
    keys = KeySet(page.url, NEVER_MS, 1, 10, clock)
    keys.start()
    try:
        wait_until(lambda: "rsa" in keys._keys, TIMEOUT_S, "the keys were not fetched")
        page.status = 500
        has(keys, "unknown")
        wait_until(lambda: page.asked >= 4, TIMEOUT_S, "it was not tried again")
        assert has(keys, "rsa")

        page.status = 200
        page.body = ISSUER.jwks("ec")
        wait_until(lambda: has(keys, "ec", "ES256"), TIMEOUT_S, "the keys were not fetched")
        assert not has(keys, "rsa")
    finally:
        keys.stop()


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (302, b"", "302"),
        (404, b"", "404"),
        (200, b"<html>", "no JSON"),
        (200, b"[" * (key_set.MOST_BYTES + 1), "more than"),
        (200, json.dumps({"keys": []}).encode(), "no key"),
    ],
)
def test_what_a_page_answers_that_is_no_set_of_keys_is_refused(
    page: Page, status: int, body: bytes, reason: str
) -> None:
    page.status, page.body = status, body
    with pytest.raises(KeySetError, match=reason):
        KeySet(page.url, NEVER_MS, 1, 10).fetch()


@pytest.mark.parametrize("status", [200, 500])
def test_who_waits_for_the_longest_time_there_is_waits_and_fetches_for_a_name_that_is_not_known(
    page: Page, status: int
) -> None:
    page.status = status
    keys = KeySet(page.url, LONG_MAX, LONG_MAX, LONG_MAX)
    keys.start()
    try:
        wait_until(lambda: page.asked == 1, TIMEOUT_S, "nobody asked")
        if status == 200:
            wait_until(lambda: has(keys, "rsa"), TIMEOUT_S, "the keys were not fetched")
            assert not has(keys, "unknown")
            wait_until(lambda: page.asked == 2, TIMEOUT_S, "the keys were not fetched again")
        assert keys._thread.is_alive()
    finally:
        keys.stop()


def test_a_stop_waits_for_no_page_that_does_not_answer(page: Page) -> None:
    page.gate.clear()
    keys = KeySet(page.url, NEVER_MS, 1, 10)
    keys.start()
    wait_until(lambda: page.asked == 1, TIMEOUT_S, "nobody asked")

    keys.stop()

    assert not keys._thread.is_alive()


def test_an_address_is_shown_without_what_may_be_secret_in_it() -> None:
    assert shown_url("https://user:password@host:1/keys?token=secret#x") == "https://host:1/keys"


def rules(url: str) -> TokenRules:
    return TokenRules(url, NEVER_MS, 1, 10, 30, (), None, "scope", "sub")


def test_listeners_that_name_one_address_share_its_keys_and_the_last_one_ends_them(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(ISSUER.jwks())
    sets = KeySets(lambda: 0)
    first, second = (OAuthBearer(sets.tokens(rules(f"file:{file}"))) for _ in range(2))
    keys: Any = first.validator
    assert keys.keys is second.validator.keys  # type: ignore[attr-defined]  # what a validator is is known here

    sets.keep_only([second])
    assert keys.keys._thread.is_alive()
    sets.keep_only([])
    assert not keys.keys._thread.is_alive()


def test_a_file_without_keys_is_no_setting_that_can_be_served(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        KeySets(lambda: 0).tokens(rules(f"file:{tmp_path}/none.json"))


AUTHORITY, STRANGER = Authority(), Authority("A stranger's")


@contextmanager
def keys_of(url: str, **options: str) -> Iterator[KeySet]:
    sets = KeySets(lambda: 0)
    given = tuple((f"ssl.{name.replace('_', '.')}", Password(text)) for name, text in options.items())
    try:
        yield sets.tokens(rules(url)._replace(web_options=given)).keys
    finally:
        sets.keep_only([])


@contextmanager
def page_with_tls(*hosts: str) -> Iterator[Page]:
    issued = AUTHORITY.issue("keys", hosts=hosts)
    pem = Password(issued.chain_pem().decode()), Password(issued.key_pem().decode())
    settings = tls_settings_by(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": pem[0],
            "ssl.keystore.key": pem[1],
        }.get
    )
    made = Page(server_context(settings))
    try:
        yield made
    finally:
        made.close()


def test_a_page_is_trusted_by_the_login_modules_own_authorities_as_they_are_at_the_time(tmp_path: Path) -> None:
    trusted = STRANGER.write_pem(tmp_path / "trusted.pem")
    options = {"truststore_type": "PEM", "truststore_location": str(trusted)}
    with page_with_tls("127.0.0.1") as page, keys_of(page.url, **options) as keys:
        with pytest.raises(KeySetError, match="CERTIFICATE_VERIFY_FAILED"):
            keys.fetch()
        AUTHORITY.write_pem(trusted)
        keys.fetch()
        assert has(keys, "rsa")
        assert page.asked > 0
        with keys_of(page.url) as others, pytest.raises(KeySetError, match="CERTIFICATE_VERIFY_FAILED"):
            others.fetch()


def test_a_page_shows_its_own_name_whatever_the_login_module_says() -> None:
    options = {"truststore_type": "PEM", "truststore_certificates": AUTHORITY.pem().decode()}
    options["endpoint_identification_algorithm"] = ""
    with page_with_tls("other.example") as page, keys_of(page.url, **options) as keys:
        with pytest.raises(KeySetError, match="CERTIFICATE_VERIFY_FAILED"):
            keys.fetch()
        assert page.asked == 0


def test_options_by_which_no_page_could_be_trusted_are_no_setting_that_can_be_served(tmp_path: Path) -> None:
    missing = {"truststore_location": str(tmp_path / "none"), "truststore_password": "of-the-store"}
    for options in (missing, {"engine_factory_class": "com.example.Engines"}):
        unusable = keys_of("https://h/", **options)
        with pytest.raises(ConfigError, match=r"its ssl\.\* options cannot be used") as refused, unusable:
            pass
        assert "of-the-store" not in str(refused.value)
