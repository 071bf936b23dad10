"""Who knows the logs' bounds: brokers."""

from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.read_options import ReadOptions


def log_bounds(options: ReadOptions) -> LogBounds:
    """To be closed by the caller. Raises ConfigError."""
    from kavka.pipeline.source.broker_logs import BrokerLogs

    return BrokerLogs(options.client, is_committed=options.is_committed)
