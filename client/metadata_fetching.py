"""Keeps a client's metadata fresh: asks the least loaded node when they are due, one request at a time."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kavka.client.errors import ClientError, UnsupportedVersionError
from kavka.client.kafka_error import AuthenticationError, KafkaError
from kavka.client.metadata_port import MetadataPort
from kavka.client.network_port import NetworkPort
from kavka.client.node import Node
from kavka.protocol.errors import EncodeError


class MetadataFetching:
    """Between a network client and who knows the cluster. Threads: the client's owner alone."""

    __slots__ = ("_is_out", "_is_waiting", "_metadata", "_network", "_now_ms")

    def __init__(self, metadata: MetadataPort, network: NetworkPort, now_ms: Callable[[], float]) -> None:
        self._now_ms: Final = now_ms
        self._metadata: Final = metadata
        self._network: Final = network
        self._is_out = False
        self._is_waiting = False
        """For room on a connection: whoever else would take it has to wait, or there would never be any."""

    def work(self, now_ms: float) -> float:
        """Fetch if it is time; how long until something is to be done."""
        if self._is_out:
            return float("inf")
        metadata, network = self._metadata, self._network
        has_waited, self._is_waiting = self._is_waiting, False
        due_in_ms = metadata.due_in_ms(now_ms)
        if due_in_ms > 0:
            # Who had to wait may go on at once.
            return 0.0 if has_waited else due_in_ms
        nodes = metadata.nodes()
        node = network.least_loaded(nodes)
        if node is None and nodes and not self._is_any_open(nodes) and metadata.unreachable(now_ms):
            nodes = metadata.nodes()
            node = network.least_loaded(nodes)
        if node is None:
            delays_ms = [(each, network.delay_ms(each)) for each in nodes]
            self._is_waiting = any(
                delay_ms == float("inf") and network.served(each) is not None for each, delay_ms in delays_ms
            )
            return min((delay_ms for _, delay_ms in delays_ms), default=float("inf"))
        if not network.ready(node):
            return network.delay_ms(node)
        self._is_out = True
        try:
            network.send(node, metadata.request(), self._answered)
        except ClientError as failure:
            self._answered(failure)
        except EncodeError as failure:
            self._answered(UnsupportedVersionError(f"node {node} is too old: {failure}"))
        return 0.0 if has_waited else float("inf")

    def goes_before(self, node: Node) -> bool:
        """Whether a request to `node` has to wait: metadata are due, and the first room there is for them."""
        return self._is_waiting and not node.lane

    def disconnected(self) -> None:
        """A connection ended, or could not be made: what is known of the cluster may be old."""
        self._metadata.request_update()

    def _is_any_open(self, nodes: Sequence[Node]) -> bool:
        """A node that is throttled, or has as many requests as it may, is to be waited for, not to be looked for."""
        return any(self._network.served(node) is not None for node in nodes)

    def refused(self, error: Exception) -> None:
        """A broker does not let the client in: no use in waiting for metadata."""
        if not self._is_out:
            refusal = error if isinstance(error, KafkaError) else AuthenticationError(str(error))
            self._metadata.failed(refusal, self._now_ms())

    def _answered(self, answer: Any) -> None:
        self._is_out = False
        if isinstance(answer, ClientError):
            self._metadata.failed(answer, self._now_ms())
        else:
            self._metadata.updated(answer, self._now_ms())
