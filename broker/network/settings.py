"""What network threads take from the configuration."""


class NetworkSettings:
    """Replaced whole when the configuration changes."""

    __slots__ = (
        "authentication_timeout_ms",
        "max_idle_ms",
        "max_request_size_bytes",
        "receive_buffer_bytes",
        "send_buffer_bytes",
    )

    def __init__(
        self,
        *,
        max_request_size_bytes: int,
        max_idle_ms: int,
        send_buffer_bytes: int,
        receive_buffer_bytes: int,
        authentication_timeout_ms: int = 30_000,
    ) -> None:
        self.max_request_size_bytes = max_request_size_bytes
        self.max_idle_ms = max_idle_ms
        self.send_buffer_bytes = send_buffer_bytes
        self.receive_buffer_bytes = receive_buffer_bytes
        self.authentication_timeout_ms = authentication_timeout_ms
