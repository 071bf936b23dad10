"""What the data source raises by itself; each message is one line that says what to do."""


class OptionError(ValueError):
    """An option is unknown, wrong, or does not go with another one."""


class DataLossError(RuntimeError):
    """Records that were to be read are not there any more, and `failOnDataLoss` is true."""


class NoProgressError(RuntimeError):
    """A range's next records did not come in `kafkaConsumer.pollTimeoutMs`."""


class PathUnseenError(RuntimeError):
    """An executor does not see the directories of `path`."""


class RowError(ValueError):
    """A row cannot be written: it has no topic, or its column is of a type that records do not have."""


class DeliveryError(RuntimeError):
    """Records were not delivered."""
