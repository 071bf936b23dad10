"""numpy costs a tenth of a second and some megabytes: who reads few records does not load it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.component.client.consumer.serving_consumers import ConsumersBroker, batch_of

ROOT = Path(__file__).parents[4]
IMPORTING = (
    "import sys; from kavka.client import *; Producer, Consumer, Admin, NetworkClient; print('numpy' in sys.modules)"
)
READING = """
import sys
from kavka.client import Consumer

settings = {{"bootstrap.servers": {bootstrap!r}, "group.id": "g", "auto.offset.reset": "earliest"}}
with Consumer(settings) as consumer:
    consumer.subscribe(["birds"])
    count = 0
    while count < {count}:
        for record in consumer.poll(100):
            count += 1
            record.key, record.value, record.headers, record.timestamp_ms
    consumer.commit_sync()
print("numpy" in sys.modules)
"""


def says(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT, timeout=300
    )
    return done.stdout.strip()


def test_importing_the_clients_does_not_load_it() -> None:
    assert says(IMPORTING) == "False"


@pytest.mark.parametrize(("count", "is_loaded"), [(100, "False"), (500, "True")])
def test_a_member_that_polls_small_answers_does_not_load_it(count: int, is_loaded: str) -> None:
    """Of large ones it does, so that this would show."""
    serving = ConsumersBroker([batch_of(count)])
    with serving.serves() as broker:
        assert says(READING.format(bootstrap=broker.bootstrap, count=count)) == is_loaded
