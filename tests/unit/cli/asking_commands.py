"""Every command that asks a cluster, with the arguments that it needs to come as far as that."""

from pathlib import Path
from typing import Final

from kavka.cli.parsing import Parser
from kavka.cli.tree import Command, verb_of

ASKING: Final = {
    "acls add": "--allow-principal User:alice --operation Read --topic orders",
    "acls list": "",
    "acls remove": "--topic orders --force",
    "brokers list": "",
    "brokers versions": "",
    "cluster health": "",
    "cluster id": "",
    "cluster unregister": "--id 3",
    "configs alter": "--topic orders --add-config retention.ms=6000",
    "configs describe": "--topic orders",
    "consume": "orders --from-beginning --exit-at-end",
    "diff brokers": "1 2",
    "diff clusters": "--to-bootstrap-server localhost:1",
    "diff topics": "orders payments",
    "elect": "--election-type preferred --all-topic-partitions",
    "features describe": "",
    "features disable": "--feature group.version",
    "features downgrade": "--feature group.version=0",
    "features upgrade": "--feature group.version=1",
    "groups delete": "--group billing",
    "groups delete-offsets": "--group billing --topic orders",
    "groups describe": "--group billing",
    "groups list": "",
    "groups remove-members": "--group billing --group-instance-id worker",
    "groups reset-offsets": "--group billing --topic orders --to-earliest",
    "groups watch": "--group billing",
    "logdirs describe": "",
    "offsets get": "--topic orders",
    "perf consume": "--topic orders --num-records 1",
    "perf e2e": "--topic orders --num-records 1 --record-size 1",
    "perf produce": "--topic orders --num-records 1 --record-size 1 --throughput -1",
    "produce": "orders --file {secret}",
    "producers describe": "--topic orders",
    "quorum describe": "--status",
    "quotas alter": "--user alice --add-config producer_byte_rate=1",
    "quotas describe": "",
    "quotas resolve": "--user alice",
    "reassign cancel": "--reassignment-json-file {plan}",
    "reassign execute": "--reassignment-json-file {plan}",
    "reassign generate": "--topics-to-move-json-file {topics} --broker-list 1,2",
    "reassign list": "",
    "reassign plan": "--balance",
    "reassign verify": "--reassignment-json-file {plan}",
    "records delete": "--topic orders --partition 0 --offset 1",
    "tokens create": "",
    "tokens describe": "",
    "tokens expire": "--hmac c2VjcmV0",
    "tokens renew": "--hmac c2VjcmV0",
    "topics alter": "orders --partitions 3",
    "topics apply": "{declared}",
    "topics create": "orders",
    "topics delete": "orders",
    "topics describe": "orders",
    "topics list": "",
    "transactions abort": "--topic orders --partition 0 --start-offset 1",
    "transactions describe": "billing",
    "transactions describe-producers": "--topic orders",
    "transactions find-hanging": "--topic orders",
    "transactions force-terminate": "--transactional-id billing",
    "transactions list": "",
    "users add": "--user alice --password-file {secret}",
    "users alter": "--user alice --password-file {secret}",
    "users delete": "--user alice --mechanism SCRAM-SHA-512",
    "users list": "",
}
"""By the command. What stands in braces is a file of `FILES`."""
FILES: Final = {
    "declared": "[topics.orders]\npartitions = 3\n",
    "plan": '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]}',
    "secret": "secret\n",
    "topics": '{"version": 1, "topics": [{"topic": "orders"}]}',
}


def words_of(name: str, folder: Path) -> list[str]:
    """The whole command, without `kavka`; its files are in `folder`."""
    paths = {}
    for file, text in FILES.items():
        paths[file] = folder / file
        paths[file].write_text(text)
    return [*name.split(), *ASKING[name].format(**paths).split()]


def takes_a_broker(command: Command) -> bool:
    """Whether it has the flag by which a cluster is found."""
    parser = Parser("kavka", "")
    verb_of(command).add_arguments(parser)
    return any("--bootstrap-server" in action.option_strings for action in parser._actions)
