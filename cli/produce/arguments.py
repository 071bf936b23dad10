"""The flags of `kavka produce`."""

import argparse
from pathlib import Path
from typing import Final

from kavka.cli.argument_types import add_properties, name_and_value, number
from kavka.cli.connecting import add_connection_arguments

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SETTINGS: Final = {
    "request_required_acks": "acks",
    "batch_size": "batch.size",
    "message_send_max_retries": "retries",
    "retry_backoff_ms": "retry.backoff.ms",
    "timeout": "linger.ms",
    "request_timeout_ms": "request.timeout.ms",
    "metadata_expiry_ms": "metadata.max.age.ms",
    "max_block_ms": "max.block.ms",
    "max_memory_bytes": "buffer.memory",
    "max_partition_memory_bytes": "batch.size",
    "socket_buffer_size": "send.buffer.bytes",
    "compression_codec": "compression.type",
    "transactional_id": "transactional.id",
}
"""Flags by the setting that each is another name for."""


def add_produce_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    _what(parser)
    _lines(parser)
    _settings(parser)
    add_connection_arguments(parser)


def _what(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic_name", nargs="?", metavar="TOPIC", help="where the records go")
    parser.add_argument("--topic", metavar="TOPIC", help="the same")
    group = parser.add_argument_group("what is read")
    group.add_argument(
        "--file", action="append", default=[], type=Path, metavar="FILE", help="in place of standard input; repeatable"
    )
    group.add_argument("--whole-files", action="store_true", help="each file is one record's value")
    group.add_argument(
        "--json",
        action="store_true",
        help="each line is an object with key, value, headers, partition, timestamp, as consume --output json has it",
    )
    group.add_argument("--key", metavar="TEXT", help="the key of records that have none of their own")
    group.add_argument(
        "--header",
        action="append",
        default=[],
        type=name_and_value,
        metavar="NAME=VALUE",
        help="a header of every record; repeatable",
    )
    group.add_argument("--partition", type=number(0, 2**31 - 1), metavar="N", help="the partition of every record")


def _lines(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how a line is taken apart")
    group.add_argument("--key-separator", metavar="TEXT", help="what stands before it is the key")
    group.add_argument(
        "--headers-delimiter", metavar="TEXT", help="what stands before it are headers: name:value,name:value"
    )
    group.add_argument("--headers-separator", metavar="TEXT", help="between headers (default: a comma)")
    group.add_argument("--headers-key-separator", metavar="TEXT", help="in a header (default: a colon)")
    group.add_argument("--null-marker", metavar="TEXT", help="a key or value of this is null: a tombstone")
    add_properties(
        group, "--reader-property", "--property", dest="reader_properties", help="parse.key=true and its like"
    )
    group.add_argument("--reader-config", type=Path, metavar="FILE", help="a file of these")


def _settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how records are sent")
    group.add_argument("--request-required-acks", "--acks", choices=("0", "1", "all", "-1"), help="default: all")
    group.add_argument(
        "--compression-codec", nargs="?", const="gzip", choices=CODECS, help="without a name gzip (default: none)"
    )
    group.add_argument(
        "--transactional-id", metavar="ID", help="all or nothing: one transaction, aborted by an error or Ctrl-C"
    )
    group.add_argument("--sync", action="store_true", help="each record is waited for before the next is sent")
    for flag, text in (
        ("--batch-size", "bytes of a batch"),
        ("--max-partition-memory-bytes", "the same"),
        ("--message-send-max-retries", "how often what failed is sent again"),
        ("--retry-backoff-ms", "how long before it is"),
        ("--timeout", "ms that records wait for others to go with them"),
        ("--request-timeout-ms", "ms that an answer may take"),
        ("--metadata-expiry-ms", "ms after which metadata are asked for anew"),
        ("--max-block-ms", "ms that sending waits for metadata and memory"),
        ("--max-memory-bytes", "bytes that wait to be sent"),
        ("--socket-buffer-size", "bytes of the connection's send buffer"),
    ):
        group.add_argument(flag, type=number(), metavar="N", help=text)
    add_properties(
        group, "--producer-property", "--command-property", dest="producer_properties", help="a producer's setting"
    )
    group.add_argument(
        "--producer.config",
        dest="producer_config",
        type=Path,
        metavar="FILE",
        help="a file of these, as Kafka's tool has it",
    )
