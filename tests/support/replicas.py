"""Brokers in one thread that copy from one another: real handlers, logs and fetchers, no network.

A fetcher takes a step when the test says so, and its leader answers at once, or not at all.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kavka.broker.replication.fetch_requests import (
    LIST_OFFSETS_VERSION,
    FetchLimits,
    fetch_request,
    offsets_of,
    offsets_request,
)
from kavka.broker.replication.fetcher import Fetcher
from kavka.broker.replication.fetcher_manager import FetcherManager
from kavka.broker.replication.followed_partitions import FetchPlan, Followed, Key
from kavka.broker.replication.leader_port import LeaderUnreachableError
from kavka.broker.services import Services
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchResponse
from kavka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kavka.protocol.messages.list_offsets import ListOffsetsResponse
from kavka.protocol.records.batch import iter_batch_headers
from kavka.protocol.schema import Request
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.broker_handlers import topic_id_of, update_metadata
from tests.support.partition_logs import batch_of

FETCH, LIST_OFFSETS = 1, 2
LIMITS = FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=10 << 20, partition_max_bytes=1 << 20)


class SteppedFetcher(Fetcher):
    """Without a thread."""

    def start(self) -> None:
        pass


class DirectLeader:
    """Asks a broker of the same process. `requests` are those that it was asked, by their correlation ids."""

    def __init__(self, asker_id: int, find: Callable[[], BrokerCore | None], version: int) -> None:
        self._asker_id = asker_id
        self._find = find
        self._version = version
        self._asked = 0
        self.plans: list[FetchPlan] = []
        self.tamper: Callable[[FetchResponse], None] = lambda answer: None

    def fetch(self, plan: FetchPlan) -> FetchResponse:
        self.plans.append(plan)
        version = self._version if plan.uses_topic_ids else 12
        request = fetch_request(plan, LIMITS, version, broker_id=self._asker_id, broker_epoch=1)
        answer: FetchResponse = self._ask(FETCH, version, request, FetchResponse)
        self.tamper(answer)
        return answer

    def offsets(self, epochs: Mapping[Key, int], timestamp: int) -> Mapping[Key, tuple[ErrorCode, int]]:
        request = offsets_request(epochs, timestamp, self._asker_id)
        return offsets_of(self._ask(LIST_OFFSETS, LIST_OFFSETS_VERSION, request, ListOffsetsResponse))

    def wake(self) -> None: ...

    def close(self) -> None: ...

    def _ask(self, api_key: int, version: int, request: Request, answer: type[Any]) -> Any:
        core = self._find()
        if core is None:
            raise LeaderUnreachableError("it is down")
        self._asked += 1
        head = encode_request_header(api_key, version, self._asked, "follower")
        taken = core.ask(head + encode(request, version))
        (size_bytes, correlation_id) = struct.unpack_from(">ii", taken)
        assert (size_bytes, correlation_id) == (len(taken) - 4, self._asked)
        # Flexible headers have a byte of tags.
        return decode(answer, version, memoryview(taken)[9:])


class Replicas:
    """Brokers 1 to `count`, each with a replica of the partitions of the topic `visits`."""

    TOPIC = "visits"

    def __init__(
        self,
        directory: Path,
        *settings: str,
        count: int = 2,
        partitions: int = 1,
        version: int = 17,
        fetchers: int = 1,
        config: dict[str, str] | None = None,
    ) -> None:
        self.ids = list(range(1, count + 1))
        self.partitions = partitions
        self.version = version
        self.now_ms = 0.0
        self.down: set[int] = set()
        self.leaders: dict[tuple[int, int], DirectLeader] = {}
        """(who asks, whom) -> the way between them."""
        self.managers = {
            broker_id: FetcherManager(partial(self._new_fetcher, broker_id), fetchers) for broker_id in self.ids
        }
        self.cores = {
            broker_id: BrokerCore(
                directory / str(broker_id),
                *settings,
                broker_id=broker_id,
                followers=partial(self._manager, broker_id),
                topics={self.TOPIC: config or {}},
            )
            for broker_id in self.ids
        }
        self.epochs = dict.fromkeys(range(partitions), -1)

    def _manager(self, broker_id: int, _services: Services) -> FetcherManager:
        return self.managers[broker_id]

    def _new_fetcher(
        self, broker_id: int, source: int, number: int, on_failed: Callable[[Followed], None]
    ) -> SteppedFetcher:
        leader = DirectLeader(broker_id, lambda: None if source in self.down else self.cores[source], self.version)
        self.leaders[broker_id, source] = leader
        return SteppedFetcher(
            f"fetcher-{broker_id}-{source}-{number}",
            leader,
            backoff_ms=lambda: 0 if source in self.down else 1000,
            on_failed=on_failed,
            now_ms=lambda: self.now_ms,
        )

    def elect(self, leader: int, index: int = 0, *, tell: Iterable[int] | None = None) -> int:
        """A new epoch with that leader; `tell`: only these brokers hear of it. The epoch."""
        self.epochs[index] += 1
        for broker_id in self.ids if tell is None else tell:
            self.order(broker_id, leader, index, self.epochs[index])
        return self.epochs[index]

    def order(self, broker_id: int, leader: int, index: int, epoch: int) -> None:
        """The controller's LeaderAndIsr and UpdateMetadata to one broker."""
        assert self.answer(broker_id, leader, index, epoch) == [0]
        request = update_metadata({self.TOPIC: [leader] * self.partitions}, replicas=self.ids)
        self.cores[broker_id].services.metadata.apply(request)

    def answer(self, broker_id: int, leader: int, index: int, epoch: int) -> list[int]:
        """What a broker answers to LeaderAndIsr."""
        state = LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=1,
            leader=leader,
            leader_epoch=epoch,
            isr=list(self.ids),
            partition_epoch=epoch,
            replicas=list(self.ids),
        )
        topic = LeaderAndIsrTopicState(
            topic_name=self.TOPIC, topic_id=topic_id_of(self.TOPIC), partition_states=[state]
        )
        answer = self.cores[broker_id].replicas.leader_and_isr(
            LeaderAndIsrRequest(
                controller_id=1, controller_epoch=1, broker_epoch=1, topic_states=[topic], live_leaders=[]
            )
        )
        return [part.error_code for each in answer.topics for part in each.partition_errors]

    def log(self, broker_id: int, index: int = 0) -> PartitionLog:
        return self.cores[broker_id].log(self.TOPIC, index)

    def produce(self, broker_id: int, *values: bytes, index: int = 0, **fields: Any) -> int:
        """Append as a leader does, whoever else may lead by now; the first offset."""
        partition = self.cores[broker_id].replicas.partitions[self.TOPIC, index]
        result = partition.append(memoryview(batch_of(*values, **fields)), 1, 9, NOW_MS)
        partition.appended()
        return result.first_offset

    def step(self, broker_id: int) -> bool:
        """One round of all of the broker's fetchers; whether one had something to fetch."""
        return any([fetcher.step() for fetcher in self.managers[broker_id].fetchers])

    def catch_up(self, broker_ids: Sequence[int] | None = None, rounds: int = 12) -> None:
        """Rounds enough to find where histories part, to copy all, and to hear of the high watermark."""
        for _ in range(rounds):
            self.now_ms += 1000
            for broker_id in self.ids if broker_ids is None else broker_ids:
                self.step(broker_id)

    def contents(self, broker_id: int, index: int = 0) -> bytes:
        """All segments' bytes."""
        folder = self.log(broker_id, index).directory
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))

    def bytes_from(self, broker_id: int, offset: int, index: int = 0) -> bytes:
        """What a reader gets from the batch on that holds `offset`."""
        log, found = self.log(broker_id, index), b""
        while offset < log.log_end_offset:
            data = log.read(offset, 1 << 20, min_one=True, end_offset=log.log_end_offset).read_bytes()
            found += data
            offset = [header.next_offset for _, header in iter_batch_headers(data)][-1]
        return found

    def close(self) -> None:
        for manager in self.managers.values():
            manager.stop()
        for core in self.cores.values():
            core.close()
