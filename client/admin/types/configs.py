"""Settings of topics, brokers and others."""

import enum
from typing import NamedTuple


class ConfigResourceType(enum.IntEnum):
    """What has settings.

    ConfigResource(ConfigResourceType.CLIENT_METRICS, "mine")
    """

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def _missing_(cls, value: object) -> "ConfigResourceType | None":
        return cls.UNKNOWN if isinstance(value, int) else None


class ConfigResource(NamedTuple):
    """A thing with settings: a topic, a broker by its id as text ("" for what holds for all of them), a group, ...

    ConfigResource.topic("visits")
    ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
    """

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        """A topic by its name."""
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int | None = None) -> "ConfigResource":
        """Without an id: what holds for all brokers of the cluster."""
        return cls(ConfigResourceType.BROKER, "" if broker_id is None else str(broker_id))

    @classmethod
    def group(cls, group_id: str) -> "ConfigResource":
        """A group by its id."""
        return cls(ConfigResourceType.GROUP, group_id)


class ConfigSource(enum.IntEnum):
    """Where a value comes from.

    visits = ConfigResource.topic("visits")
    for setting in admin.describe_configs([visits])[visits].values():
        if setting.source is ConfigSource.DYNAMIC_TOPIC_CONFIG:
            print(setting.name, setting.value)
    """

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> "ConfigSource | None":
        return cls.UNKNOWN if isinstance(value, int) else None


class ConfigType(enum.IntEnum):
    """What a value is (KIP-569). UNKNOWN where brokers do not tell.

    visits = ConfigResource.topic("visits")
    print(admin.describe_configs([visits])[visits]["retention.ms"].type is ConfigType.LONG)
    """

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @classmethod
    def _missing_(cls, value: object) -> "ConfigType | None":
        return cls.UNKNOWN if isinstance(value, int) else None


class ConfigSynonym(NamedTuple):
    """A value that would hold if those before it were not set.

    visits = ConfigResource.topic("visits")
    found = admin.describe_configs([visits], names=["retention.ms"], include_synonyms=True)
    for synonym in found[visits]["retention.ms"].synonyms:
        print(synonym.name, synonym.value, synonym.source.name)
    """

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting as it is. `value` is None where it is sensitive, or not set.

    visits = ConfigResource.topic("visits")
    for setting in admin.describe_configs([visits])[visits].values():
        if not setting.is_default:
            print(setting.name, setting.value)
    """

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class AlterConfigOpType(enum.IntEnum):
    """What to do to a setting; the last two are for lists (KIP-339).

    AlterConfigOp("retention.ms", None, AlterConfigOpType.DELETE)
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One change of one setting.

    AlterConfigOp("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    """

    name: str
    value: str | None
    operation: AlterConfigOpType = AlterConfigOpType.SET
