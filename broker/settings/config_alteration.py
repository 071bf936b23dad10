"""AlterConfigs and IncrementalAlterConfigs: what they share of altering configurations on a client's behalf.

An alteration is a function from the settings that are stored to those that shall be. The controller runs it on what is
stored at that moment, so that two increments at once do not lose one another.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from kavka.broker.security.acl import Operation
from kavka.broker.settings.config_answers import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    own_broker_id,
    require_on,
)
from kavka.broker.settings.dynamic_config import PendingChange
from kavka.cluster.controller.requests import ConfigEntity
from kavka.cluster.entity_configs import ConfigUpdate
from kavka.cluster.promise import Promise, gather
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.config.group_config import GroupConfig, validate_group_overrides
from kavka.config.ignored import SASL_JAVA
from kavka.config.listener_prefix import row_of, split_prefix, without_effect
from kavka.config.setting import Setting
from kavka.config.topic_config import topic_rows, validate_topic_overrides
from kavka.config.values import HIDDEN
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context
    from kavka.broker.services import Services

MOST_FOR_LISTENERS: Final = 500
"""So many settings behind listeners' prefixes may be stored: their names are any client's choice."""

DENIALS: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)

T = TypeVar("T")


class NamedResource(Protocol):
    """A resource of either request."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=NamedResource)


class ResourceOutcome(NamedTuple):
    """What became of one resource of the request; `error` is None if it went well."""

    resource_type: int
    resource_name: str
    error: BrokerError | None


def alter_each(
    resources: Sequence[R],
    context: "Context",
    check: Callable[[R], None],
    alter: Callable[[R], Promise[None]],
    respond: Callable[[list[ResourceOutcome]], T],
) -> Promise[T]:
    """Have `alter` run for each resource; a promise of `respond(outcomes)`, in order, once every one has come.

    Refused are those that are named twice, then those of which `check` raises BrokerError, whoever asks, and then those
    that the client must not alter.
    """
    times = Counter((each.resource_type, each.resource_name) for each in resources)

    def outcome_of(each: R) -> Promise[ResourceOutcome]:
        def failed(error: BaseException) -> ResourceOutcome:
            known = error if isinstance(error, BrokerError) else BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return ResourceOutcome(each.resource_type, each.resource_name, known)

        try:
            if times[each.resource_type, each.resource_name] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "the resource is named more than once")
            check(each)
            require_on(context, Operation.ALTER_CONFIGS, each.resource_type, each.resource_name)
            altered = alter(each)
        except BrokerError as error:
            altered = Promise()
            altered.fail(error)
        return altered.then(lambda _: ResourceOutcome(each.resource_type, each.resource_name, None), failed)

    return gather([outcome_of(each) for each in resources], respond)


def check_resource(each: NamedResource, services: "Services", *, with_loggers: bool = False) -> None:
    """Raise BrokerError(INVALID_REQUEST) for another broker, and for what has no configuration to alter."""
    if each.resource_type == BROKER:
        own_broker_id(each.resource_name, services)
    elif each.resource_type not in (TOPIC, GROUP, CLIENT_METRICS, *((BROKER_LOGGER,) if with_loggers else ())):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {each.resource_type}")


def refuse_all(resources: Sequence[R], code: ErrorCode, message: str | None) -> list[ResourceOutcome]:
    """What becomes of the resources of a request that is refused as a whole."""
    error = BrokerError(code, message)
    return [ResourceOutcome(each.resource_type, each.resource_name, error) for each in resources]


def entries_of(outcomes: Sequence[ResourceOutcome], entry: Callable[..., T]) -> list[T]:
    """The response's entries, `entry` being the class that either response has for them."""
    return [
        entry(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=_words(error),
            resource_type=resource_type,
            resource_name=name,
        )
        for resource_type, name, error in outcomes
    ]


def _words(error: BrokerError | None) -> str | None:
    """Kafka has none for who lacks a right."""
    if error is None or error.code in DENIALS:
        return None
    return error.message or error.code.message


def alter_config(
    resource_type: int, name: str, new_settings: ConfigUpdate, services: "Services", *, validate_only: bool
) -> Promise[None]:
    """Check and store an alteration of a topic's, a group's, a broker's or the cluster's settings.

    The promise is kept when this broker has taken it in, and fails with BrokerError. Raises BrokerError for what can be
    seen at once: unknown topics (UNKNOWN_TOPIC_OR_PARTITION), other brokers (INVALID_REQUEST).
    """
    if resource_type == TOPIC:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if services.metadata.current.topic(name) is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return services.controller.alter_configs(
            ConfigEntity.topic(name),
            _checked(
                validate_topic_overrides,
                new_settings,
                services,
                f"Invalid config value for resource ConfigResource(type=TOPIC, name='{name}'): ",
            ),
            validate_only,
        )
    if resource_type == BROKER:
        broker_id = own_broker_id(name, services)
        pending = PendingChange(services.config)
        checked = _checked_broker_change(broker_id, new_settings, services, None if validate_only else pending)
        stored = services.controller.alter_configs(ConfigEntity.broker(broker_id), checked, validate_only)
        stored.watch(lambda *_: pending.end())
        return stored
    if resource_type == GROUP:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        return services.controller.alter_configs(
            ConfigEntity.group(name), _checked(validate_group_overrides, new_settings, services), validate_only
        )
    raise BrokerError(
        ErrorCode.INVALID_REQUEST, f"the configuration of resource type {resource_type} cannot be changed"
    )


def _checked(
    validate: Callable[[Mapping[str, str], BrokerConfig], None],
    new_settings: ConfigUpdate,
    services: "Services",
    words: str = "",
) -> ConfigUpdate:
    """The change of a topic or a group, with what comes out of it looked at; `words` are Kafka's before the reason."""

    def checked(stored: dict[str, str]) -> dict[str, str]:
        new = new_settings(stored)
        try:
            validate(new, services.config.current)
        except ConfigError as error:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"{words}{error}") from error
        return new

    return checked


def _checked_broker_change(
    broker_id: int | None, new_settings: ConfigUpdate, services: "Services", pending: PendingChange | None
) -> ConfigUpdate:
    """As `_checked`; what may fail of it is done for `pending`, None where the change is only to be looked at.

    Names that may not change at run time are refused by `check_broker_change`: see kavka/config/dynamic_names.py.
    """

    def checked(stored: dict[str, str]) -> dict[str, str]:
        given = new_settings(stored)
        try:
            # What is stored, and shown in no error, from here on.
            new = services.config.stored_settings.protect(given, stored)
            _refuse_too_many(new, stored)
            changed = services.config.check_broker_change(broker_id, new)
            _refuse_what_has_no_effect(new, stored)
            if pending is not None:
                pending.prepare(changed)
        except ConfigError as error:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Invalid config value for resource: {error}") from error
        return new

    return checked


def _refuse_too_many(new: Mapping[str, str], stored: Mapping[str, str]) -> None:
    """A listener may be there later than its settings, so any name is taken, but not any number of them."""
    count, before = (sum(split_prefix(name) is not None for name in names) for names in (new, stored))
    if count > max(MOST_FOR_LISTENERS, before):
        raise ConfigError(None, None, f"more than {MOST_FOR_LISTENERS} settings of listeners")


def _refuse_what_has_no_effect(new: Mapping[str, str], stored: Mapping[str, str]) -> None:
    """A change that is taken takes effect. Setting what is so anyway harms nobody.

    What paces logins by Kerberos holds in any case, of which there are none: tools change that to try changes.
    """
    for name, text in new.items():
        reason = without_effect(name, BrokerConfig.ALL_ROWS)
        if reason is None or stored.get(name) == text:
            continue
        row = row_of(name, BrokerConfig.ALL_ROWS)
        if row is None or row.is_sensitive or (row.parse(text, name) != row.default and reason != SASL_JAVA):
            raise ConfigError(name, HIDDEN if row is None or row.is_sensitive else text, f"it has no effect: {reason}")


def setting_row(resource_type: int, name: str) -> Setting | None:
    """The row of a resource's setting, also behind a listener's prefix; None for an unknown one."""
    if resource_type == TOPIC:
        return topic_rows().get(name)
    if resource_type == GROUP:
        return GroupConfig.ROWS.get(name)
    return row_of(name, BrokerConfig.ALL_ROWS)
