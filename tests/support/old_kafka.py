"""A broker of ours that shows, and serves, no more than Apache Kafka of an older release did, with ZooKeeper."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kavka.broker.requests.handling import Handler, load_handlers
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tests.support.running_broker import RunningBroker

_2_1: Final = (7, 10, 4, 7, 1, 0, 4, 1, 6, 5, 2, 3, 2, 2, 2, 2, 2, 1, 2, 3, 3, 1, 1, 2, 1, 1, 1, 0, 2, 1, 1, 1, 2, 1, 1)
_2_8: Final = (
    *(9, 12, 6, 11, 5, 3, 7, 3, 8, 7, 3, 7, 4, 4, 5, 5, 4, 1, 3, 7, 6, 2, 4, 4, 3, 3, 3, 1, 3, 2, 2, 2, 4, 2, 2, 2),
    *(2, 3, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0),
)
_3_3: Final = (
    *(9, 13, 7, 12, 6, 3, 7, 3, 8, 8, 4, 9, 4, 5, 5, 5, 4, 1, 3, 7, 6, 2, 4, 4, 3, 3, 3, 1, 3, 3, 3, 3, 4, 2, 2, 4),
    *(2, 3, 3, 2, 2, 3, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0),
)
NEWEST: Final[dict[str, dict[int, int]]] = {
    "2.1": dict(enumerate((*_2_1, 1, 0, 1, 1, 1, 1, 1, 1))),
    "2.8": {**dict(enumerate(_2_8)), 57: 0, 60: 0, 61: 0},
    "3.3": {**dict(enumerate(_3_3)), 57: 1, 60: 0, 61: 0, 65: 0, 66: 0},
}
"""By release the newest version of each API; the oldest was 0."""
_TELLS_WHAT_IT_CAN: Final = 3
"""Brokers that have this version of ApiVersions say, when asked in one that is too new, which they have (KIP-511)."""


def handlers_of(newest: Mapping[int, int]) -> Callable[..., dict[int, Handler]]:
    """What stands in for `load_handlers`."""

    def load(*, in_cluster: bool = False, at_once: bool = True) -> dict[int, Handler]:
        handlers = {
            key: Handler(
                handler.request_class,
                (handler.min_version, min(handler.max_version, newest[key])),
                handler.advertised_min,
                handler.function,
                handler.error_answer,
                handler.is_small,
                handler.in_clusters,
            )
            for key, handler in load_handlers(in_cluster=in_cluster).items()
            if key in newest
        }
        rows = [
            ApiVersion(api_key=key, min_version=handler.advertised_min, max_version=handler.max_version)
            for key, handler in sorted(handlers.items())
        ]
        own = newest[ApiKey.API_VERSIONS]

        def answer(_request: Any, _context: Any, _services: Any) -> ApiVersionsResponse:
            return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=rows)

        def refuse(_request: Any, code: ErrorCode, _message: str | None) -> ApiVersionsResponse:
            known = [ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=own)]
            return ApiVersionsResponse(error_code=code, api_keys=known if own >= _TELLS_WHAT_IT_CAN else [])

        request_class = handlers[ApiKey.API_VERSIONS].request_class
        handlers[ApiKey.API_VERSIONS] = Handler(request_class, (0, own), 0, answer, refuse)
        return handlers

    return load


@contextmanager
def old_kafka(release: str, directory: Path) -> Iterator[RunningBroker]:
    """It serves while the context is open. Groups are prompt, and internal topics small."""
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kavka.broker.network_side.load_handlers", handlers_of(NEWEST[release]))
        with RunningBroker(directory, settings) as running:
            yield running
