"""Connections that pause, and end meanwhile."""

import pytest

from kavka.broker.network.muting import mute
from tests.support.network_stage import Stage


@pytest.mark.parametrize("is_told_first", [True, False])
def test_the_pause_of_a_connection_that_is_closed_ends_once(is_told_first: bool) -> None:
    """An I/O thread has it pause while its network thread closes it."""
    stage = Stage()
    connection, _ = stage.connect()
    ended: list[None] = []
    if is_told_first:
        mute(connection, 1000, lambda: ended.append(None))
        stage.thread.close_connection(connection)
    else:
        stage.thread.close_connection(connection)
        mute(connection, 1000, lambda: ended.append(None))
    stage.loop.settle()
    assert ended == [None]
