"""`kavka storage adopt [server.properties] [--config TOPIC:NAME=VALUE ...] [--zookeeper HOST:PORT]`.

Before the first start on a stopped Kafka's directories: gives its topics the configurations, which lie in ZooKeeper.
"""

import argparse

HELP = "take over a stopped Kafka's directories, with its topics' configurations"
EXAMPLE = "kavka storage adopt server.properties --config orders:cleanup.policy=compact"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config_file", nargs="?", metavar="server.properties", help="the broker's settings")
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE", help="a broker's setting")
    parser.add_argument("--zookeeper", metavar="HOST:PORT[/CHROOT]", help="read the configurations from there")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="TOPIC:NAME=VALUE",
        help="set one; no value: the broker's default",
    )


def run(args: argparse.Namespace) -> int:
    import logging
    import os

    from kavka.cli.adopting import REFUSED, adopt
    from kavka.cli.output import complain, emit
    from kavka.config.sources import load_config

    # What goes wrong is said below, once: without a handler logging would print it too.
    for name in ("kavka", "kazoo"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    try:
        config = load_config(args.config_file, args.override, os.environ).config
        topics = adopt(config, args.zookeeper, [_parsed(text) for text in args.config])
    except (*REFUSED, ValueError) as error:
        return complain("kavka storage adopt", error)
    for topic, overrides in topics.items():
        emit(f"{topic}: {', '.join(f'{name}={value}' for name, value in sorted(overrides.items())) or 'defaults'}")
    if not topics:
        emit("no topics")
    return 0


def _parsed(text: str) -> tuple[str, str, str]:
    topic, colon, setting = text.partition(":")
    name, equals, value = setting.partition("=")
    if not (topic and colon and name and equals):
        raise ValueError(f"--config {text}: expected TOPIC:NAME=VALUE")
    return topic, name.strip(), value.strip()
