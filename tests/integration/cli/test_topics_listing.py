"""`kavka topics list` shows the topics that are there."""

from kavka.client import Admin
from kavka.client.admin import NewTopic
from tests.integration.cli.conftest import Kavka
from tests.support.json_documents import document
from tests.support.server import RunningServer


def test_topics_are_listed_with_their_ids(broker: RunningServer, run: Kavka, topic: str) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic)])

    assert topic in run("topics", "list").out.splitlines()
    (listed,) = document("topics-list", run("topics", "list", "--topic", topic, "--output", "json").out)
    assert listed["name"] == topic
    assert listed["topic_id"] != "A" * 22
