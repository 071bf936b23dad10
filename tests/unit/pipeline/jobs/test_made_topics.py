"""The topics that jobs make, by brokers that know less."""

from collections.abc import Iterable
from typing import Any, cast

from kavka.client import Admin, NewTopic
from kavka.client.api_errors import InvalidConfigurationError
from kavka.pipeline.jobs.made_topics import make_topic


class OldAdmin:
    """Of brokers that know one setting alone."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def list_topics(self) -> dict[str, Any]:
        return self.made

    def create_topics(self, topics: Iterable[NewTopic]) -> None:
        for each in topics:
            configs = dict(each.configs or {})
            if configs.keys() - {"retention.ms"}:
                raise InvalidConfigurationError("Unknown topic config name")
            self.made[each.name] = configs


def test_brokers_that_do_not_know_limits_of_times_make_topics_without_them() -> None:
    admin = OldAdmin()
    make_topic(cast(Admin, admin), "dead", 1, {"retention.ms": "-1"})
    assert admin.made == {"dead": {"retention.ms": "-1"}}
