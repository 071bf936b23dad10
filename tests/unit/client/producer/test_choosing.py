"""partitioner.adaptive.partitioning.enable (KIP-794): whether what waits on a partition keeps others away."""

from types import MappingProxyType
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo

DRAWS = 300
LONG = 10_000
_PARTITIONS = MappingProxyType({number: PartitionInfo(0, 0) for number in range(3)})
CLUSTER = Cluster(topics={"birds": TopicInfo("birds", bytes(16), 0, False, _PARTITIONS)})


@pytest.mark.parametrize("settings", [{}, {"partitioner_adaptive_partitioning_enable": False}], ids=["on", "off"])
def test_a_partition_on_which_much_waits_is_chosen_as_often_as_others_only_without_it(settings: Any) -> None:
    with Producer(bootstrap_servers="127.0.0.1:1", **settings) as producer:
        topic = producer._accumulator.topic("birds", CLUSTER)
        assert topic is not None
        slow = topic.queues[0]
        waiting: Any = [None] * LONG
        slow.batches.extend(waiting)
        count = 0
        for _ in range(DRAWS):
            topic.sticky = None
            count += topic.stick() is slow
        slow.batches.clear()
    # By chance alone it is a third of them, and with it one of 20,000.
    if settings:
        assert DRAWS / 10 < count < DRAWS * 2 / 3
    else:
        assert count < DRAWS / 10
