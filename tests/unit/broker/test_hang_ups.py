"""Clients that leave are told of by the connection that is theirs, and descriptors are given back."""

import os
import select
import socket
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from kavka.broker.network.hang_ups import HangUps
from tests.support.network_stage import Stage


def test_a_closed_connection_that_a_child_process_still_holds_is_not_taken_for_the_next() -> None:
    told: list[Any] = []
    watched = HangUps(told.append, told.append)
    first_client, first = socket.socketpair()
    next_client, following = socket.socketpair()
    earlier: Any = SimpleNamespace(socket=first)
    watched.watch(earlier)
    number = first.fileno()
    # What a fork leaves in the child.
    inherited = os.dup(number)
    watched.forget(earlier)
    first.close()
    os.dup2(following.fileno(), number)
    with (
        socket.socket(fileno=inherited),
        closing(watched),
        socket.socket(fileno=number) as same_number,
        following,
        next_client,
    ):
        later: Any = SimpleNamespace(socket=same_number)
        watched.watch(later)
        watched.look()

        first_client.close()
        watched.look()
        assert told == []

        next_client.close()
        watched.look()
        assert told == [later]


def test_a_network_thread_that_cannot_be_made_leaves_no_loop_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[uvloop.Loop] = []
    new_event_loop = uvloop.new_event_loop

    def noted() -> uvloop.Loop:
        loops.append(new_event_loop())
        return loops[-1]

    def refused() -> select.epoll:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(uvloop, "new_event_loop", noted)
    monkeypatch.setattr(select, "epoll", refused)

    with pytest.raises(OSError, match="Too many"):
        Stage()

    assert [loop.is_closed() for loop in loops] == [True]
