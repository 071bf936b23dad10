"""Brokers killed, frozen, cut off and rolled under a producer, groups of both protocols and transactions of both
versions: nothing acknowledged lost, doubled or out of order, each callback once, no listener told twice, and commits
stay.
"""

import threading
from contextlib import ExitStack
from functools import partial

import pytest

from kavka.client import Admin, Producer
from kavka.client.admin import FeatureUpdate, NewTopic, UpgradeType
from tests.support.accounted_loads import PROTOCOLS, Loads, Survivors, rows_of
from tests.support.client_cluster import PATIENT, QUICK, ClientCluster
from tests.support.client_faults import COORDINATORS, Faults

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1200)]

SLEPT = "slept"
TIMEOUT_S = 120.0
FEATURE = "transaction.version"


@pytest.fixture(scope="module")
def survivors(cluster: ClientCluster) -> Survivors:
    """All loads go through all faults together, which takes no longer than one of them would.

    A producer sleeps while all brokers move to other addresses; `SLEPT` has what it sent before and after.
    """
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(PATIENT, bootstrap_servers=cluster.bootstrap))
        admin.update_features({FEATURE: FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)})
        loads = Loads(cluster, admin)
        faults = Faults(cluster, admin, loads.all, loads.topics)
        groups, transactions = COORDINATORS
        loads.start()
        faults.kill(faults.leader(groups))
        faults.pause(faults.leader(transactions))
        faults.freeze(faults.leader(transactions))
        faults.cut_off(faults.leader(transactions))
        admin.update_features({FEATURE: FeatureUpdate(2)})
        faults.freeze(faults.leader(transactions))
        faults.cut_off(faults.leader(loads.source))
        admin.create_topics([NewTopic(SLEPT, num_partitions=1)])
        sleeper = stack.enter_context(Producer(QUICK, bootstrap_servers=cluster.door.bootstrap))
        sleeper.send(SLEPT, b"before").result(TIMEOUT_S)
        morning = threading.Event()
        stack.callback(morning.set)
        sleeper._thread.submit(partial(_sleep, morning))
        faults.roll()
        morning.set()
        sleeper.send(SLEPT, b"after").result(TIMEOUT_S)
        return loads.finish(cluster.bootstrap)


def _sleep(morning: threading.Event) -> None:
    morning.wait()


def test_a_producer_loses_doubles_and_reorders_nothing(survivors: Survivors) -> None:
    survivors.feeding.check(survivors.rows)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_read_all_and_their_commits_stay(survivors: Survivors, admin: Admin, protocol: str) -> None:
    survivors.check_reading(protocol, admin)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_record_is_copied_once_by_transactions_of_both_versions(
    cluster: ClientCluster, survivors: Survivors, admin: Admin, protocol: str
) -> None:
    survivors.check_copies(protocol, admin, cluster.bootstrap)
    assert survivors.copies[protocol].versions == {1, 2}


@pytest.mark.usefixtures("survivors")
def test_who_slept_while_all_brokers_moved_begins_anew_where_it_began(cluster: ClientCluster) -> None:
    """KIP-899: none of the addresses that it knew is anybody's any more."""
    (rows,) = rows_of(cluster.bootstrap, SLEPT, 1)
    assert [row.value for row in rows] == [b"before", b"after"]
