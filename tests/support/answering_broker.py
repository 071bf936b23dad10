"""A broker on loopback that answers each API as a test has it, on as many connections as come."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from kavka.client import Node
from kavka.protocol.api import VERSIONS
from kavka.protocol.schema import Response
from tests.support.scripted_broker import API_VERSIONS, Asked, ScriptedBroker, Visitor, framed, versions_response

Answer = Callable[[Asked], Response]


class AnsweringBroker:
    """`with AnsweringBroker(answers) as broker:` serves; an API that `answers` lacks is not shown.

    `mangle(asked, frame)` gives what is sent in place of a good answer; None closes the connection. Threads: one
    accepts, one serves each connection; `mangle` and the answers are called by those.
    """

    def __init__(
        self, answers: Mapping[int, Answer], mangle: Callable[[Asked, bytes], bytes | None] = lambda _, frame: frame
    ) -> None:
        self._answers = dict(answers)
        self._mangle = mangle
        self._broker = ScriptedBroker()
        shown = {key: (VERSIONS[key].oldest, VERSIONS[key].newest) for key in (API_VERSIONS, *answers)}
        self._answers[API_VERSIONS] = lambda _: versions_response(shown)

    def __enter__(self) -> Self:
        self._broker.__enter__()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._broker.__exit__(kind, error, trace)

    @property
    def node(self) -> Node:
        return self._broker.node

    @property
    def bootstrap(self) -> str:
        return f"{self.node.host}:{self.node.port}"

    def _accept(self) -> None:
        # Until the test is over.
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._broker.accept(),), daemon=True).start()

    def _serve(self, visitor: Visitor) -> None:
        # The client may leave at any time.
        with contextlib.suppress(OSError):
            while (frame := self._answer(visitor.asked())) is not None:
                visitor.socket.sendall(frame)
        visitor.socket.close()

    def _answer(self, asked: Asked) -> bytes | None:
        response: Any = self._answers[asked.header.api_key](asked)
        return self._mangle(asked, framed(asked, response))
