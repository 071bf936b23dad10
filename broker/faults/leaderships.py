"""Leaders that move and coordinators that are lost.

in a cluster    another replica in sync becomes the leader, by the elected controller's means (a reassignment to the
                same replicas in another order, and the election of the preferred one): all that follows is real
a broker alone  has nobody to move to: for a time its answers are those of a cluster whose leader is gone. A
                coordinator's shard is really given up and loaded again
"""

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.faults.actions import Fail
from kavka.broker.faults.fault import Fault
from kavka.broker.faults.hit import Hit
from kavka.broker.faults.standing import Reached, Rule, StandingFaults
from kavka.broker.faults.target import OWN_CLIENT_ID, Target
from kavka.cluster.topic_names import GROUP_METADATA_TOPIC
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kavka.broker.coordination.coordination import AnyCoordination
    from kavka.broker.metadata.metadata_cache import PartitionMetadata
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

MOVE_S: Final = 60.0
PAUSE_S: Final = 0.02
_OF_LEADERS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH)
_OF_GROUPS: Final = frozenset(
    {
        *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT),
        *(ApiKey.OFFSET_FETCH, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS),
        *(ApiKey.OFFSET_DELETE, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE),
    }
)
_OF_TRANSACTIONS: Final = frozenset(
    {
        *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
        ApiKey.DESCRIBE_TRANSACTIONS,
    }
)


def partition_of(broker: Reached, topic: str, index: int) -> "PartitionMetadata":
    """What a broker knows of a partition. Raises ValueError when that is nothing."""
    known = broker.services.metadata.current.partition(topic, index)
    if known is None:
        raise ValueError(f"there is no partition {topic}-{index}")
    return known


def other_leader(broker: Reached, topic: str, index: int, to: int | None) -> int | None:
    """Who could lead the partition instead: `to`, if it can; None where nobody can. Raises ValueError."""
    known = partition_of(broker, topic, index)
    alive = broker.services.metadata.current.brokers.keys()
    able = [each for each in known.replicas if each != known.leader and each in known.isr and each in alive]
    if to is None:
        return able[0] if able else None
    if to not in able:
        raise ValueError(f"broker {to} cannot lead {topic}-{index} instead of broker {known.leader}: others are {able}")
    return to


def move_leader(standing: StandingFaults, broker: Reached, topic: str, index: int, to: int, fault: Fault) -> None:
    """Have the controller make `to` the leader; returns when all that faults reach know it, but for frozen ones.

    Raises ValueError, TimeoutError, and RuntimeError when the fault is cleared meanwhile.
    """
    from kavka.client import Admin, TopicPartition
    from kavka.client.admin import ElectionType
    from kavka.client.kafka_error import KafkaError

    known = partition_of(broker, topic, index)
    place = TopicPartition(topic, index)
    order = [to, *[each for each in known.replicas if each != to]]
    end_s = time.monotonic() + MOVE_S
    try:
        with Admin(bootstrap_servers=_own_address(broker), client_id=OWN_CLIENT_ID) as admin:
            admin.alter_partition_reassignments({place: order})
            while admin.list_partition_reassignments([place]):
                _pause_before(end_s, topic, index, fault)
            # A rebalance by itself may have been faster.
            if partition_of(broker, topic, index).leader != to:
                admin.elect_leaders(ElectionType.PREFERRED, [place])
    except KafkaError as failure:
        raise ValueError(f"the leader of {topic}-{index} cannot be moved to broker {to}: {failure}") from failure
    while not all(_knows(each, topic, index, to) for each in standing.thawed()):
        _pause_before(end_s, topic, index, fault)


def _knows(broker: Reached, topic: str, index: int, leader: int) -> bool:
    known = broker.services.metadata.current.partition(topic, index)
    return known is not None and known.leader == leader


def without_leader(standing: StandingFaults, broker: Reached, topic: str, index: int, fault: Fault) -> None:
    """For as long as the fault stands, the partition has no leader, as far as clients are told."""
    partition_of(broker, topic, index)
    broker_id = broker.broker_id
    refused = Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    rules = [Rule(fault, Target(int(key), None, topic, index, broker_id), refused) for key in _OF_LEADERS]
    unled = Rule(
        fault, Target(int(ApiKey.METADATA), None, topic, index, broker_id), Fail(ErrorCode.LEADER_NOT_AVAILABLE)
    )
    standing.add_rules(*rules, unled)


class LostCoordinator:
    """A coordinator's partition that nobody leads, and then its leader loads: target and action of a rule.

    Threads: `begin` by who asks; `load` by the timer's thread, or who clears the fault, once.
    """

    def __init__(self, broker: Reached, coordination: "AnyCoordination", partition: int, fault: Fault) -> None:
        self._broker = broker
        self._coordination = coordination
        self._partition = partition
        self._fault = fault
        self._is_of_groups = coordination.topic.name == GROUP_METADATA_TOPIC
        self._lock = threading.Lock()
        self._is_loading = False

    def begin(self, standing: StandingFaults, unavailable_ms: float, loading_ms: float) -> None:
        """Give the shard up; load it again `unavailable_ms` later; serve again when `loading_ms` more have passed."""
        runtime = self._coordination.existing_runtime
        target: Any = self
        standing.add_rules(Rule(self._fault, target, self))
        if runtime is not None:
            runtime.resigns(self._partition)
        self._fault.when_cleared(self.load)
        timer = self._broker.services.purgatory.timer
        timer.schedule(self.load, unavailable_ms)
        timer.schedule(self._fault.clear, unavailable_ms + loading_ms)

    def load(self) -> None:
        """The partition is led again: its shard is read from its log."""
        with self._lock:
            if self._is_loading:
                return
            self._is_loading = True
        partition = self._broker.services.replicas.partitions.get((self._coordination.topic.name, self._partition))
        if partition is not None and partition.role.is_leader:
            self._coordination.leadership_changed(partition, True)

    def hits(self, request: Any, context: "Context", services: "Services") -> bool:
        """As a Target: whether the request is for this coordinator."""
        if services.broker_id != self._broker.broker_id:
            return False
        keys = _keys(request, context.api_key, self._is_of_groups)
        return any([self._coordination.partition_of(key) == self._partition for key in keys])

    def run(self, hit: Hit) -> Any:
        """As an Action."""
        is_search = hit.context.api_key == ApiKey.FIND_COORDINATOR
        if self._is_loading:
            return hit.serve() if is_search else Fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS).run(_whole(hit))
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_search else ErrorCode.NOT_COORDINATOR
        return Fail(code).run(_whole(hit))


def _whole(hit: Hit) -> Hit:
    return hit._replace(target=Target())


def _keys(request: Any, api_key: int, is_of_groups: bool) -> list[str]:
    """The groups, or transactional ids, that a request is about."""
    if api_key == ApiKey.FIND_COORDINATOR:
        wanted = getattr(request, "key_type", 0) == (0 if is_of_groups else 1)
        return [each for each in (request.key, *request.coordinator_keys) if each] if wanted else []
    if is_of_groups:
        if api_key not in _OF_GROUPS:
            return []
        several = [*getattr(request, "groups", ()), *getattr(request, "groups_names", ()), *_ids(request, "group_ids")]
        return [getattr(request, "group_id", ""), *[getattr(each, "group_id", each) for each in several]]
    if api_key not in _OF_TRANSACTIONS:
        return []
    several = [each.transactional_id for each in getattr(request, "transactions", ())]
    return [each for each in (*_ids(request, "transactional_ids"), _own(request), *several) if each]


def _ids(request: Any, name: str) -> list[str]:
    return list(getattr(request, name, None) or ())


def _own(request: Any) -> str:
    old = getattr(request, "v3_and_below_transactional_id", "")
    return str(getattr(request, "transactional_id", None) or old)


def _own_address(broker: Reached) -> str:
    current = broker.services.metadata.current
    listener = broker.services.config.current.listeners[0].name
    endpoint = current.endpoint(broker.broker_id, listener)
    if endpoint is None:
        raise ValueError(f"broker {broker.broker_id} is not known in its cluster")
    return f"{endpoint.host}:{endpoint.port}"


def _pause_before(end_s: float, topic: str, index: int, fault: Fault) -> None:
    if fault.is_cleared:
        raise RuntimeError(f"taken back before the leader of {topic}-{index} had moved")
    if time.monotonic() > end_s:
        raise TimeoutError(f"the leader of {topic}-{index} has not moved within {MOVE_S:.0f} s")
    time.sleep(PAUSE_S)
