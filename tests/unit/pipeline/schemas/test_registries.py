"""Schemas from a registry: asked for once, waited for while nobody can say, bounded in all that comes back."""

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from kavka.pipeline.schemas.errors import SchemaMissingError, SchemaUnavailableError, SchemaUnusableError
from kavka.pipeline.schemas.registry import client
from kavka.pipeline.schemas.registry.catalogue import Catalogue
from kavka.pipeline.schemas.registry.client import HttpRegistry
from kavka.pipeline.schemas.registry.directory import DirectoryRegistry
from kavka.pipeline.schemas.registry.schema import RegisteredSchema
from kavka.pipeline.schemas.settings import RegistrySettings

STRING = {"schema": '"string"'}


class Served:
    """What a registry answers, and what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""

    def answer(self, path: str, document: Any, status: int = 200, **headers: str) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.answers[path] = (status, body, headers)


@contextmanager
def serving() -> Iterator[Served]:
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.path, self.headers["Authorization"]))
            missing = (404, b'{"error_code":40403}', dict[str, str]())
            status, body, headers = served.answers.get(self.path, missing)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_ids_and_subjects_are_asked_for_with_user_and_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "geheim")
    with serving() as served:
        served.answer("/base/schemas/ids/7", STRING | {"references": [{"name": "n", "subject": "s", "version": 2}]})
        served.answer("/base/subjects/a%2Fb%20c/versions/latest", STRING | {"id": 9, "schemaType": "PROTOBUF"})
        registry = HttpRegistry(
            RegistrySettings(f"{served.url}/base/", username="me", password="${env:REGISTRY_PASSWORD}")
        )

        assert registry.by_id(7) == RegisteredSchema(7, "AVRO", '"string"', (("n", "s", 2),))  # type: ignore[arg-type]  # a tuple equals a Reference
        assert registry.by_version("a/b c", "latest") == RegisteredSchema(9, "PROTOBUF", '"string"')
        assert {said for _, said in served.asked} == {"Basic " + base64.b64encode(b"me:geheim").decode()}


def test_a_redirect_is_not_followed() -> None:
    with serving() as served, serving() as elsewhere:
        elsewhere.answer("/schemas/ids/7", STRING)
        served.answer("/schemas/ids/7", b"", 302, Location=f"{elsewhere.url}/schemas/ids/7")
        with pytest.raises(SchemaUnavailableError, match="redirect"):
            HttpRegistry(RegistrySettings(served.url)).by_id(7)
        assert elsewhere.asked == []


def test_only_a_registrys_own_answer_says_that_a_schema_is_missing() -> None:
    with serving() as served:
        registry = HttpRegistry(RegistrySettings(served.url))
        with pytest.raises(SchemaMissingError):
            registry.by_id(1)
        served.answer("/schemas/ids/2", b"<html>", 404)
        with pytest.raises(SchemaUnavailableError, match="status 404") as caught:
            registry.by_id(2)
        assert not isinstance(caught.value, SchemaMissingError)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"["),
        (200, b"[]"),
        (200, b'{"schema":5}'),
        (200, b'{"schema":"s","references":[{}]}'),
        (200, b'{"schema":"s","references":[{"name":"n","subject":"s","version":"x"}]}'),
        (200, b"[" * 100_000),
        (200, b'{"schema":"' + b"x" * 5000 + b'"}'),
        (500, b"{}"),
        (401, b"{}"),
        (404, b'{"error_code":[1]}'),
    ],
)
def test_any_other_answer_is_none(status: int, body: bytes) -> None:
    with serving() as served:
        served.answer("/schemas/ids/7", body, status)
        with pytest.raises(SchemaUnavailableError) as caught:
            HttpRegistry(RegistrySettings(served.url, max_bytes=4000)).by_id(7)
        assert not isinstance(caught.value, SchemaMissingError)


def test_nobody_there_is_unavailable() -> None:
    with serving() as served:
        url = served.url
    with pytest.raises(SchemaUnavailableError, match="cannot be asked"):
        HttpRegistry(RegistrySettings(url, timeout_ms=5000)).by_id(7)


@pytest.mark.parametrize("head", [b"H", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"])
def test_a_registry_that_answers_byte_by_byte_is_given_up_in_time(head: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        is_over = Event()

        def dribble() -> None:
            with server.accept()[0] as client:
                client.sendall(head)
                while not is_over.wait(0.02):
                    with suppress(OSError):
                        client.sendall(b"x")

        thread = Thread(target=dribble)
        thread.start()
        stack.callback(thread.join)
        stack.callback(is_over.set)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SchemaUnavailableError, match="answers too slowly"):
            HttpRegistry(RegistrySettings(url, timeout_ms=300)).by_id(7)


def test_one_that_says_nothing_is_too_slow_whichever_limit_is_over_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit's thread may come late on a busy machine: the connection's own wait ends as the same."""
    monkeypatch.setattr(client._Limit, "_watch", lambda limit: limit._done.wait(60))
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SchemaUnavailableError, match="answers too slowly"):
            HttpRegistry(RegistrySettings(url, timeout_ms=50)).by_id(7)


def test_a_directory_has_the_same_documents(tmp_path: Path) -> None:
    folder = tmp_path / "a%2Fb"
    folder.mkdir()
    for version in (1, 2, 10):
        (folder / f"{version}.json").write_text(json.dumps(STRING | {"id": 100 + version}))
    registry = DirectoryRegistry(str(tmp_path))
    assert registry.by_id(102).id == 102
    assert registry.by_version("a/b", "latest").id == 110
    assert registry.by_version("a/b", 1).id == 101
    with pytest.raises(SchemaMissingError):
        registry.by_id(5)
    with pytest.raises(SchemaMissingError):
        registry.by_version("a/b", 3)
    with pytest.raises(SchemaMissingError):
        registry.by_version("c", "latest")
    (folder / "11.json").write_text("{")
    with pytest.raises(SchemaUnavailableError):
        registry.by_version("a/b", "latest")


class Shelf:
    """A registry with failures first."""

    def __init__(self, *schemas: RegisteredSchema, failures: int = 0) -> None:
        self.schemas = {schema.id: schema for schema in schemas}
        self.failures = failures
        self.asked: list[int] = []

    def by_id(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        if self.failures:
            self.failures -= 1
            raise SchemaUnavailableError("away")
        if schema_id not in self.schemas:
            raise SchemaMissingError(f"no {schema_id}")
        return self.schemas[schema_id]

    def by_version(self, subject: str, version: int | str) -> RegisteredSchema:
        return self.by_id(int(subject))


def schema(number: int, *needs: int) -> RegisteredSchema:
    from kavka.pipeline.schemas.registry.schema import Reference

    return RegisteredSchema(number, "AVRO", f"text {number}", tuple(Reference(f"n{n}", str(n), 1) for n in needs))


def test_a_batch_waits_longer_and_longer_until_the_registry_answers() -> None:
    shelf = Shelf(schema(7), failures=9)
    pauses: list[float] = []
    told: list[str] = []
    catalogue = Catalogue(shelf, lambda seconds: pauses.append(seconds) or False, told.append)  # type: ignore[func-returns-value]  # append gives None

    catalogue.load([7])
    catalogue.load([7])

    assert catalogue.known[7].text == "text 7"
    assert len(shelf.asked) == 10
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert told == ["away"] * 9
    assert (catalogue.waits.count, catalogue.waits.seconds, catalogue.waits.reason) == (9, sum(pauses), None)


def test_an_unknown_id_is_waited_for_unless_nobody_wants_to() -> None:
    shelf = Shelf()

    def comes_later(_: float) -> bool:
        shelf.schemas[7] = schema(7)
        return False

    catalogue = Catalogue(shelf, comes_later)
    catalogue.load([8, 7], wait_for_unknown=False)
    assert catalogue.unknown.keys() == {8, 7}
    catalogue.load([7])
    catalogue.load([8], wait_for_unknown=False)
    assert catalogue.unknown == {8: "the registry has no schema with id 8"}
    assert catalogue.known.keys() == {7}
    assert catalogue.refused == {}
    assert shelf.asked == [8, 7, 7, 7]


def test_an_unknown_id_is_asked_for_again_by_and_by_as_dead_letters_come_again() -> None:
    shelf = Shelf()
    clock_s = [0.0]
    catalogue = Catalogue(shelf, now_s=lambda: clock_s[0])
    catalogue.load([7], wait_for_unknown=False)
    shelf.schemas[7] = schema(7)
    for clock_s[0], asked in ((59.0, [7]), (60.0, [7, 7])):
        catalogue.forget_unknown()
        catalogue.load([7], wait_for_unknown=False)
        assert shelf.asked == asked
    assert catalogue.known.keys() == {7}
    assert catalogue.unknown == {}


def test_a_wait_ends_when_it_is_stopped() -> None:
    catalogue = Catalogue(Shelf())
    catalogue.stop()
    with pytest.raises(SchemaUnavailableError, match="stopped"):
        catalogue.load([7])


def test_what_a_schema_refers_to_comes_before_it() -> None:
    shelf = Shelf(schema(1, 2, 3), schema(2, 3), schema(3))
    catalogue = Catalogue(shelf)
    catalogue.load([1])
    assert catalogue.known[1].needed == (("n3", "text 3"), ("n2", "text 2"))
    assert sorted(shelf.asked) == [1, 2, 3]


def test_a_circle_of_references_makes_values_bad_and_not_the_batch() -> None:
    shelf = Shelf(schema(1, 2), schema(2, 1))
    catalogue = Catalogue(shelf)
    catalogue.load([1])
    assert "circle" in catalogue.refused[1]
    with pytest.raises(SchemaUnusableError):
        catalogue.version("1", "latest")
