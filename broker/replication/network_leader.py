"""The leader's broker over the network: one connection, one request at a time, for which the fetcher's thread waits."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kavka.broker.replication.fetch_requests import (
    LIST_OFFSETS_VERSION,
    NEWEST_FETCH,
    OLDEST_FETCH,
    FetchLimits,
    fetch_request,
    offsets_of,
    offsets_request,
)
from kavka.broker.replication.followed_partitions import FetchPlan, Key
from kavka.broker.replication.leader_port import LeaderUnreachableError
from kavka.client import ClientError, NetworkClient, Node, RequestBuilder
from kavka.client.call import VersionRange
from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchRequest, FetchResponse
from kavka.protocol.messages.list_offsets import ListOffsetsResponse


class NetworkLeader:
    """A LeaderPort. `find()` says where the broker is reached now, None while nobody knows.

    `new_client()` is called with the first request. Threads: as LeaderPort says; the client belongs to the fetcher's
    thread, but for its `wakeup`.
    """

    def __init__(
        self,
        new_client: Callable[[], NetworkClient],
        find: Callable[[], Node | None],
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        limits: FetchLimits,
        timeout_ms: int,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        self._new_client: Final = new_client
        self._client: NetworkClient | None = None
        self._find: Final = find
        self._broker_id: Final = broker_id
        self._broker_epoch: Final = broker_epoch
        self._limits: Final = limits
        self._timeout_ms: Final = timeout_ms
        self._now_ms: Final = now_ms
        self._is_woken = False

    def fetch(self, plan: FetchPlan) -> FetchResponse:
        newest = NEWEST_FETCH if plan.uses_topic_ids else OLDEST_FETCH
        builder = RequestBuilder(ApiKey.FETCH, lambda version: self._fetch_request(plan, version))
        answer = self._ask(builder, (OLDEST_FETCH, newest))
        assert isinstance(answer, FetchResponse)
        return answer

    def offsets(self, epochs: Mapping[Key, int], timestamp: int) -> Mapping[Key, tuple[ErrorCode, int]]:
        request = offsets_request(epochs, timestamp, self._broker_id)
        answer = self._ask(request, (LIST_OFFSETS_VERSION, LIST_OFFSETS_VERSION))
        assert isinstance(answer, ListOffsetsResponse)
        return offsets_of(answer)

    def wake(self) -> None:
        self._is_woken = True
        client = self._client
        if client is not None:
            client.wakeup()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _ask(self, request: Any, versions: VersionRange) -> Any:
        client = self._client
        if client is None:
            try:
                client = self._client = self._new_client()
            except OSError as failure:
                raise LeaderUnreachableError(f"no descriptors are left: {failure}") from failure
        node = self._connected(client)
        answers: list[Any] = []
        try:
            client.send(node, request, answers.append, versions=versions, timeout_ms=self._timeout_ms)
        except ClientError as failure:
            raise LeaderUnreachableError(str(failure)) from failure
        while not answers:
            self._poll(client, self._timeout_ms)
        if isinstance(answers[0], ClientError):
            raise LeaderUnreachableError(str(answers[0]))
        return answers[0]

    def _connected(self, client: NetworkClient) -> Node:
        """The node, ready to be asked; waits until it is connected, but for its back-off the caller has its own."""
        node = self._find()
        if node is None:
            raise LeaderUnreachableError("the leader is not among the live brokers that are known")
        deadline_ms = self._now_ms() + self._timeout_ms
        failures = client.failures(node)
        while not client.ready(node):
            if client.failures(node) > failures or self._now_ms() >= deadline_ms:
                raise LeaderUnreachableError(f"node {node} cannot be reached")
            self._poll(client, min(client.delay_ms(node), deadline_ms - self._now_ms()))
        return node

    def _poll(self, client: NetworkClient, timeout_ms: float) -> None:
        if not self._is_woken:
            client.poll(timeout_ms)
        if self._is_woken:
            raise LeaderUnreachableError("the fetcher stops")

    def _fetch_request(self, plan: FetchPlan, version: int) -> FetchRequest:
        return fetch_request(plan, self._limits, version, broker_id=self._broker_id, broker_epoch=self._broker_epoch())
