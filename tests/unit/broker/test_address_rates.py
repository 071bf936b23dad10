"""Connection quotas of addresses whose first one cannot be used, for what it says or for want of a thread."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.broker.quotas import connections
from kavka.broker.quotas.connections import AddressRates
from kavka.broker.settings.entity_changes import EntityChanges
from kavka.config.errors import ConfigError
from tests.support.processes import wait_until

HERE = "10.0.0.9"


def test_a_first_quota_that_cannot_be_used_does_not_keep_the_next_from_counting() -> None:
    current = SimpleNamespace(quota_window_num=11, quota_window_size_seconds=1)
    services: Any = SimpleNamespace(config=SimpleNamespace(current=current))
    entities = EntityChanges(services, lambda: 1_000_000_000)
    followed: list[AddressRates | None] = []
    entities.rates_to(followed.append)

    with pytest.raises(ConfigError):
        entities.changed(f"ips/{HERE}", {"connection_creation_rate": "many"})
    assert followed == []
    entities.changed(f"ips/{HERE}", {"connection_creation_rate": "1"})
    (rates,) = followed
    assert rates is not None
    assert [rates.throttle_ms(HERE) for _ in range(11)] == [0] * 10 + [1000]


def test_a_host_for_which_there_was_no_thread_is_looked_up_by_the_next_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(connections, "address_of", lambda host: HERE)
    rates = AddressRates(11, 1000, lambda: 100_000)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ConfigError, match="start new thread"):
            rates.apply("a.host", {"connection_creation_rate": "1"})
    rates.apply("a.host", {"connection_creation_rate": "2"})
    wait_until(lambda: rates._hosts == {"a.host": HERE}, 60, "the name is not looked up")
    assert [rates.throttle_ms(HERE) for _ in range(21)] == [0] * 20 + [500]
