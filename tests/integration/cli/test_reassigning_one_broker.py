"""`kavka reassign` as far as one broker goes, at Kavka and both Kafkas; tests/integration/cluster has three."""

import json
from pathlib import Path

from kavka.client import Admin
from kavka.client.admin import ConfigResource, NewTopic
from tests.integration.cli.conftest import Kavka
from tests.support.json_documents import document
from tests.support.server import RunningServer


def test_what_is_where_it_is_to_be_is_verified_and_no_throttle_stays(
    broker: RunningServer, run: Kavka, topic: str, tmp_path: Path
) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        (node,) = admin.describe_cluster().nodes
        admin.create_topics([NewTopic(topic, 2, 1)])
        assert run("reassign", "plan", "--balance", "--topic", topic).out == "nothing is to move\n"
        topics, file = tmp_path / "topics.json", tmp_path / "plan.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
        generated = run(
            "reassign", "generate", "--topics-to-move-json-file", str(topics), "--broker-list", str(node.id)
        )
        current, proposed = [line for line in generated.out.splitlines() if line.startswith("{")]
        assert current == proposed
        file.write_text(proposed)

        given = ("--reassignment-json-file", str(file))
        done = run("reassign", "execute", *given, "--throttle", "1000", "--output", "json")
        assert (done.code, done.err) == (
            0,
            f"throttles are removed from brokers {node.id} and topics {topic}\n",
        )
        assert [row["bytes_to_move"] for row in document("reassign-plan", done.out)] == [0, 0]
        verified = run("reassign", "verify", *given, "--preserve-throttles", "--output", "json")
        rows = document("reassign-verify", verified.out)
        assert [(row["state"], row["current"]) for row in rows] == [("completed", [node.id])] * 2
        cancelled = run("reassign", "cancel", *given, "--preserve-throttles")
        assert (cancelled.code, cancelled.err) == (0, "cancelled: 0 partitions, 0 log directory moves\n")
        entries = admin.describe_configs([ConfigResource.topic(topic)])[ConfigResource.topic(topic)]
        assert not [name for name, entry in entries.items() if "throttled" in name and not entry.is_default]
    too_many = run("reassign", "plan", "--replication-factor", "2", "--topic", topic)
    assert (too_many.code, too_many.err) == (
        1,
        f"kavka reassign plan: {topic}-0 needs 2 brokers, and 1 may have it\n",
    )
