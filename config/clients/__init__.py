"""The settings of producers, consumers and administrators, as rows."""

from kavka.config.clients.admin import AdminSettings, admin_settings
from kavka.config.clients.consumer import ConsumerSettings, consumer_settings
from kavka.config.clients.every_client import CommonSettings
from kavka.config.clients.producer import ProducerSettings, producer_settings

__all__ = [
    "AdminSettings",
    "CommonSettings",
    "ConsumerSettings",
    "ProducerSettings",
    "admin_settings",
    "consumer_settings",
    "producer_settings",
]
