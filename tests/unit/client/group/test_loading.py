"""partition.assignment.strategy."""

import pytest

from kavka.client.consumer.group.assignors.assignor import RebalanceProtocol
from kavka.client.consumer.group.assignors.loading import load_assignors, protocol_of
from kavka.client.consumer.group.assignors.range import RangeAssignor
from kavka.client.consumer.group.assignors.round_robin import RoundRobinAssignor
from kavka.client.consumer.group.group_settings import group_settings
from kavka.config.clients.consumer import consumer_settings
from kavka.config.errors import ConfigError


@pytest.mark.parametrize(
    "strategy",
    [
        "range",
        "org.apache.kafka.clients.consumer.RangeAssignor",
        "class org.apache.kafka.clients.consumer.RangeAssignor",
        "kavka.client.consumer.group.assignors.range.RangeAssignor",
        RangeAssignor,
        RangeAssignor(),
    ],
)
def test_an_assignor_is_found_however_it_is_named(strategy: object) -> None:
    (assignor,) = load_assignors([strategy])
    assert type(assignor) is RangeAssignor


@pytest.mark.parametrize("strategies", [[], ["nothing"], ["no.such.module.Assignor"], ["range", RangeAssignor], [int]])
def test_what_is_no_assignor_is_refused(strategies: list[object]) -> None:
    with pytest.raises(ConfigError):
        load_assignors(strategies)


def test_members_use_the_protocol_that_all_their_assignors_have() -> None:
    assert protocol_of(load_assignors(["cooperative-sticky"])) is RebalanceProtocol.COOPERATIVE
    assert protocol_of(load_assignors(["range", "cooperative-sticky"])) is RebalanceProtocol.EAGER


def test_assignors_without_a_protocol_in_common_are_refused() -> None:
    class CooperativeOnly(RoundRobinAssignor):
        name = "only"
        protocols = (RebalanceProtocol.COOPERATIVE,)

    with pytest.raises(ConfigError):
        protocol_of(load_assignors(["range", CooperativeOnly]))


def test_a_groups_settings_come_from_the_consumers() -> None:
    settings = group_settings(consumer_settings({"bootstrap.servers": "h:1", "group.id": "g"}))
    assert [assignor.name for assignor in settings.assignors] == ["range", "cooperative-sticky"]
    assert (settings.session_timeout_ms, settings.max_poll_interval_ms) == (45_000, 300_000)
    new = group_settings(consumer_settings(bootstrap_servers="h:1", group_id="g", group_protocol="CONSUMER"))
    assert new.uses_consumer_protocol
    assert new.assignors == []
