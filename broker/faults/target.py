"""Which requests a fault hits."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kavka.broker.faults.named_partitions import ALL, named_partitions
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

CONSUMER: Final = -1
OWN_CLIENT_ID: Final = "kavka-faults"
"""What moves leaders asks under this name, and is hit by no fault that does not name it: another one may stand."""
_BETWEEN_BROKERS: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.WRITE_TXN_MARKERS,
    }
)


class Target(NamedTuple):
    """None stands for any. A partition is one of `topic`.

    What brokers ask of each other is hit only where `api_key` or `client_id` names it.
    """

    api_key: int | None = None
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    broker_id: int | None = None

    def hits(self, request: Any, context: "Context", services: "Services") -> bool:
        """Whether this request is one of those."""
        if self.api_key is not None and self.api_key != context.api_key:
            return False
        if self.broker_id is not None and self.broker_id != services.broker_id:
            return False
        if self.client_id is not None:
            if self.client_id != context.client_id:
                return False
        elif context.client_id == OWN_CLIENT_ID or (
            _is_of_broker(request, context.api_key) and (self.api_key is None or _has_replica(request))
        ):
            return False
        if self.topic is None:
            return True
        if context.api_key == ApiKey.METADATA and _is_of_all(request, context.api_version):
            return self.topic in services.metadata.current.topics
        return any([self.names(*each) for each in named_partitions(request, services)])

    def names(self, topic: str, partition: int) -> bool:
        """Whether a partition of a request, or with ALL a topic as a whole, is meant."""
        if self.topic is not None and topic != self.topic:
            return False
        return self.partition is None or partition in (self.partition, ALL)


def api_key_of(name: "str | int | None") -> int | None:
    """The key of an API by its name as Kafka writes it, in any case, or with underscores. Raises ValueError."""
    if name is None:
        return None
    if isinstance(name, int):
        return int(ApiKey(name))
    wanted = _plain(name)
    for key in ApiKey:
        if _plain(key.name) == wanted:
            return int(key)
    raise ValueError(f"there is no API {name}: names are Kafka's, as Produce or FindCoordinator")


def error_of(name: "str | int") -> ErrorCode:
    """An error by its name or number. Raises ValueError."""
    try:
        code = ErrorCode(name) if isinstance(name, int) else ErrorCode[name.upper()]
    except (KeyError, ValueError):
        raise ValueError(f"there is no error {name}: names are Kafka's, as NOT_LEADER_OR_FOLLOWER") from None
    if code is ErrorCode.NONE:
        raise ValueError("NONE is no error")
    return code


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _is_of_all(request: Any, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _is_of_broker(request: Any, api_key: int) -> bool:
    return api_key in _BETWEEN_BROKERS or _has_replica(request)


def _has_replica(request: Any) -> bool:
    """Whether a follower asks, which says its id."""
    state = getattr(request, "replica_state", None)
    return max(getattr(request, "replica_id", CONSUMER), getattr(state, "replica_id", CONSUMER)) >= 0
