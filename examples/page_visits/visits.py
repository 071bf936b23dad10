"""A page visit, and a generator of them: who (ip) looked at which site, when."""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

SITES = ("kavka.example/docs", "kavka.example/start", "kavka.example/birds", "kavka.example/about")


@dataclass(frozen=True)
class PageVisit:
    time_ms: int
    site: str
    ip: str

    @property
    def key(self) -> bytes:
        """All visits from one address go to one partition, so they stay in order."""
        return self.ip.encode()

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "PageVisit":
        return cls(**json.loads(data))


def generate_visits(count: int, seed: int = 1) -> Iterator[PageVisit]:
    """The same visits for the same seed: 254 addresses that come back again and again, times ascending from now on.

    Older times would have the broker delete the visits as soon as it looks at retention.ms.
    """
    source = random.Random(seed)
    time_ms = time.time_ns() // 1_000_000
    for _ in range(count):
        time_ms += source.randint(0, 50)
        yield PageVisit(time_ms, source.choice(SITES), f"192.168.14.{source.randint(1, 254)}")
