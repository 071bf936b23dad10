"""Where requests for transactions go while their coordinator cannot be reached."""

from kavka.client.backoff import ExponentialBackoff
from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.coordinators import Coordinators
from kavka.client.metadata import Metadata, MetadataSettings
from kavka.client.producer.sequences import NOBODY
from kavka.client.producer.transaction_queue import RequestQueue
from kavka.client.producer.transaction_requests import InitProducerId, Result
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.support.fake_network import FakeNetwork

DEAD = 7


def test_a_dead_coordinator_is_looked_for_anew_once_for_each_failure() -> None:
    """Until its session is over the others name it again and again: asking in a loop makes nobody's life better."""
    network = FakeNetwork()
    network.unready = {DEAD: 50.0}
    metadata = Metadata(
        Bootstrap(bootstrap_nodes(["first:9092"]), on_found=lambda: None), MetadataSettings(), wake=network.wakeup
    )
    coordinators = Coordinators(network, metadata, ExponentialBackoff(100, 1_000))
    queue = RequestQueue("t", network, coordinators, lambda request, node, answer: None)
    queue.put(InitProducerId("t", Result(), 1_000, NOBODY, is_bump=False))
    finds = 0
    for _ in range(20):
        queue.send_first(NOBODY)
        coordinators.work(0)
        while network.sent:
            finds += 1
            row = Coordinator(key="t", node_id=DEAD, host="dead", port=9, error_code=0, error_message=None)
            network.take().answer(
                FindCoordinatorResponse(
                    error_code=0, error_message=None, node_id=0, host="", port=0, coordinators=[row], throttle_time_ms=0
                )
            )
    assert finds == 2
