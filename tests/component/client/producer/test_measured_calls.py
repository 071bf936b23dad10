"""What a producer's calls and its waits for sockets take is measured, each under Kafka's name."""

from kavka.client import Producer
from tests.component.client.producer.serving_producers import TOPIC, ProducersBroker
from tests.support.answering_broker import AnsweringBroker

CALLS = ("metadata-wait", "flush", "txn-init", "txn-begin", "txn-commit", "txn-abort")


def test_each_call_that_waits_is_measured() -> None:
    serving = ProducersBroker()
    with AnsweringBroker(serving.answers) as broker:
        serving.node = broker.node
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id="t") as producer:
            metrics = producer.metrics
            assert [metrics[f"{name}-time-ns-total"] for name in CALLS] == [0] * len(CALLS)
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(TOPIC, b"kavka")
            producer.flush()
            producer.commit_transaction()
            producer.begin_transaction()
            producer.abort_transaction()
            assert all(metrics[f"{name}-time-ns-total"] > 0 for name in CALLS)
            assert metrics["io-wait-time-ns-total"] > 0
            assert metrics["io-time-ns-total"] > 0
            assert metrics["select-total"] > 0
            assert metrics["bufferpool-wait-ratio"] == metrics["bufferpool-wait-time-ns-total"] == 0
            assert metrics["incoming-byte-total", {"node-id": "node-1"}] > 0
