"""The elected controller: who leads what, and telling the brokers so."""

from kavka.cluster.controller.controller import Controller

__all__ = ["Controller"]
