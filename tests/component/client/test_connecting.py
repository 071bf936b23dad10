"""Names, addresses, versions, back-off: what comes before the first request."""

import socket
import threading
from functools import partial
from typing import Any

import pytest

from kavka.client import (
    DisconnectedError,
    UnsupportedVersionError,
)
from kavka.protocol.messages.heartbeat import HeartbeatResponse
from kavka.protocol.messages.metadata import MetadataRequest
from tests.support.client_line import HEARTBEAT, TIMEOUT_S, Clock, Line
from tests.support.processes import free_port
from tests.support.scripted_broker import ScriptedBroker


def test_versions_are_discovered_before_the_first_request(negotiating: Line) -> None:
    assert not negotiating.client.ready(negotiating.node)
    visitor = negotiating.broker.accept()
    negotiating.client.poll(0)
    assert not negotiating.client.ready(negotiating.node)
    threading.Thread(target=visitor.serve_versions, args=({12: (0, 1)},)).start()
    negotiating.until(lambda: negotiating.client.ready(negotiating.node))

    negotiating.send()

    assert visitor.asked().header.api_version == 1
    with pytest.raises(UnsupportedVersionError):
        negotiating.send(versions=(2, 4))
    with pytest.raises(UnsupportedVersionError):
        negotiating.send(MetadataRequest(topics=None))


def test_a_refused_connection_is_tried_again_after_its_back_off_only(timed: Line, clock: Clock) -> None:
    timed.broker.stop_listening()
    for failures, low, high in ((1, 800, 1200), (2, 1600, 2400), (3, 3200, 4800)):
        assert not timed.client.ready(timed.node)
        timed.until(partial(has_failed, timed, failures))
        assert low <= timed.client.delay_ms(timed.node) <= high
        assert not timed.client.ready(timed.node)
        assert timed.client.failures(timed.node) == failures, "nothing is tried during a back-off"
        clock.now_ms += timed.client.delay_ms(timed.node)
    assert timed.client.counts.failed_connects == 3


def has_failed(line: Line, times: int) -> bool:
    return line.client.failures(line.node) == times


def test_a_broker_that_never_tells_its_versions_is_given_up(negotiating: Line, clock: Clock) -> None:
    negotiating.client.ready(negotiating.node)
    visitor = negotiating.broker.accept()
    negotiating.until(lambda: negotiating.client.counts.sent_bytes)
    visitor.asked()
    clock.now_ms += 7_900
    negotiating.client.poll(0)
    assert negotiating.client.counts.failed_connects == 0
    clock.now_ms += 4_200
    negotiating.client.poll(0)
    assert negotiating.client.counts.failed_connects == 1
    assert visitor.closed_by_peer()


def test_lanes_are_connections_of_their_own(line: Line) -> None:
    one = line.connect()
    other_lane = line.node._replace(lane="control")
    line.client.ready(other_lane)
    other = line.broker.accept()
    line.until(lambda: line.client.ready(other_lane))
    line.send()
    line.client.send(other_lane, HEARTBEAT, line.answers.append)
    asked = other.asked()
    other.answer(asked, HeartbeatResponse(error_code=3))
    assert line.one_answer().error_code == 3, "what waits on one lane holds up nothing on another"
    one.socket.close()
    assert isinstance(line.one_answer(), DisconnectedError)
    assert line.client.ready(other_lane)


def test_a_node_that_moved_is_connected_to_at_its_new_place(line: Line) -> None:
    visitor = line.connect()
    line.send()
    with ScriptedBroker(line.node.id) as elsewhere:
        line.client.ready(elsewhere.node)
        assert isinstance(line.one_answer(), DisconnectedError)
        visitor.asked()
        assert visitor.closed_by_peer()
        line.until(lambda: line.client.ready(elsewhere.node))
        elsewhere.accept()


def test_a_name_is_looked_up_without_making_the_owner_wait(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    look_up = __import__("socket").getaddrinfo

    def slowly(host: str, *arguments: Any, **options: Any) -> Any:
        if not options.get("flags"):
            assert release.wait(TIMEOUT_S)
        return look_up(host, *arguments, **options)

    monkeypatch.setattr("socket.getaddrinfo", slowly)
    named = line.node._replace(id=7, host="localhost")
    others = set(threading.enumerate())
    assert not line.client.ready(named)
    assert not line.client.ready(named._replace(lane="another"))
    assert sum(thread.name == "lookup-localhost" for thread in set(threading.enumerate()) - others) == 1
    line.connect()
    line.send()
    release.set()

    line.until(lambda: line.client.ready(named))


def test_a_close_waits_for_names_that_are_being_looked_up(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not for a resolver that hangs: that cannot be broken off."""
    begun, closes, hangs = threading.Event(), threading.Event(), threading.Event()

    def slowly(host: str, *_: Any, **options: Any) -> Any:
        if not options.get("flags"):
            if host == "hangs.example":
                hangs.wait(TIMEOUT_S)
            begun.set()
            closes.wait(TIMEOUT_S)
        raise socket.gaierror("no such name")

    monkeypatch.setattr("socket.getaddrinfo", slowly)
    join = threading.Thread.join

    def joined(thread: threading.Thread, timeout: float | None = None) -> None:
        closes.set()
        # A busy machine may not run the thread at once.
        join(thread, TIMEOUT_S if thread.name == "lookup-slow.example" else timeout)

    others = set(threading.enumerate())
    for number, host in enumerate(("slow.example", "hangs.example")):
        line.client.ready(line.node._replace(id=7 + number, host=host))
    assert begun.wait(TIMEOUT_S)
    slow, hanging = sorted(set(threading.enumerate()) - others, key=lambda thread: thread.name, reverse=True)
    monkeypatch.setattr("threading.Thread.join", joined)
    line.client.close()
    assert (slow.is_alive(), hanging.is_alive()) == (False, True)
    hangs.set()
    join(hanging, TIMEOUT_S)


def test_a_name_that_is_none_fails_like_a_refused_connection(line: Line) -> None:
    unknown = line.node._replace(host="no-such-host.invalid")
    assert not line.client.ready(unknown)
    line.until(lambda: line.client.failures(unknown))
    odd = line.node._replace(id=8, host="x" * 70 + ".invalid")
    assert not line.client.ready(odd)
    line.until(lambda: line.client.failures(odd))


@pytest.mark.parametrize("dead", [1, 3])
def test_all_addresses_of_a_name_are_tried(line: Line, monkeypatch: pytest.MonkeyPatch, dead: int) -> None:
    """Where nothing listens on the first, the next one is taken; what was looked up is not looked up again for it."""
    look_up = socket.getaddrinfo
    lookups: list[str] = []

    def several(host: str, port: int, *arguments: Any, **options: Any) -> Any:
        if host != "cluster.example":
            return look_up(host, port, *arguments, **options)
        if options.get("flags"):
            raise socket.gaierror("no number")
        lookups.append(host)
        gone = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", free_port()))
        return [gone] * dead + look_up("127.0.0.1", port, *arguments, **options)

    monkeypatch.setattr("socket.getaddrinfo", several)
    named = line.node._replace(id=7, host="cluster.example")
    line.until(lambda: line.client.ready(named))
    assert line.client.counts.failed_connects == dead
    assert lookups == ["cluster.example"]
    line.broker.accept().socket.close()
    line.until(lambda: line.client.counts.disconnects == 1)
    line.until(lambda: line.client.ready(named))
    assert len(lookups) == 2, "the name may mean others by now"


def test_a_forgotten_node_leaves_nothing_behind(line: Line) -> None:
    line.connect()
    line.send()
    line.client.forget(line.node)
    assert isinstance(line.one_answer(), DisconnectedError)
    assert line.client._links == {}
    assert line.client.failures(line.node) == 0
