"""Clients that connect to a listener with TLS or SASL and never say who they are."""

from __future__ import annotations

from collections.abc import Callable

from kavka.broker.network.authentication import Authentications
from kavka.broker.network.settings import NetworkSettings
from tests.support.tls_stage import TlsStage


def test_who_does_not_authenticate_in_time_is_closed() -> None:
    stage = TlsStage()
    now_ns = 0
    later: list[Callable[[], object]] = []
    settings = NetworkSettings(
        max_request_size_bytes=1,
        max_idle_ms=-1,
        send_buffer_bytes=-1,
        receive_buffer_bytes=-1,
        authentication_timeout_ms=1000,
    )
    authentications = Authentications(
        lambda: settings, stage.thread.close_connection, lambda _, look: later.append(look), lambda: now_ns
    )
    slow, quick, gone = stage.client(), stage.client(), stage.client()
    quick.shake_hands()
    for client in (slow, quick, gone):
        authentications.watch(client.connection)
    stage.thread.close_connection(gone.connection)
    now_ns = 999_000_000
    later.pop()()
    assert not slow.socket.closed
    now_ns = 1_000_000_000
    later.pop()()
    assert slow.socket.closed
    assert not quick.socket.closed
    assert later == []
