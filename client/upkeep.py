"""What open connections need as time goes by: to be left alone while throttled, to have new
sessions in time, to be closed when nobody uses them."""

from collections.abc import Iterable
from typing import Any, Final

from kavka.client.call import Call
from kavka.client.link import Link, Stage
from kavka.protocol.api import ApiKey

FIRST_THROTTLED_HERE: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.DELETE_RECORDS: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.ALTER_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.DELETE_GROUPS: 1,
}
"""The first version of each API whose answers leave the waiting to the client, and not to the broker (KIP-219).

Of all others it is the first of all.
"""
INFINITY: Final = float("inf")


class Upkeep:
    """Says which connections are idle, and keeps the time of those that are throttled. Threads: the client's owner."""

    __slots__ = ("_max_idle_ms", "next_ms")

    def __init__(self, max_idle_ms: float) -> None:
        self._max_idle_ms: Final = max_idle_ms
        self.next_ms = INFINITY
        """When there is something for `idle`, on the client's clock."""

    def opened(self, link: Link, now_ms: float) -> None:
        """From now on the connection may become idle."""
        link.used_ms = now_ms
        self.next_ms = min(self.next_ms, now_ms + self._max_idle_ms)

    def authenticated(self, link: Link) -> None:
        """From now on its session may come to its end."""
        self.next_ms = min(self.next_ms, link.reauthenticate_ms)

    def heed(self, link: Link, call: Call, answer: Any, now_ms: float) -> None:
        """A broker that answers at once, and asks to be left alone for a while, is left alone (KIP-219)."""
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0 and call.version >= FIRST_THROTTLED_HERE.get(call.api_key, 0):
            link.is_throttled = True
            link.throttled_until_ms = max(link.throttled_until_ms, now_ms + throttle_ms)
            self.next_ms = min(self.next_ms, link.throttled_until_ms)

    def idle(self, links: Iterable[Link], now_ms: float) -> list[Link]:
        """The connections over which nothing has been asked for too long; those that were throttled go on.

        One whose session nears its end is stale, and is authenticated anew before it is used again.
        """
        idle: list[Link] = []
        self.next_ms = INFINITY
        for link in links:
            if link.stage is not Stage.OPEN:
                continue
            if link.is_throttled:
                link.is_throttled = now_ms < link.throttled_until_ms
                self.next_ms = min(self.next_ms, link.throttled_until_ms if link.is_throttled else INFINITY)
            link.is_stale = now_ms >= link.reauthenticate_ms
            if not link.is_stale:
                self.next_ms = min(self.next_ms, link.reauthenticate_ms)
            if link.connection.in_flight or link.unanswered is not None:
                link.used_ms = now_ms
            idle_ms = link.used_ms + self._max_idle_ms
            if now_ms >= idle_ms:
                idle.append(link)
            else:
                self.next_ms = min(self.next_ms, idle_ms)
        return idle
