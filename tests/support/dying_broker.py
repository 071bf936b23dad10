"""A broker one of whose threads dies: `python -m tests.support.dying_broker KIND FILE OVERRIDE...`.

It is `kavka broker` but for one method of the threads of that kind, which raises once FILE is there: what no handler
and no `except Exception` on the way stops.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kavka.broker import main
from kavka.broker.network.acceptor import Acceptor
from kavka.broker.network.network_thread import NetworkThread
from kavka.broker.requests.io_thread import IoThread
from kavka.broker.waiting.timer import Timer
from tests.support.kavka_process import KavkaProcess

MORTAL: Final[dict[str, tuple[type[Any], str]]] = {
    "io": (IoThread, "run_turn"),
    "network": (NetworkThread, "_read"),
    "acceptor": (Acceptor, "_accept"),
    "timer": (Timer, "_wait_for_due"),
}
"""What each kind of thread does again and again."""


class DeathError(BaseException):
    """Ends a thread."""


class DyingBroker(KavkaProcess):
    """As KavkaProcess; a thread of that kind dies at its next turn after `die`."""

    def __init__(self, directory: Path, kind: str) -> None:
        super().__init__(
            directory,
            expected_errors=[
                "a thread died",
                'msg="stopping" reason=',
                "Traceback",
                "Exception in thread",
                "DeathError",
            ],
        )
        self._kind = kind
        self._file = directory / "die"

    def command(self) -> list[str]:
        overrides = super().command()[2:]
        return [sys.executable, "-m", __name__, self._kind, str(self._file), *overrides]

    def die(self) -> None:
        self._file.touch()


def _make_mortal(kind: str, file: Path) -> None:
    owner, name = MORTAL[kind]
    lived = getattr(owner, name)

    def turn(self: object, *arguments: object) -> object:
        if file.exists():
            raise DeathError(kind)
        return lived(self, *arguments)

    setattr(owner, name, turn)


def _run(arguments: Sequence[str]) -> int:
    kind, file, *overrides = arguments
    _make_mortal(kind, Path(file))
    return main.run(None, [each for each in overrides if each != "--override"])


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
