"""The word count of the examples: exactly once, however often it is run, and whatever it left open."""

from examples.word_count.count import count_words
from examples.word_count.show import totals
from kavka.client import Producer
from tests.integration.client.test_producer import create

LINES = ["the jackdaw and the crow", "the crow", "a jackdaw"]


def test_words_are_counted_once(bootstrap: str, topic: str) -> None:
    counts = f"{topic}-counts"
    create(bootstrap, topic, 2)
    create(bootstrap, counts, 2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number, line in enumerate(LINES * 10):
            producer.send(topic, line.encode(), partition=number % 2)
    assert count_words(bootstrap, topic, counts, f"count-{topic}", idle_s=5) == 30
    # A run that is killed in the middle leaves a transaction open: it counts for nothing.
    open_ = Producer(bootstrap_servers=bootstrap, transactional_id=f"count-{topic}")
    open_.init_transactions()
    open_.begin_transaction()
    open_.send(counts, b"1000", key=b"crow").result(60)
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"crow crow")
    assert count_words(bootstrap, topic, counts, f"count-{topic}", idle_s=5) == 1
    open_.close(0)
    assert totals(bootstrap, counts) == {"the": 30, "jackdaw": 20, "and": 10, "crow": 22, "a": 10}
