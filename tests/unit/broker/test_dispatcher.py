"""Whatever a frame holds and a handler does: an answer or a closed connection, never a dead thread."""

import ast
import errno
import importlib
import inspect
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.requests import request_runner
from kavka.broker.requests.dispatcher import CloseConnection
from kavka.broker.requests.handling import ON_DEMAND, Handler, HandlerOnDemand, load_handlers, shown_versions
from kavka.broker.requests.turns import Turns
from kavka.cluster.features import FinalizedFeatures
from kavka.protocol import api
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.produce import ProduceRequest
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.message_values import STYLES, message_value
from tests.support.network_stage import HEARTBEAT, SIZE, FakeSocket, Stage, answers, request

UNKNOWN_SERVER_ERROR = -1


def framed(frame: bytes) -> bytes:
    return SIZE.pack(len(frame)) + frame


def served(*frames: bytes, stage: Stage | None = None) -> tuple[FakeSocket, Stage]:
    """What became of these frames, sent on one connection."""
    stage = stage or Stage()
    _, socket = stage.connect()
    socket.input += b"".join(frames)
    stage.settle()
    return socket, stage


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        encode_request_header(HEARTBEAT, 3, 1, "c")[:7],
        encode_request_header(HEARTBEAT, 3, 1, "c"),
        encode_request_header(999, 0, 1, "c"),
        encode_request_header(HEARTBEAT, 99, 1, "c"),
        encode_request_header(HEARTBEAT, 3, 1, "c") + b"\x7f\xff",
    ],
    ids=["empty", "one byte", "half a header", "no body", "unknown key", "unknown version", "lying length"],
)
def test_a_frame_that_cannot_be_read_closes_the_connection(frame: bytes) -> None:
    socket, stage = served(request(1), framed(frame), request(2))

    assert (answers(socket.taken), socket.closed) == ([(1, 0)], True)
    assert (stage.ran, len(stage.rejected)) == ([1], 1)


def test_errors_of_handlers_become_answers_and_the_next_request_runs() -> None:
    socket, _ = served(request(1, "fail"), request(2, "crash"), request(3))

    assert answers(socket.taken) == [
        (1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (2, UNKNOWN_SERVER_ERROR),
        (3, 0),
    ]


@pytest.mark.parametrize("kind", ["later", "hold"])
@pytest.mark.parametrize(
    ("error", "code"), [(BrokerError(ErrorCode.NOT_CONTROLLER), 41), (ZeroDivisionError(), UNKNOWN_SERVER_ERROR)]
)
def test_a_promise_that_fails_is_answered_like_a_handler_that_raises(kind: str, error: Exception, code: int) -> None:
    socket, stage = served(request(1, kind), request(2))

    stage.promises.pop().fail(error)
    stage.settle()

    assert answers(socket.taken) == [(1, code), (2, 0)]


def test_a_promise_is_answered_once() -> None:
    socket, stage = served(request(1, "later"))
    promise = stage.promises.pop()

    assert promise.complete(HeartbeatResponse(error_code=0))
    assert not promise.complete(HeartbeatResponse(error_code=1))
    assert not promise.fail(ZeroDivisionError())

    assert answers(socket.taken) == [(1, 0)]


def test_a_promise_that_is_kept_after_its_connection_closed_harms_nobody() -> None:
    socket, stage = served(request(1, "hold"))
    (connection,) = stage.thread.connections.values()
    stage.thread.close_connection(connection)

    stage.promises.pop().complete(HeartbeatResponse(error_code=0))
    stage.settle()

    assert (bytes(socket.taken), stage.ran) == (b"", [1])


def handler_with(function: Any, error_answer: Any = None) -> dict[int, Handler]:
    request_class = api.spec(HEARTBEAT).request_class
    return {HEARTBEAT: Handler(request_class, (0, 4), 0, function, error_answer)}


def test_an_answer_that_cannot_be_encoded_closes_the_connection_and_nothing_follows() -> None:
    def handle(received: Any, context: Any, _services: Any) -> Any:
        return HeartbeatResponse(error_code=1 << 40 if context.correlation_id == 2 else 0)

    socket, _ = served(request(1), request(2), request(3), stage=Stage(handlers=handler_with(handle)))

    assert (answers(socket.taken), socket.closed) == ([(1, 0)], True)


def test_a_handler_can_close_the_connection() -> None:
    def handle(received: Any, context: Any, _services: Any) -> Any:
        raise CloseConnection("no answer")

    stage = Stage(max_bytes=1 << 30, handlers=handler_with(handle))
    socket, _ = served(request(1, pad=300_000), stage=stage)

    assert (bytes(socket.taken), socket.closed, stage.queue._charged_bytes) == (b"", True, 0)


def test_an_error_without_an_answer_closes_the_connection() -> None:
    """What acks=0 promises: no answer, but a closed connection when something went wrong."""

    def handle(received: Any, context: Any, _services: Any) -> Any:
        raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS)

    stage = Stage(handlers=handler_with(handle, error_answer=lambda *_: None))
    socket, _ = served(request(1), request(2), stage=stage)

    assert (bytes(socket.taken), socket.closed) == (b"", True)


def test_a_handler_may_return_an_answer_that_is_encoded_already() -> None:
    def handle(received: Any, context: Any, _services: Any) -> Any:
        return encode(HeartbeatResponse(error_code=5), context.api_version)

    socket, _ = served(request(1), stage=Stage(handlers=handler_with(handle)))

    assert answers(socket.taken) == [(1, 5)]


@pytest.mark.parametrize("version", [5, 99, 32767])
@pytest.mark.parametrize("body", [b"", b"\x02a\x02b\0", b"\xff" * 20])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(version: int, body: bytes) -> None:
    header = bytearray(encode_request_header(18, 3, 7, "c"))
    header[2:4] = version.to_bytes(2, "big")
    socket, _ = served(framed(bytes(header) + body), stage=Stage(handlers=load_handlers()))

    response = decode(ApiVersionsResponse, 0, memoryview(bytes(socket.taken))[8:])
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.max_version) for row in response.api_keys] == [(18, 4)]


@pytest.mark.parametrize(
    ("version", "supported"), [(3, set()), (4, {("group.version", 0, 1), ("transaction.version", 0, 2)})]
)
def test_api_versions_lists_every_handler_and_the_features(version: int, supported: set[Any]) -> None:
    features = FinalizedFeatures({"transaction.version": 2, "group.version": 0}, 5)
    services: Any = SimpleNamespace(
        features=features,
        generation=object(),
        quotas=None,
        served_versions=shown_versions(load_handlers()),
        turns=Turns(),
    )
    stage = Stage(handlers=load_handlers(), services=services)
    body = encode(ApiVersionsRequest(client_software_name="n", client_software_version="1"), version)
    socket, _ = served(framed(encode_request_header(18, version, 7, "c") + body), stage=stage)

    response = decode(ApiVersionsResponse, version, memoryview(bytes(socket.taken))[8:])

    assert {row.api_key for row in response.api_keys} == set(load_handlers())
    assert {(row.name, row.min_version, row.max_version) for row in response.supported_features} == supported
    assert response.finalized_features_epoch == 5
    assert [(row.name, row.max_version_level) for row in response.finalized_features] == [("transaction.version", 2)]


def test_handlers_that_are_imported_on_demand_are_known_as_they_are() -> None:
    at_once, later = load_handlers(), load_handlers(at_once=False)

    assert shown_versions(later) == shown_versions(at_once)
    for key in ON_DEMAND:
        handler = later[key]
        assert isinstance(handler, HandlerOnDemand)
        assert handler.ready() is at_once[key]
        for name in ("api_key", "min_version", "max_version", "is_small", "in_clusters"):
            assert getattr(handler, name) == getattr(at_once[key], name), (key, name)
    assert all(at_once[key] is handler for key, handler in later.items() if key not in ON_DEMAND)


@pytest.mark.parametrize(
    "failure", [ModuleNotFoundError("gone"), OSError(errno.EMFILE, "Too many open files"), SyntaxError("half written")]
)
def test_an_api_that_cannot_be_imported_closes_who_asks_for_it_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    def refuse(_: str) -> None:
        raise failure

    monkeypatch.setattr(importlib, "import_module", refuse)
    key = api.ApiKey.DESCRIBE_ACLS
    stage = Stage(handlers={key: HandlerOnDemand(key)})
    socket, _ = served(framed(encode_request_header(key, 3, 7, "c")), stage=stage)

    assert (bytes(socket.taken), socket.closed, list(stage.deaths)) == (b"", True, [])
    assert "describe_acls cannot be loaded" in stage.rejected[-1]
    assert "an API cannot be loaded" in caplog.text


def test_who_runs_requests_imports_nothing_meanwhile() -> None:
    # Where all descriptors are in use that fails, and there it would end the thread.
    functions = [
        each for each in ast.walk(ast.parse(inspect.getsource(request_runner))) if isinstance(each, ast.FunctionDef)
    ]
    assert functions
    assert not [each for function in functions for each in ast.walk(function) if isinstance(each, ast.ImportFrom)]


def test_strange_frames_for_every_api_never_stop_the_threads(tmp_path: Path) -> None:
    """What the decoder lets through reaches the real handlers; those whose services are missing here fail, no more."""
    core = BrokerCore(tmp_path)
    core.create("visits")
    rng = random.Random(1)
    for key, handler in sorted(load_handlers(in_cluster=True).items()):
        for version in {handler.min_version, handler.max_version}:
            header = encode_request_header(key, version, 1, "c")
            for _ in range(15):
                core.ask(header + rng.randbytes(rng.randrange(60)))
            for style in STYLES:
                core.ask(header + encode(message_value(handler.request_class, version, style), version))
    good = produce_frame(9, 1, {("visits", 0): b"x" * 80})
    for _ in range(300):
        changed = bytearray(good)
        changed[rng.randrange(len(good))] = rng.randrange(256)
        core.ask(bytes(changed))

    assert not core.stage.deaths
    assert core.stage.thread.waiting_count == 0
    core.close()


def test_a_refusal_of_the_whole_request_can_be_said_in_every_version() -> None:
    # What its version has no place for would close the connection in place of an answer.
    def refuse(received: Any, context: Any, _services: Any) -> Any:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "why")

    unanswered = set()
    for key, handler in load_handlers(in_cluster=True).items():
        versions = (handler.min_version, handler.max_version)
        refusing = Handler(handler.request_class, versions, versions[0], refuse, handler.error_answer)
        for version in range(versions[0], versions[1] + 1):
            asked = message_value(handler.request_class, version, "full")
            if isinstance(asked, ProduceRequest):
                asked.acks = 1
            frame = encode_request_header(key, version, 1, "c") + encode(asked, version)
            socket, _ = served(framed(frame), stage=Stage(max_bytes=1 << 30, handlers={key: refusing}))
            if not socket.taken:
                unanswered.add(handler.request_class.__name__)

    # Errors of these are their partitions', which their handlers answer one by one.
    assert unanswered <= {"DeleteRecordsRequest", "ListOffsetsRequest", "OffsetForLeaderEpochRequest"}
