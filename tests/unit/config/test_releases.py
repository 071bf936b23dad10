"""By which releases the brokers of a cluster may talk."""

import pytest

from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError

ON_ZOOKEEPER = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


@pytest.mark.parametrize("release", ["2.7", "2.8-IV0", "0.10.2", "4.0-IV0"])
def test_a_release_that_cannot_be_spoken_on_zookeeper_is_refused(release: str) -> None:
    with pytest.raises(ConfigError, match=r"inter\.broker\.protocol\.version.*2\.8-IV1 to 3\.9-IV0"):
        BrokerConfig({**ON_ZOOKEEPER, "inter.broker.protocol.version": release})


@pytest.mark.parametrize("release", ["2.8", "3.3.2", "3.9-IV0"])
def test_a_release_that_is_spoken_is_accepted(release: str) -> None:
    BrokerConfig({**ON_ZOOKEEPER, "inter.broker.protocol.version": release})


def test_a_broker_that_stands_alone_may_have_any_release() -> None:
    BrokerConfig({"inter.broker.protocol.version": "2.0"})
