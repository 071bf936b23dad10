"""Records for the formats of `kavka consume`."""

from typing import NamedTuple


class Shown(NamedTuple):
    """What a format looks at, with values that show where each went."""

    topic: str = "visits"
    partition: int = 3
    offset: int = 42
    timestamp_ms: int = 1_767_250_800_000
    timestamp_type: int = 0
    key: bytes | None = b"key"
    value: bytes | None = b"value"
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int | None = 7
