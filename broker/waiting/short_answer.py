"""What is read of each answer that takes a place among those of its connection, of requests on their short ways."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kavka.broker.network.connection import Connection


class ShortAnswer:
    """The place itself (`answers.Slot`). Its parts are filled in by who has it, at the price of no call."""

    __slots__ = (
        "answer",
        "api_key",
        "api_version",
        "completed_ns",
        "connection",
        "local_done_ns",
        "received_ns",
        "started_ns",
    )

    answer: Any
    api_key: int
    api_version: int
    client_id: Final = None
    """Not looked up on the short way."""
    completed_ns: int
    connection: "Connection"
    local_done_ns: int
    received_ns: int
    started_ns: int
