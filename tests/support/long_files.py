"""Which test files take longest: they begin first, so that all workers end together.

A file's tests stay in one worker, and one that is long and begins last keeps everybody waiting. The seconds are rough
and only their order counts; `make test PYTEST_ARGS=--durations=100` tells them anew. A file of integration/ that is not
here comes before those of component/, and these before those of unit/.
"""

from pathlib import PurePath
from typing import Final

SECONDS: Final = {
    "tests/integration/cluster/test_chaos.py": 200,
    "tests/integration/client/test_shared_groups.py": 170,
    "tests/integration/client/test_groups.py": 140,
    "tests/integration/cluster/test_mixed_cluster.py": 70,
    "tests/integration/pipeline/test_running_jobs.py": 65,
    "tests/integration/transactions/test_exactly_once.py": 60,
    "tests/integration/client/cluster/test_faults.py": 60,
    "tests/integration/cluster/test_kafka_tools.py": 50,
    "tests/integration/cluster/test_moving_coordinators.py": 45,
    "tests/integration/oracle/test_same_answers_as_3_9.py": 50,
    "tests/integration/transactions/test_kill_at_every_step.py": 50,
    "tests/integration/groups/test_consumer_protocol.py": 45,
    "tests/integration/pipeline/test_source.py": 45,
    "tests/integration/groups/test_members_come_and_go.py": 40,
    "tests/integration/robustness/test_kill_under_load.py": 35,
    "tests/integration/groups/test_broker_restarts.py": 35,
    "tests/integration/client/cluster/test_leaders_and_controllers.py": 35,
    "tests/integration/cluster/test_unclean_elections.py": 30,
    "tests/integration/cluster/test_zookeeper_gone.py": 30,
    "tests/integration/cluster/test_zombie_leaders.py": 25,
    "tests/integration/oracle/test_same_answers_as_4_3.py": 35,
    "tests/integration/clients/test_old_java_clients.py": 30,
    "tests/integration/test_adoption_of_kafka.py": 30,
    "tests/integration/test_compaction.py": 30,
    "tests/integration/robustness/test_failing_disks.py": 30,
    "tests/integration/transactions/test_streams.py": 25,
    "tests/integration/test_wheel.py": 50,
    "tests/integration/pipeline/test_sinks_in_spark.py": 40,
    "tests/integration/pipeline/test_jobs_in_spark.py": 25,
    "tests/integration/testing/test_ephemeral.py": 25,
    "tests/integration/docs/test_moving_back.py": 20,
    "tests/integration/groups/test_group_tools.py": 20,
    "tests/integration/test_dynamic_settings.py": 20,
    "tests/integration/robustness/test_limits.py": 20,
    "tests/integration/robustness/test_stopping.py": 20,
    "tests/integration/robustness/test_wrong_settings.py": 20,
    "tests/integration/transactions/test_fencing.py": 20,
    "tests/integration/transactions/test_isolation.py": 20,
    "tests/integration/transactions/test_transaction_tools.py": 20,
    "tests/integration/clients/test_java_console.py": 15,
    "tests/integration/groups/test_slow_members.py": 15,
    "tests/integration/robustness/test_dying_threads.py": 15,
    "tests/integration/oracle/test_same_consumer_groups.py": 15,
    "tests/component/storage/test_compaction_crashes.py": 40,
    "tests/component/storage/test_transactions_over_restarts.py": 20,
    "tests/component/storage/test_compaction_refused.py": 15,
}
BY_FOLDER: Final = {"integration": 5, "component": 1}


def expected_seconds(path: PurePath) -> int:
    """About how long a file takes, by its path below the repository."""
    return SECONDS.get(path.as_posix(), max((BY_FOLDER.get(part, 0) for part in path.parts), default=0))
