"""A loop over a consumer that polls, all paused, to stay a member while it works: what commits by themselves store."""

from kavka.client import Consumer
from kavka.protocol.messages.offset_commit import OffsetCommitRequest
from tests.component.client.consumer.serving_consumers import QUICK, TOPIC, ConsumersBroker, batch_of
from tests.support.processes import wait_until

TIMEOUT_S = 120.0


def test_a_commit_by_the_interval_leaves_out_what_the_loop_was_not_given() -> None:
    serving = ConsumersBroker([batch_of(3)])
    settings = {**QUICK, "enable_auto_commit": True, "auto_commit_interval_ms": 1}
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, group_id="g", **settings) as consumer:
        consumer.subscribe([TOPIC])
        for record in consumer:
            consumer.pause(consumer.assignment())
            before = len(serving.requests(OffsetCommitRequest))

            def is_committed(least: int = before + 2) -> bool:
                assert not consumer.poll(20)
                return len(serving.requests(OffsetCommitRequest)) >= least

            wait_until(is_committed, TIMEOUT_S, "nothing is committed")
            assert serving.committed == record.offset + 1
            consumer.resume(consumer.assignment())
            if record.offset == 2:
                break
