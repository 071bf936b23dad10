"""Talking to brokers: connections, requests and their answers."""

from kavka.client.backoff import ExponentialBackoff
from kavka.client.call import RequestBuilder
from kavka.client.errors import (
    AnswerTimeoutError,
    BadAnswerError,
    ClientError,
    DisconnectedError,
    UnsupportedVersionError,
)
from kavka.client.metadata_port import MetadataPort
from kavka.client.network_client import NetworkClient
from kavka.client.node import Node
from kavka.client.settings import ClientSettings

__all__ = [
    "AnswerTimeoutError",
    "BadAnswerError",
    "ClientError",
    "ClientSettings",
    "DisconnectedError",
    "ExponentialBackoff",
    "MetadataPort",
    "NetworkClient",
    "Node",
    "RequestBuilder",
    "UnsupportedVersionError",
]
