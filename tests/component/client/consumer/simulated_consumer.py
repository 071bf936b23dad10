"""The machines of a consumer in assign mode over a simulated cluster, and who polls them."""

from collections.abc import Callable
from typing import Final

from kavka.client.backoff import ExponentialBackoff
from kavka.client.client_metrics import Metrics
from kavka.client.consumer.buffer import FetchBuffer, News
from kavka.client.consumer.fetch_answers import FetchAnswers
from kavka.client.consumer.fetch_metrics import FetchMetrics
from kavka.client.consumer.fetcher import Fetcher, FetchSettings
from kavka.client.consumer.offset_lookup import OffsetLookups
from kavka.client.consumer.position_finding import PositionFinder
from kavka.client.consumer.positions import EARLIEST, ResetPolicy
from kavka.client.consumer.records import ConsumerRecord
from kavka.client.consumer.stretches import Deserializers
from kavka.client.consumer.subscription import Subscription
from tests.component.client.consumer.simulated_cluster import SimulatedCluster
from tests.component.client.consumer.simulated_network import SimulatedNetwork

FROM_THE_START: Final = ResetPolicy(EARLIEST)


class SimulatedConsumer:
    """What `ConsumerCore` is made of, but for the thread."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        network: SimulatedNetwork,
        settings: FetchSettings | None = None,
        policy: ResetPolicy = FROM_THE_START,
        *,
        skip_corrupt: bool = False,
        wake: Callable[[], None] | None = None,
        deserializers: Deserializers | None = None,
    ) -> None:
        settings = settings or FetchSettings(max_partition_bytes=3_000, max_bytes=10_000)
        self.cluster = cluster
        self.network = network
        self.wakes = 0
        self.metrics = FetchMetrics(Metrics("consumer", "c", now_ms=lambda: network.now_ms))
        wake = wake or self._wake
        self.news = News()
        self.subscription = Subscription(policy, wake)
        self.buffer = FetchBuffer(
            self.subscription,
            max_bytes=settings.max_bytes,
            news=self.news,
            wake=wake,
            metrics=self.metrics,
            skip_corrupt=skip_corrupt,
            deserializers=deserializers,
        )
        clock = lambda: network.now_ms  # noqa: E731  # the clock of all
        self.lookups = OffsetLookups(network, cluster, is_read_committed=False, retry_backoff_ms=100, now_ms=clock)
        self.answers = FetchAnswers(
            self.subscription,
            self.buffer,
            ExponentialBackoff(100, 1_000, lambda: 0.5),
            request_metadata=cluster.request_update,
            learn_leaders=cluster.learn_leaders,
            preferred_for_ms=settings.metadata_max_age_ms,
        )
        self.fetcher = Fetcher(
            network, cluster, self.subscription, self.buffer, settings, self.answers, self.metrics, clock
        )
        self.finder = PositionFinder(
            network,
            cluster,
            self.subscription,
            self.buffer,
            self.lookups,
            self.answers,
            settings,
            committed=None,
            on_found=lambda: None,
            now_ms=clock,
            wall_clock_ms=clock,
        )

    def run(self, for_ms: float) -> None:
        """Let the client's thread do its work for so long, or until something happens."""
        network = self.network
        now_ms = network.now_ms
        self.lookups.work(now_ms)
        wait_ms = min(self.finder.work(now_ms), self.lookups.work(now_ms), self.fetcher.work(now_ms))
        assert wait_ms >= 0
        if self.cluster.wants_update:
            self.cluster.refresh()
        network.run(now_ms + min(max(wait_ms, 0.001), for_ms))

    def settle(self, for_ms: float = 3_000) -> None:
        """Let time go by."""
        until_ms = self.network.now_ms + for_ms
        while self.network.now_ms < until_ms:
            self.run(until_ms - self.network.now_ms)

    def poll(self, most: int = 100) -> list[ConsumerRecord]:
        """What can be given out now."""
        return [record for piece in self.buffer.take(most) for record in piece.records()]

    def _wake(self) -> None:
        self.wakes += 1
