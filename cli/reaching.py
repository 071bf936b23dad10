"""Whether a broker listens at all: clients try for their whole time limit, which is long for a wrong port."""

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Final

from kavka.cli.failing import UNREACHABLE, UNREACHABLE_HINT, Failure

PATIENCE_MS: Final = 3_000
"""For brokers that start just now. `--timeout-ms` counts in its place."""
_PAUSE_S: Final = 0.1
_ATTEMPT_S: Final = 0.5


def await_broker(settings: Mapping[str, str], timeout_ms: int | None) -> None:
    """Returns once one of `bootstrap.servers` takes a connection, or is so slow to answer that clients have to wait.

    Raises Failure when all of them refuse, or have names that cannot be found, for `timeout_ms` (None: PATIENCE_MS);
    ConfigError for addresses that are none.
    """
    from kavka.client.bootstrap import bootstrap_nodes

    nodes = bootstrap_nodes([server.strip() for server in settings["bootstrap.servers"].split(",")])
    places = [(node.host, node.port) for node in nodes]
    deadline_s = time.monotonic() + (PATIENCE_MS if timeout_ms is None else timeout_ms) / 1000
    while refused := _refusals(places):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise Failure("; ".join(refused), UNREACHABLE_HINT, UNREACHABLE)
        time.sleep(min(_PAUSE_S, left_s))


def _refusals(places: Sequence[tuple[str, int]]) -> list[str]:
    """Why each cannot be reached; nothing when one can, or may be."""
    refusals = []
    for place in places:
        try:
            with socket.create_connection(place, _ATTEMPT_S):
                return []
        except TimeoutError:
            return []
        except OSError as error:
            refusals.append(f"{place[0]}:{place[1]}: {error.strerror or error}")
    return refusals
