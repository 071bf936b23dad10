"""Tokens fetched over HTTP: who is asked for them, how often, and what is told when none comes."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kavka.client.api_errors import SaslAuthenticationError
from kavka.client.security.bearer.endpoint import Endpoint, fetch, fetch_with_patience
from kavka.client.security.bearer.login import TokenLogin
from kavka.client.security.bearer.refresh import RefreshSchedule
from kavka.client.security.bearer.token import BearerToken, TokenError
from kavka.client.security.login_module import BEARER_MODULE
from kavka.client.security.opening import open_security
from kavka.config.clients.loading import secure_settings
from kavka.config.values import Password
from tests.support.processes import wait_until

SECRET = "s3cret:of/client"
TIMEOUT_S = 60.0


def token(ends_s: float = 4e9, **claims: Any) -> str:
    parts = [{"alg": "none"}, {"sub": "alice", "exp": ends_s, **claims}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, ""])


class Asked(NamedTuple):
    """A request that came."""

    path: str
    authorization: str
    body: str


class Page:
    """An endpoint that answers as it is told; the last answer again and again."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: list[tuple[int, bytes]] = [(200, json.dumps({"access_token": token()}).encode())]
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                page.asked.append(Asked(self.path, self.headers["Authorization"], body))
                status, answer = page.answers[0] if len(page.answers) == 1 else page.answers.pop(0)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_arguments: object) -> None:
                """To nobody."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/token?realm=x"

    def endpoint(self, **others: Any) -> Endpoint:
        return Endpoint(self.url, "us", Password(SECRET), **others)


def test_a_time_limit_that_no_socket_takes_is_told_as_such(page: Page) -> None:
    for limits in ({"connect_timeout_ms": -1}, {"read_timeout_ms": -1}, {"connect_timeout_ms": 1e300}):
        with pytest.raises(TokenError, match=r"127\.0\.0\.1"):
            fetch(page.endpoint(**limits))


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


def test_a_token_is_asked_for_by_id_and_secret(page: Page) -> None:
    assert fetch(page.endpoint(scope="a b")) == token()
    assert fetch(page.endpoint(urlencodes=True)) == token()
    plain, encoded = (base64.b64decode(each.authorization.removeprefix("Basic ")).decode() for each in page.asked)
    assert (plain, encoded) == (f"us:{SECRET}", "us:s3cret%3Aof%2Fclient")
    assert page.asked[0].path == "/token?realm=x"
    assert [each.body for each in page.asked] == [
        "grant_type=client_credentials&scope=a+b",
        "grant_type=client_credentials",
    ]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b'{"error":"invalid_client","error_description":"who is that"}', "401: invalid_client - who is that"),
        (400, b"\xff" * 100, "answered 400$"),
        (302, b"", "answered 302$"),
        (200, b"not json", "without an access_token"),
        (200, b'{"access_token": 7}', "without an access_token"),
        (200, b"[" * 100_000, "without an access_token"),
    ],
)
def test_what_is_no_token_is_told_without_the_secret(page: Page, status: int, body: bytes, expected: str) -> None:
    page.answers = [(status, body)]
    with pytest.raises(TokenError, match=expected) as caught:
        fetch(page.endpoint())
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(page.endpoint())


def test_an_endpoint_that_is_busy_is_asked_again_and_one_that_refuses_is_not(page: Page) -> None:
    page.answers.insert(0, (503, b""))
    page.answers.insert(0, (500, b""))
    assert fetch_with_patience(page.endpoint(), 1, 60_000, threading.Event()) == token()
    assert len(page.asked) == 3
    page.answers = [(403, b"")]
    with pytest.raises(TokenError):
        fetch_with_patience(page.endpoint(), 1, 60_000, threading.Event())
    assert len(page.asked) == 4


def test_patience_ends(page: Page) -> None:
    page.answers = [(503, b"")]
    with pytest.raises(TokenError, match="answered 503"):
        fetch_with_patience(page.endpoint(), 1, 5, threading.Event())


def settings(**others: Any) -> Any:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    options = f'{BEARER_MODULE} required clientId="us" clientSecret="{SECRET}";'
    return secure_settings({**given, "sasl.jaas.config": options, **others})


def test_a_client_has_its_first_token_when_it_is_made_or_is_not_made(page: Page) -> None:
    security = open_security(settings(**{"sasl.oauthbearer.token.endpoint.url": page.url}), "test")
    mechanism = security.mechanism()
    assert mechanism is not None
    assert token().encode() in mechanism.begin().first()
    security.close()
    page.answers = [(401, b"")]
    with pytest.raises(SaslAuthenticationError, match="answered 401"):
        open_security(settings(**{"sasl.oauthbearer.token.endpoint.url": page.url}), "test")


@pytest.mark.parametrize("source", ["file", "callable"])
def test_tokens_may_come_from_a_file_or_a_function(source: str, tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text(token() + "\n")
    url = {"sasl.oauthbearer.token.endpoint.url": path.as_uri()}
    others: dict[str, Any] = url if source == "file" else {"sasl.login.callback.handler.class": token}
    security = open_security(settings(**others), "test")
    mechanism = security.mechanism()
    assert mechanism is not None
    assert token().encode() in mechanism.begin().first()
    security.close()


def failing(error: Exception) -> Callable[[], str]:
    def fails() -> str:
        raise error

    return fails


def test_a_function_that_fails_is_no_token_and_shows_nothing_of_it() -> None:
    for given in (failing(RuntimeError(SECRET)), lambda: 7):
        with pytest.raises(SaslAuthenticationError) as caught:
            open_security(settings(**{"sasl.login.callback.handler.class": given}), "test")
        assert SECRET not in str(caught.value)


def test_a_token_is_replaced_before_its_end_and_kept_while_there_is_no_other() -> None:
    outcomes: list[BearerToken | TokenError] = [BearerToken("first", 0, 1_000), TokenError("busy")]
    asked = threading.Event()

    def retrieve(_is_over: threading.Event) -> BearerToken:
        outcome = outcomes.pop(0) if outcomes else BearerToken("last", 0, 1e15)
        if isinstance(outcome, TokenError):
            asked.set()
            raise outcome
        return outcome

    clock_ms = [0.0]
    schedule = RefreshSchedule(1.0, 0.0, 0, 0)
    login = TokenLogin(retrieve, schedule, "test", lambda: clock_ms[0])
    login.start()
    clock_ms[0] = 1_000.0
    assert asked.wait(TIMEOUT_S)
    assert login.token.text == "first"
    clock_ms[0] = 20_000.0
    login.close()
    wait_until(lambda: not login._thread.is_alive(), TIMEOUT_S, lambda: "the login's thread goes on")
