"""Why offsets were not committed, where that is no error code of the protocol's."""

from kavka.client.kafka_error import KafkaError, RetriableError


class CommitFailedError(KafkaError):
    """This consumer is no member of the group any more, so others may have its partitions: what it did will be redone.

    It was too slow between two polls (`max.poll.interval.ms`, `max.poll.records`), or away. The next poll joins anew.
    """

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message
            or "The offsets were not committed, as this consumer is no member of its group (any more): the time "
            "between two polls was longer than max.poll.interval.ms, or it was not heard of for session.timeout.ms."
        )


class RetriableCommitFailedError(RetriableError):
    """An asynchronous commit failed by something that passes. Commit again: the newer offsets are the better ones."""
