"""Every setting as a row, and where its value comes from."""

from kavka.config.broker_config import BrokerConfig, changed_settings
from kavka.config.errors import ConfigError
from kavka.config.listeners import Listener
from kavka.config.topic_config import TopicConfig, validate_topic_overrides

__all__ = ["BrokerConfig", "ConfigError", "Listener", "TopicConfig", "changed_settings", "validate_topic_overrides"]
