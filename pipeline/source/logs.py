"""Who knows the logs' bounds: brokers, where they are named, or else the files."""

from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.read_options import ReadOptions


def log_bounds(options: ReadOptions) -> LogBounds:
    """To be closed by the caller. Raises ConfigError."""
    if not options.client.get("bootstrap.servers"):
        from kavka.pipeline.source.file_logs import FileLogs

        return FileLogs(options.directories, options.isolation_level)
    from kavka.pipeline.source.broker_logs import BrokerLogs

    return BrokerLogs(options.client, is_committed=options.is_committed)
