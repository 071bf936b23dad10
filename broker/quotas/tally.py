"""What one connection has used of a quota that is far off, and has not told the quota's meter yet.

A meter costs a lock and a look at its samples each time, which is much beside a request that takes ten microseconds.
While less than half of what could make anybody pause is used, a connection counts for itself: for DELAY_MS, or to the
end of the meter's sample, and no more than a share of the whole. All such shares together are too little to make
anybody pause; and where it counts, near the quota, at a sample's end or for whoever looks at the rates, the meter
fetches what it was not told. So the same comes of it, to the digit, as if each request was told at once.
"""

from typing import Final

DELAY_MS: Final = 50
"""So much later than it was used something may be counted."""
FAR: Final = 0.5
"""Of what is surely no reason to pause: with more used than that, everything is told at once."""
NS_PER_MS: Final = 1_000_000
SHARE: Final = 1 / 64
"""Of the same, what the first connection may keep to itself; the n-th has an n-th of it."""


class Tally:
    """One connection's, with one meter.

    Threads: `used` and `used_ns` are written by that alone which runs the connection, the rest under the meter's lock.
    What is read without it may be old by one request, which is then told with the next one.
    """

    __slots__ = ("due_ms", "most", "told", "used", "used_ns")

    def __init__(self) -> None:
        self.used = 0.0
        """All that this connection has used."""
        self.used_ns = 0
        """And when it last did."""
        self.told = 0.0
        """As much of it the meter knows."""
        self.most = 0.0
        """When `used` is no less, the meter has to be told."""
        self.due_ms = 0
        """And from then on."""
