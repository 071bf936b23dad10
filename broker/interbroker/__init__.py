"""What this broker asks of other brokers, and as the controller tells them. Loaded in a cluster of brokers only."""

from kavka.broker.interbroker.broker_requests import BrokerRequests
from kavka.broker.interbroker.controller_channel import ControllerChannel
from kavka.broker.interbroker.gauges import register_inter_broker_gauges
from kavka.broker.interbroker.inter_broker import InterBroker
from kavka.broker.interbroker.network_channels import NetworkChannels
from kavka.broker.interbroker.settings import inter_broker_settings

__all__ = [
    "BrokerRequests",
    "ControllerChannel",
    "InterBroker",
    "NetworkChannels",
    "inter_broker_settings",
    "register_inter_broker_gauges",
]
