"""What can go wrong with sending that no broker has a code for."""

from kavka.client.kafka_error import AbortableError, KafkaError, KafkaTimeoutError


class BufferExhaustedError(KafkaTimeoutError):
    """`buffer.memory` was full for as long as `max.block.ms` allows: records come faster than brokers take them."""


class TransactionAbortedError(AbortableError):
    """The record was not sent: its transaction was aborted before."""


class QueueFullError(KafkaError):
    """The 0.8 producer's queue was full for as long as `queue.enqueue.timeout.ms` allows: the record is dropped."""


class FailedToSendMessageError(KafkaError):
    """The 0.8 producer gave up after `message.send.max.retries` tries."""


class TransactionStateError(KafkaError, RuntimeError):
    """A call at the wrong moment: no transaction is open, or one is, or the producer has no transactional id."""
