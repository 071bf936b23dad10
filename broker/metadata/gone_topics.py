"""What a broker keeps by topic goes with the topic."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kavka.broker.core_services import CoreServices
    from kavka.broker.metadata.metadata_cache import MetadataSnapshot


def forget_gone_topics(services: "CoreServices", old: "MetadataSnapshot", new: "MetadataSnapshot") -> None:
    """The cluster has changed: see `MetadataCache.on_change`."""
    if len(new.topics) >= len(old.topics) and new.topics.keys() >= old.topics.keys():
        return
    for topic in old.topics.keys() - new.topics.keys():
        services.metrics.forget_topic(topic)
        services.config.topic_gone(topic)
        services.logs.forget_topic_config(topic)
    services.changed()
