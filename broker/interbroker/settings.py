"""How this broker talks to others."""

from typing import TYPE_CHECKING, Final

from kavka.client import ClientSettings

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig

RECONNECT_MS: Final = 50
RECONNECT_MAX_MS: Final = 200
"""A broker that cannot be reached is gone when its session is: until then it is tried often, as Kafka does it."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Of all that is asked on the `inter-broker` thread: the largest answers tell of 100,000 partitions."""


def inter_broker_settings(config: "BrokerConfig", broker_id: int) -> ClientSettings:
    """Those of the `inter-broker` thread's network client."""
    return ClientSettings(
        client_id=str(broker_id),
        request_timeout_ms=config.request_timeout_ms,
        reconnect_backoff_ms=RECONNECT_MS,
        reconnect_backoff_max_ms=RECONNECT_MAX_MS,
        connection_setup_timeout_ms=config.socket_connection_setup_timeout_ms,
        connection_setup_timeout_max_ms=config.socket_connection_setup_timeout_max_ms,
        max_in_flight=1,
        max_answer_bytes=MAX_ANSWER_BYTES,
    )
