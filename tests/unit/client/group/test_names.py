"""What users import from `kavka.client.consumer`."""

import inspect
import subprocess
import sys

import pytest

import kavka.client.consumer
from kavka.client.consumer import Assignor, MemberAssignment
from kavka.client.topic_partition import TopicPartition


def test_every_name_is_there() -> None:
    for name in kavka.client.consumer._LATER:
        assert getattr(kavka.client.consumer, name).__name__ == name
    with pytest.raises(AttributeError):
        kavka.client.consumer.Nothing  # noqa: B018  # asking is what is tried


def test_a_producer_that_looks_in_loads_no_consumer() -> None:
    program = "import kavka.client.consumer.group.port, sys; print('kavka.client.consumer.consumer' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_the_example_of_an_assignor_runs() -> None:
    lines = inspect.cleandoc(Assignor.__doc__ or "").splitlines()
    program = "\n".join(line.removeprefix(" " * 4) for line in lines if line.startswith(" " * 4) or not line.strip())
    names: dict[str, object] = {}
    exec(program, names)
    assignor = names["ToTheFirst"]
    assert isinstance(assignor, type)
    assert issubclass(assignor, Assignor)
    from tests.unit.client.group.assignor_cases import one_topic

    cluster, subscriptions = one_topic("t", 2, ["b", "a"])
    assert assignor().assign(cluster, subscriptions) == {
        "a": MemberAssignment((TopicPartition("t", 0), TopicPartition("t", 1))),
        "b": MemberAssignment(()),
    }
