"""Features that the brokers of a cluster agree on (KIP-584)."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kavka.cli.failing import tried
from kavka.cli.showing import Value
from kavka.client.admin.types.cluster import FeatureUpdate, UpgradeType

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ItemErrors

COLUMNS: Final = ("feature", "oldest_supported", "newest_supported", "finalized", "epoch")
CHANGED: Final = ("feature", "level")


def rows(admin: "Admin", broker_id: int | None) -> list[Sequence[Value]]:
    """A row for each feature; `finalized` is 0 where none is agreed on, as in Kafka's tool."""
    found = admin.describe_features(broker_id=broker_id)
    epoch = found.epoch if found.epoch >= 0 else None
    listed: list[Sequence[Value]] = []
    for name in sorted({*found.supported, *found.finalized}):
        supported, finalized = found.supported.get(name), found.finalized.get(name)
        span = (None, None) if supported is None else (supported.oldest, supported.newest)
        listed.append((name, *span, 0 if finalized is None else finalized.newest, epoch))
    return listed


def updated(
    admin: "Admin", levels: Mapping[str, int], how: UpgradeType, *, dry_run: bool
) -> "tuple[list[Sequence[Value]], ItemErrors | None]":
    """A row for each feature that has its level now, and what failed."""
    updates = {name: FeatureUpdate(level, how) for name, level in levels.items()}
    done, failure = tried(lambda: admin.update_features(updates, validate_only=dry_run))
    return [(name, levels[name]) for name in done], failure


def downgrade_type(args: argparse.Namespace) -> UpgradeType:
    """Whether metadata may be lost."""
    return UpgradeType.UNSAFE_DOWNGRADE if args.unsafe else UpgradeType.SAFE_DOWNGRADE
