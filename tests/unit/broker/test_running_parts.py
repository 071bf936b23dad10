"""A change of settings reaches every part of the broker, whatever the others do."""

from unittest.mock import Mock

import pytest

from kavka.broker.settings.running_parts import RunningParts
from kavka.config.broker_config import BrokerConfig


@pytest.mark.parametrize(
    "failing",
    [
        "sockets.reconfigure",
        "gates.keep_only",
        "logs.update_broker_config",
        "cleaner.reconfigure",
        "scheduler.intervals_changed",
    ],
)
def test_a_part_that_fails_keeps_no_other_from_following(failing: str) -> None:
    stage = Mock()
    part, _, method = failing.partition(".")
    getattr(getattr(stage, part), method).side_effect = ValueError("as an example")
    parts = RunningParts(stage.sockets, stage.gates, stage.logs, stage.cleaner, stage.scheduler, stage.announce)
    new, pending = BrokerConfig({"background.threads": "3"}), [BrokerConfig({"log.cleaner.threads": "2"})]

    with pytest.raises(ValueError, match="as an example"):
        parts.changed(BrokerConfig(), new, frozenset({"background.threads", "listeners"}), pending)

    stage.sockets.reconfigure.assert_called_once_with(new, pending)
    stage.gates.keep_only.assert_called_once_with([new, *pending])
    stage.logs.update_broker_config.assert_called_once_with(new)
    stage.cleaner.reconfigure.assert_called_once_with(new, pending)
    stage.scheduler.resize.assert_called_once_with(3)
    stage.scheduler.intervals_changed.assert_called_once_with()
    stage.announce.assert_called_once_with(new)


def test_what_is_prepared_is_not_applied() -> None:
    stage = Mock()
    parts = RunningParts(stage.sockets, stage.gates, stage.logs, stage.cleaner, stage.scheduler, stage.announce)

    parts.prepare(BrokerConfig({"log.cleaner.threads": "2"}))

    told = [name for name, _, _ in stage.mock_calls]
    assert told == ["gates.prepare", "sockets.prepare", "cleaner.prepare"]
