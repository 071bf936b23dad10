"""The server: network, request queue, handlers, replicas."""
